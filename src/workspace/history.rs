//! The history of a branch, for audits.

use super::repository::{OBJECT_BYTES, cooked, raw};
use super::{RepositoryReader, WorkspaceError};
use crate::change::Oid;

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRecord {
    /// The commit.
    pub commit: Oid,
    /// The end of its message, at most 16 KiB: trailers are there. Bytes that are not UTF-8 are replaced.
    pub message: String,
    /// When it was made, in seconds since 1970, as its committer says.
    pub time: i64,
}

/// How much of a message is kept, in bytes.
const TAIL: usize = 16 << 10;

fn tail(message: &[u8]) -> String {
    let from = message.len().saturating_sub(TAIL);
    String::from_utf8_lossy(message.get(from..).unwrap_or_default()).into_owned()
}

impl RepositoryReader {
    /// Shows a commit and those before it, each the first parent of the one after it, newest first.
    ///
    /// # Errors
    /// A commit is missing (the clone is shallow, or it was changed) or larger than 32 MiB, or there are more than `most`.
    pub fn history(
        &self,
        tip: Oid,
        most: usize,
        show: &mut dyn FnMut(&CommitRecord),
    ) -> Result<(), WorkspaceError> {
        let too_large = |what: String, limit: String| WorkspaceError::TooLarge {
            doing: "reading a history",
            what,
            limit,
            mend: "look who pushed it; what is behind it was not looked at",
        };
        let (mut next, mut count) = (Some(tip), 0);
        while let Some(commit) = next {
            if count == most {
                return Err(too_large(
                    "the branch".to_owned(),
                    format!("{most} commits"),
                ));
            }
            count += 1;
            let (_, bytes) = self.kind_and_size(commit, "commit")?;
            // Break it: leave this out; whoever may push fills the memory of whoever audits
            // (`log::landed::a_message_without_end_is_refused`).
            if bytes > OBJECT_BYTES {
                let what = format!("commit {commit} of {bytes} bytes");
                return Err(too_large(what, format!("{OBJECT_BYTES} bytes")));
            }
            let found = self.inner.find_commit(raw(commit)?);
            let found = found.map_err(WorkspaceError::git(format!("reading commit {commit}")))?;
            show(&CommitRecord {
                commit,
                message: tail(found.message_raw_bytes()),
                time: found.time().seconds(),
            });
            next = found.parent_ids().next().map(cooked).transpose()?;
        }
        Ok(())
    }
}
