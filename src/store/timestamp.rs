//! What timestamp authorities answered about checkpoints, with the checkpoints.

use sqlx::any::AnyRow;

use super::statement::statements;
use super::{Scoped, StoreError, value};
use crate::log::SignedCheckpoint;

statements! {
    /// Of each authority the oldest answer about at least so many leaves.
    FIRST = "SELECT a.name, a.receipt, c.note FROM (SELECT organisation, kind, name, MIN(size) AS size FROM log_anchor \
        WHERE organisation = $1 AND kind = 'timestamp' AND size >= $2 GROUP BY organisation, kind, name) f \
        JOIN log_anchor a ON a.organisation = f.organisation AND a.kind = f.kind AND a.name = f.name AND a.size = f.size \
        JOIN log_checkpoint c ON c.organisation = a.organisation AND c.size = a.size ORDER BY a.name";
    /// All answers about at least so many leaves, oldest first.
    ALL = "SELECT a.name, a.receipt, c.note FROM log_anchor a \
        JOIN log_checkpoint c ON c.organisation = a.organisation AND c.size = a.size \
        WHERE a.organisation = $1 AND a.kind = 'timestamp' AND a.size >= $2 ORDER BY a.size, a.name LIMIT $3";
}

/// A checkpoint, the name of an authority, and what it answered.
pub type Stamp = (SignedCheckpoint, String, Vec<u8>);

impl Scoped<'_> {
    /// Of each timestamp authority the oldest answer about a checkpoint over at least `size` leaves: what says most about
    /// these leaves.
    ///
    /// # Errors
    /// The database fails, or holds a checkpoint that is none.
    pub async fn first_timestamps(&self, size: u64) -> Result<Vec<Stamp>, StoreError> {
        let mut work = self.store.reading("reading timestamps").await?;
        let read = sqlx::query(FIRST)
            .bind(self.organisation.as_str())
            .bind(value::bigint("the log's size", size)?);
        work.all(read).await?.iter().map(stamp).collect()
    }

    /// What timestamp authorities answered about checkpoints over at least `size` leaves, oldest first, at most `limit`.
    ///
    /// # Errors
    /// The database fails, or holds a checkpoint that is none.
    pub async fn timestamps(&self, size: u64, limit: u32) -> Result<Vec<Stamp>, StoreError> {
        let mut work = self.store.reading("reading timestamps").await?;
        let read = sqlx::query(ALL)
            .bind(self.organisation.as_str())
            .bind(value::bigint("the log's size", size)?)
            .bind(i64::from(limit));
        work.all(read).await?.iter().map(stamp).collect()
    }
}

fn stamp(row: &AnyRow) -> Result<Stamp, StoreError> {
    let note = value::text(row, "note")?;
    let checkpoint = SignedCheckpoint::parse(note.as_bytes());
    let checkpoint = checkpoint.map_err(|error| StoreError::Unreadable {
        what: "a checkpoint",
        reason: error.to_string(),
    })?;
    Ok((
        checkpoint,
        value::text(row, "name")?,
        value::bytes(row, "receipt")?,
    ))
}
