//! Entry bundles: up to 256 entries, each behind its length (C2SP tlog-tiles, "Log entries").

use thiserror::Error;

use super::tile::TILE_WIDTH;

/// The longest entry, in bytes: what a bundle's 16-bit length can say.
pub const MAX_ENTRY: usize = 65_535;

/// The longest bundle, in bytes. A reader need not fetch more.
pub const MAX_BUNDLE: usize = TILE_WIDTH as usize * (2 + MAX_ENTRY);

/// Why bytes are not a bundle, or entries do not go into one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BundleError {
    /// The bytes end inside an entry.
    #[error("the bundle ends inside entry {entry} of {width}; it was cut off, fetch it again")]
    CutOff {
        /// Index of the entry in the bundle.
        entry: usize,
        /// Entries expected.
        width: u16,
    },
    /// Bytes after the last entry.
    #[error(
        "the bundle has {extra} bytes after its {width} entries; it is another width's, or damaged"
    )]
    Trailing {
        /// Bytes too many.
        extra: usize,
        /// Entries expected.
        width: u16,
    },
    /// An entry that its length cannot describe.
    #[error(
        "entry {entry} has {length} bytes, a log takes at most {MAX_ENTRY}; put bulk into the evidence store and log its \
         digest"
    )]
    TooLong {
        /// Index of the entry.
        entry: usize,
        /// Its length, in bytes.
        length: usize,
    },
    /// Not 1 to 256 entries.
    #[error("a bundle of {count} entries; it has 1 to {TILE_WIDTH}")]
    Count {
        /// Entries given.
        count: usize,
    },
}

/// The entries of a bundle that has `width` of them (1 to 256; from the tile's path), without copying.
pub fn read_entries(bytes: &[u8], width: u16) -> Result<Vec<&[u8]>, BundleError> {
    if !(1..=TILE_WIDTH).contains(&width) {
        return Err(BundleError::Count {
            count: usize::from(width),
        });
    }
    let mut rest = bytes;
    let mut entries = Vec::with_capacity(usize::from(width));
    for entry in 0..usize::from(width) {
        let cut_off = BundleError::CutOff { entry, width };
        let (length, after) = rest.split_first_chunk().ok_or(cut_off.clone())?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (bytes, after) = after.split_at_checked(length).ok_or(cut_off)?;
        entries.push(bytes);
        rest = after;
    }
    if rest.is_empty() {
        Ok(entries)
    } else {
        Err(BundleError::Trailing {
            extra: rest.len(),
            width,
        })
    }
}

/// The bundle of 1 to 256 entries.
pub fn write_entries<B: AsRef<[u8]>>(entries: &[B]) -> Result<Vec<u8>, BundleError> {
    if !(1..=usize::from(TILE_WIDTH)).contains(&entries.len()) {
        return Err(BundleError::Count {
            count: entries.len(),
        });
    }
    let mut bundle = Vec::new();
    for (entry, bytes) in entries.iter().enumerate() {
        let bytes = bytes.as_ref();
        let length = u16::try_from(bytes.len()).map_err(|_| BundleError::TooLong {
            entry,
            length: bytes.len(),
        })?;
        bundle.extend_from_slice(&length.to_be_bytes());
        bundle.extend_from_slice(bytes);
    }
    Ok(bundle)
}
