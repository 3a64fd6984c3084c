//! Tiles: the tree and the entries as files (C2SP tlog-tiles).
//!
//! A tile holds up to 256 neighbouring hashes of every eighth level; an entry bundle the entries below a tile of leaf
//! hashes. A full tile never changes. What is read from a tile is trusted only through a proof that it takes part in.

use std::fmt;

use thiserror::Error;

use super::encoding::from_decimal;
use super::tree::{MAX_SIZE, Node, TreeHash};
use crate::attest::text::shown;

/// Hashes in a full tile, entries in a full bundle.
pub const TILE_WIDTH: u16 = 256;

/// Levels of the tree that a tile spans.
const TILE_HEIGHT: u8 = 8;
/// The highest level of tiles that a tree of at most [`MAX_SIZE`] leaves can have.
const MAX_LEVEL: u8 = 7;
/// The longest path: more than the highest tile's.
const MAX_PATH: usize = 64;

/// Why a path, a place or bytes are not a tile.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TileError {
    /// Not the path of a tile.
    #[error(
        "{found} is not the path of a tile: `tile/LEVEL/INDEX` or `tile/entries/INDEX`, the index in groups of three \
         digits of which all but the last begin with x, and `.p/WIDTH` after it when the tile is not full"
    )]
    Path {
        /// What was found, made printable.
        found: String,
    },
    /// No log has this tile.
    #[error(
        "no log has a tile of {width} hashes at level {level}, index {index}: a full tile has 256, and a log at most \
         2^63-1 leaves"
    )]
    NoSuchTile {
        /// Level of the tile.
        level: u8,
        /// Index in the level.
        index: u64,
        /// Hashes or entries.
        width: u16,
    },
    /// The tree is too small for this node.
    #[error("a tree of {size} leaves does not have the node at level {level}, index {index} yet")]
    NotYet {
        /// Leaves.
        size: u64,
        /// Level of the node.
        level: u8,
        /// Index of the node.
        index: u64,
    },
    /// The bytes have another length than the tile.
    #[error("the tile {path} has {found} bytes instead of {expected}; fetch it again")]
    Length {
        /// The tile.
        path: String,
        /// Bytes expected.
        expected: usize,
        /// Bytes found.
        found: usize,
    },
    /// A tile of entries where one of hashes is needed.
    #[error("{path} is a bundle of entries, not a tile of hashes")]
    NotHashes {
        /// The tile.
        path: String,
    },
}

/// What a tile holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TileKind {
    /// Hashes of the tree's level `8 * level`.
    Hashes {
        /// Level among the tiles, 0 to 7.
        level: u8,
    },
    /// Entries, in the order of the leaf hashes.
    Entries,
}

impl TileKind {
    /// Level among the tiles: entries lie below the tiles of leaf hashes and are counted like them.
    const fn level(self) -> u8 {
        match self {
            Self::Hashes { level } => level,
            Self::Entries => 0,
        }
    }
}

/// A tile's place: kind, index and width. Only places that a log can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId {
    kind: TileKind,
    index: u64,
    width: u16,
}

impl TileId {
    /// The tile of `width` (1 to 256) hashes or entries at `index` of its kind.
    pub fn new(kind: TileKind, index: u64, width: u16) -> Result<Self, TileError> {
        let level = kind.level();
        let end = index
            .checked_mul(u64::from(TILE_WIDTH))
            .and_then(|first| first.checked_add(u64::from(width)))
            .filter(|_| level <= MAX_LEVEL && (1..=TILE_WIDTH).contains(&width))
            .and_then(|end| end.checked_mul(1 << (TILE_HEIGHT * level)))
            .filter(|leaves| *leaves <= MAX_SIZE);
        match end {
            Some(_) => Ok(Self { kind, index, width }),
            None => Err(TileError::NoSuchTile {
                level,
                index,
                width,
            }),
        }
    }

    /// The tile that holds `node` in a tree of `size` leaves, as wide as it is there.
    pub fn holding(node: Node, size: u64) -> Result<Self, TileError> {
        let level = node.level() / TILE_HEIGHT;
        let first = node.index() << (node.level() % TILE_HEIGHT);
        let index = first / u64::from(TILE_WIDTH);
        let not_yet = TileError::NotYet {
            size,
            level: node.level(),
            index: node.index(),
        };
        let hashes = size >> (TILE_HEIGHT * level);
        if size > MAX_SIZE || (node.index() + 1) << node.level() > size {
            return Err(not_yet);
        }
        let width = (hashes - index * u64::from(TILE_WIDTH)).min(u64::from(TILE_WIDTH));
        let width = u16::try_from(width).map_err(|_| not_yet)?;
        Self::new(TileKind::Hashes { level }, index, width)
    }

    /// Every tile and bundle that a log of `new` leaves has and the one of `old` leaves did not: what to publish when it
    /// grows. Lower levels first, so that whoever follows the order never sees a hash before what is below it.
    pub fn grown(old: u64, new: u64) -> impl Iterator<Item = Self> {
        let rows = (0..=MAX_LEVEL).map(|level| TileKind::Hashes { level });
        std::iter::once(TileKind::Entries)
            .chain(rows)
            .flat_map(move |kind| grown_row(kind, old, new))
    }

    /// What it holds.
    pub const fn kind(&self) -> TileKind {
        self.kind
    }

    /// Index among the tiles of its kind.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Hashes or entries, 1 to 256.
    pub const fn width(&self) -> u16 {
        self.width
    }

    /// Whether a log of `size` leaves has all of it.
    pub const fn is_within(&self, size: u64) -> bool {
        let units = size >> (TILE_HEIGHT * self.kind.level());
        self.index * TILE_WIDTH as u64 + self.width as u64 <= units
    }

    /// Whether it will never change.
    pub const fn is_full(&self) -> bool {
        self.width == TILE_WIDTH
    }

    /// The leaf (or leaf-most subtree) with which it begins.
    pub const fn first_leaf(&self) -> u64 {
        (self.index * TILE_WIDTH as u64) << (TILE_HEIGHT * self.kind.level())
    }

    /// Reads a path, refusing every other spelling than the one that [`fmt::Display`] writes.
    pub fn parse(path: &str) -> Result<Self, TileError> {
        let refused = || TileError::Path { found: shown(path) };
        if path.len() > MAX_PATH {
            return Err(refused());
        }
        let (kind, rest) = path
            .strip_prefix("tile/")
            .and_then(|rest| rest.split_once('/'))
            .ok_or_else(refused)?;
        let kind = if kind == "entries" {
            TileKind::Entries
        } else {
            let level = from_decimal(kind).and_then(|level| u8::try_from(level).ok());
            TileKind::Hashes {
                level: level.ok_or_else(refused)?,
            }
        };
        let (index, width) = match rest.split_once(".p/") {
            Some((index, width)) => (
                index,
                from_decimal(width).and_then(|width| u16::try_from(width).ok()),
            ),
            None => (rest, Some(TILE_WIDTH)),
        };
        let index = read_index(index).ok_or_else(refused)?;
        let tile = Self::new(kind, index, width.ok_or_else(refused)?)?;
        // Break it: drop this and `log::tiles::a_tile_has_one_path` fails.
        if tile.to_string() == path {
            Ok(tile)
        } else {
            Err(refused())
        }
    }
}

fn grown_row(kind: TileKind, old: u64, new: u64) -> impl Iterator<Item = TileId> {
    let (old, new) = (old.min(MAX_SIZE), new.min(MAX_SIZE));
    let shift = TILE_HEIGHT * kind.level();
    let (old, new) = (old >> shift, new >> shift);
    let wide = u64::from(TILE_WIDTH);
    let full = (old / wide..new / wide).map(move |index| TileId {
        kind,
        index,
        width: TILE_WIDTH,
    });
    let rest = u16::try_from(new % wide).unwrap_or(0);
    let partial = (old < new && rest > 0).then_some(TileId {
        kind,
        index: new / wide,
        width: rest,
    });
    full.chain(partial)
}

/// Groups of three digits, all but the last with an `x` before them.
fn read_index(text: &str) -> Option<u64> {
    let (leading, last) = match text.rsplit_once('/') {
        Some((leading, last)) => (Some(leading), last),
        None => (None, text),
    };
    let leading = leading.into_iter().flat_map(|groups| groups.split('/'));
    let mut groups = leading
        .map(|group| group.strip_prefix('x'))
        .chain(std::iter::once(Some(last)));
    groups.try_fold(0_u64, |index, group| {
        let group = group.filter(|group| group.len() == 3)?;
        let digits = group.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| group.parse::<u64>().ok())??;
        index.checked_mul(1000)?.checked_add(number)
    })
}

/// The path of the resource below a log's prefix.
impl fmt::Display for TileId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TileKind::Hashes { level } => write!(formatter, "tile/{level}/")?,
            TileKind::Entries => formatter.write_str("tile/entries/")?,
        }
        let digits = format!("{:03}", self.index);
        let digits = format!("{digits:0>width$}", width = digits.len().div_ceil(3) * 3);
        let groups = digits.len() / 3;
        for group in 0..groups {
            let leading = if group + 1 < groups { "x" } else { "" };
            let trailing = if group + 1 < groups { "/" } else { "" };
            write!(
                formatter,
                "{leading}{}{trailing}",
                &digits[group * 3..group * 3 + 3]
            )?;
        }
        if self.is_full() {
            Ok(())
        } else {
            write!(formatter, ".p/{}", self.width)
        }
    }
}

/// A tile of hashes with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashTile {
    id: TileId,
    level: u8,
    hashes: Vec<TreeHash>,
}

impl HashTile {
    /// Reads a tile's bytes: exactly as many hashes as it is wide.
    pub fn parse(id: TileId, bytes: &[u8]) -> Result<Self, TileError> {
        let (hashes, rest) = bytes.as_chunks::<32>();
        if !rest.is_empty() || hashes.len() != usize::from(id.width) {
            return Err(TileError::Length {
                path: id.to_string(),
                expected: usize::from(id.width) * 32,
                found: bytes.len(),
            });
        }
        let hashes = hashes.iter().map(|hash| TreeHash::from_bytes(*hash));
        Self::new(id, hashes.collect())
    }

    /// A tile from its hashes.
    pub fn new(id: TileId, hashes: Vec<TreeHash>) -> Result<Self, TileError> {
        let TileKind::Hashes { level } = id.kind else {
            return Err(TileError::NotHashes {
                path: id.to_string(),
            });
        };
        if hashes.len() != usize::from(id.width) {
            return Err(TileError::Length {
                path: id.to_string(),
                expected: usize::from(id.width) * 32,
                found: hashes.len() * 32,
            });
        }
        Ok(Self { id, level, hashes })
    }

    /// The bytes that are served.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.hashes
            .iter()
            .flat_map(TreeHash::as_bytes)
            .copied()
            .collect()
    }

    /// Its place.
    pub const fn id(&self) -> TileId {
        self.id
    }

    /// Its hashes, from left to right.
    pub fn hashes(&self) -> &[TreeHash] {
        &self.hashes
    }

    /// The nodes of the tree whose hashes this tile lists: what a store reads to write the tile.
    pub fn nodes(id: TileId) -> impl Iterator<Item = Node> {
        let level = match id.kind {
            TileKind::Hashes { level } => Some(level * TILE_HEIGHT),
            TileKind::Entries => None,
        };
        let first = id.index * u64::from(TILE_WIDTH);
        (first..first + u64::from(id.width)).filter_map(move |index| Node::new(level?, index).ok())
    }

    /// The hash of `node`, computed from the tile's hashes; none if the tile does not hold it.
    pub fn node(&self, node: Node) -> Option<TreeHash> {
        let height = node.level().checked_sub(self.level * TILE_HEIGHT)?;
        if height >= TILE_HEIGHT {
            return None;
        }
        let first = (node.index() << height)
            .checked_sub(self.id.index * u64::from(TILE_WIDTH))
            .and_then(|first| usize::try_from(first).ok())?;
        let below = self.hashes.get(first..first.checked_add(1 << height)?)?;
        let mut row = below.to_vec();
        while row.len() > 1 {
            let pairs = row.as_chunks::<2>().0.iter();
            row = pairs
                .map(|[left, right]| TreeHash::of_node(left, right))
                .collect();
        }
        row.first().copied()
    }
}
