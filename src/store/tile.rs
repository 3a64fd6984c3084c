//! The log as files (C2SP tlog-tiles), made from the database when they are asked for.

use super::{Scoped, StoreError};
use crate::log::{HashTile, TILE_WIDTH, TileId, TileKind, write_entries};

impl Scoped<'_> {
    /// The bytes of one file, which has to lie within the log.
    ///
    /// # Errors
    /// The database fails, or what it holds is not what was logged.
    pub async fn log_file(&self, tile: TileId) -> Result<Vec<u8>, StoreError> {
        match tile.kind() {
            TileKind::Entries => {
                let from = tile.index() * u64::from(TILE_WIDTH);
                let leaves = self
                    .log_leaves(from, from + u64::from(tile.width()))
                    .await?;
                let entries: Vec<Vec<u8>> =
                    leaves.into_iter().filter_map(|leaf| leaf.entry).collect();
                if entries.len() != usize::from(tile.width()) {
                    let reason = format!(
                        "{} of the {} entries of {tile}",
                        entries.len(),
                        tile.width()
                    );
                    return Err(unreadable(&reason));
                }
                write_entries(&entries).map_err(|error| unreadable(&error))
            }
            TileKind::Hashes { .. } => {
                let hashes = self.log_hashes(HashTile::nodes(tile)).await?;
                let tile = HashTile::new(tile, hashes).map_err(|error| unreadable(&error))?;
                Ok(tile.to_bytes())
            }
        }
    }
}

fn unreadable(reason: &impl ToString) -> StoreError {
    StoreError::Unreadable {
        what: "the log",
        reason: reason.to_string(),
    }
}
