//! A folder with a whole log that was verified, to look further into.

use super::folder::{Files, FolderReport, roots, verify};
use super::{Request, VerifyError, pin};
use crate::attest::TrustHistory;
use crate::attest::chain::Verdict;
use crate::attest::text::shown;
use crate::audit::{LogFiles as _, LogReport, trust_from};
use crate::log::{TILE_WIDTH, TileId, TileKind, read_entries};

/// The log in a folder, and what its verification said.
#[derive(Debug)]
pub struct LogFolder {
    request: Request,
    report: FolderReport,
    trust: TrustHistory,
}

impl LogFolder {
    /// Verifies the folder of a request.
    ///
    /// # Errors
    /// There is nothing to verify, or nothing to verify it with: see [`VerifyError`].
    pub fn verified(request: &Request) -> Result<Self, VerifyError> {
        let report = verify(request)?;
        let brought = roots(&request.bundle)?;
        let brought = brought
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.as_slice()));
        let trust = trust_from(brought, &pin(&request.trust_root)?);
        let trust = trust.map_err(|cause| VerifyError::Bundle {
            path: shown(&request.bundle.display().to_string()),
            cause,
        })?;
        Ok(Self {
            request: request.clone(),
            report,
            trust,
        })
    }

    /// The verdict on the log.
    pub const fn verdict(&self) -> Verdict {
        self.report.report.verdict
    }

    /// What was said of the log.
    pub const fn report(&self) -> &LogReport {
        &self.report.report
    }

    /// The log's name.
    pub fn origin(&self) -> String {
        self.report.checkpoint.origin.to_string()
    }

    /// Whose signatures count in it.
    pub const fn trust(&self) -> &TrustHistory {
        &self.trust
    }

    /// Every leaf under the checkpoint, in order.
    ///
    /// # Errors
    /// A file cannot be read, or `take` refuses a leaf.
    pub fn entries(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), String>) -> Result<(), String> {
        let files = Files {
            folder: &self.request.bundle,
        };
        let width = u64::from(TILE_WIDTH);
        let size = self.report.checkpoint.size;
        for index in 0..size.div_ceil(width) {
            let here = (size - index * width).min(width);
            let here = u16::try_from(here).map_err(|error| error.to_string())?;
            let tile = TileId::new(TileKind::Entries, index, here);
            let tile = tile.map_err(|error| error.to_string())?;
            let bytes = files.file(tile)?;
            let entries = read_entries(&bytes, here).map_err(|error| format!("{tile}: {error}"))?;
            for entry in entries {
                take(entry)?;
            }
        }
        Ok(())
    }
}
