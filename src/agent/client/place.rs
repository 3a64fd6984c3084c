//! The private place of one task: the client's home, and the proxy's socket beside it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::launch::Launch;

/// The folder of such places in `CARETAKER_HOME`; short, for the sake of the sockets' paths.
const FOLDER: &str = "clients";

/// A folder that only this user can enter, gone when dropped.
pub(super) struct Place {
    folder: TempDir,
}

impl Place {
    /// Makes one in `home`, which is `CARETAKER_HOME`.
    pub(super) fn create(home: &Path) -> Result<Self, String> {
        let parent = home.join(FOLDER);
        let failed = |error: std::io::Error| {
            format!("making a private folder in {}: {error}", parent.display())
        };
        std::fs::create_dir_all(&parent).map_err(failed)?;
        let parent = std::fs::canonicalize(&parent).map_err(failed)?;
        let folder = tempfile::Builder::new()
            .prefix("c-")
            .tempdir_in(&parent)
            .map_err(failed)?;
        std::fs::create_dir(folder.path().join("home")).map_err(failed)?;
        Ok(Self { folder })
    }

    /// The client's home.
    pub(super) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Where the proxy listens.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.path().join("m.sock")
    }

    /// Writes the client's files.
    pub(super) fn write(&self, launch: &Launch) -> Result<(), String> {
        let home = self.home();
        for folder in &launch.folders {
            make(&home.join(folder))?;
        }
        for (name, text) in &launch.files {
            let path = home.join(name);
            if let Some(folder) = path.parent() {
                make(folder)?;
            }
            std::fs::write(&path, text)
                .map_err(|error| format!("writing {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("making {}: {error}", folder.display()))
}
