//! The Merkle tree of RFC 6962, section 2.1: hashes, heads, stored nodes, and the tree that grows in O(log n) memory.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::encoding::{from_base64, to_base64};
use crate::attest::text::shown;
use crate::change::Sha256Digest;

/// The most leaves a tree may have: 2⁶³−1, so that a size is also a signed integer of every database and language.
pub const MAX_SIZE: u64 = (1 << 63) - 1;

/// Why values do not describe a tree.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TreeError {
    /// Too many leaves.
    #[error(
        "a tree of {size} leaves: a log has at most 2^63-1; the number is damaged or not a tree size"
    )]
    TooLarge {
        /// Leaves.
        size: u64,
    },
    /// A tree without leaves has one root only.
    #[error(
        "a tree without leaves has the root {}, not {found}; the tree head is damaged",
        TreeHash::of_nothing()
    )]
    EmptyRoot {
        /// The root found.
        found: TreeHash,
    },
    /// The number of complete subtrees does not fit the size.
    #[error(
        "a tree of {size} leaves has {expected} complete subtrees on its edge, but {found} were given; read all the \
         nodes that `Node::peaks` names"
    )]
    Peaks {
        /// Leaves.
        size: u64,
        /// Subtrees it has.
        expected: usize,
        /// Subtrees given.
        found: usize,
    },
    /// A node that no tree has.
    #[error("no tree of at most 2^63-1 leaves has a node at level {level}, index {index}")]
    NoSuchNode {
        /// Level above the leaves.
        level: u8,
        /// Index in the level.
        index: u64,
    },
    /// Not a hash.
    #[error("{found} is not a tree hash: padded base64 of 32 bytes")]
    Hash {
        /// What was found, made printable.
        found: String,
    },
}

/// A hash of the tree: of a leaf, of an inner node, or a root. Not the digest of a document: leaves and nodes are hashed
/// with different first bytes, so that neither can be passed off as the other. As text: padded base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeHash([u8; 32]);

impl TreeHash {
    /// Takes 32 bytes as a hash.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash of a leaf: SHA-256 of 0x00 and the entry's exact bytes.
    pub fn of_leaf(entry: &[u8]) -> Self {
        // Break it: drop the 0x00 and `log::merkle::a_leaf_cannot_be_passed_off_as_a_node` fails.
        Self(
            Sha256::new_with_prefix([0x00])
                .chain_update(entry)
                .finalize()
                .into(),
        )
    }

    /// The hash of an inner node: SHA-256 of 0x01 and its two children.
    #[must_use]
    pub fn of_node(left: &Self, right: &Self) -> Self {
        let mut bytes = [0x01; 65];
        bytes[1..33].copy_from_slice(&left.0);
        bytes[33..].copy_from_slice(&right.0);
        Self(Sha256::digest(bytes).into())
    }

    /// The root of the tree without leaves: SHA-256 of nothing.
    pub fn of_nothing() -> Self {
        Self(Sha256::digest([]).into())
    }

    /// The hash in the hexadecimal form that statements use for digests.
    pub fn to_digest(self) -> Sha256Digest {
        Sha256Digest::from_bytes(self.0)
    }
}

impl From<Sha256Digest> for TreeHash {
    fn from(digest: Sha256Digest) -> Self {
        Self(*digest.as_bytes())
    }
}

impl FromStr for TreeHash {
    type Err = TreeError;

    fn from_str(text: &str) -> Result<Self, TreeError> {
        from_base64(text)
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| TreeError::Hash { found: shown(text) })
    }
}

impl fmt::Display for TreeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&to_base64(&self.0))
    }
}

impl fmt::Debug for TreeHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A tree at one moment: how many leaves, and the root over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TreeHead {
    size: u64,
    root: TreeHash,
}

impl TreeHead {
    /// A head, refusing sizes beyond [`MAX_SIZE`] and another root than [`TreeHash::of_nothing`] for no leaves.
    pub fn new(size: u64, root: TreeHash) -> Result<Self, TreeError> {
        if size > MAX_SIZE {
            Err(TreeError::TooLarge { size })
        } else if size == 0 && root != TreeHash::of_nothing() {
            Err(TreeError::EmptyRoot { found: root })
        } else {
            Ok(Self { size, root })
        }
    }

    /// How many leaves.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The root over them.
    pub const fn root(&self) -> TreeHash {
        self.root
    }
}

/// A place in the tree: the complete subtree over leaves `index * 2^level` up to `(index + 1) * 2^level`. Its hash never
/// changes once its last leaf is there, so it can be stored and served for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    level: u8,
    index: u64,
}

impl Node {
    /// The node at `level` (0 are the leaves) and `index` in that level.
    pub fn new(level: u8, index: u64) -> Result<Self, TreeError> {
        let in_level = MAX_SIZE.checked_shr(u32::from(level)).unwrap_or(0);
        if index < in_level {
            Ok(Self { level, index })
        } else {
            Err(TreeError::NoSuchNode { level, index })
        }
    }

    /// Level above the leaves, 0 to 62.
    pub const fn level(&self) -> u8 {
        self.level
    }

    /// Index in the level.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// The first leaf below.
    pub const fn first_leaf(&self) -> u64 {
        self.index << self.level
    }

    /// The complete subtrees at the right edge of a tree of `size` leaves, largest first: what [`Frontier::from_peaks`]
    /// needs to go on from there. At most 63.
    pub fn peaks(size: u64) -> Result<Vec<Self>, TreeError> {
        if size > MAX_SIZE {
            return Err(TreeError::TooLarge { size });
        }
        Ok(Self::cover(0, size))
    }

    /// The fewest complete subtrees that make up leaves `from` to `to` (exclusive), from left to right. `from` is a
    /// multiple of a power of two that is at least `to - from`, as it is for every subtree of RFC 6962.
    pub(super) fn cover(mut from: u64, to: u64) -> Vec<Self> {
        let mut nodes = Vec::new();
        while let Some(level) = (to.saturating_sub(from)).checked_ilog2() {
            nodes.push(Self {
                level: u8::try_from(level).unwrap_or(u8::MAX),
                index: from >> level,
            });
            from += 1 << level;
        }
        nodes
    }
}

/// A tree that grows: the complete subtrees at its right edge, at most 63 hashes however many leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    /// Largest first; one for each bit that is set in `size`.
    peaks: Vec<TreeHash>,
}

impl Frontier {
    /// The tree without leaves.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tree of `size` leaves whose stored nodes [`Node::peaks`] have these hashes, in that order. Hashes that come
    /// from elsewhere are checked by comparing [`Self::head`] with a head that is trusted.
    pub fn from_peaks(size: u64, peaks: Vec<TreeHash>) -> Result<Self, TreeError> {
        if size > MAX_SIZE {
            return Err(TreeError::TooLarge { size });
        }
        let expected = size.count_ones() as usize;
        if peaks.len() == expected {
            Ok(Self { size, peaks })
        } else {
            Err(TreeError::Peaks {
                size,
                expected,
                found: peaks.len(),
            })
        }
    }

    /// How many leaves: the index of the next one.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The hashes of the complete subtrees at the edge, largest first.
    pub fn peaks(&self) -> &[TreeHash] {
        &self.peaks
    }

    /// Appends a leaf's hash.
    pub fn append(&mut self, leaf: TreeHash) -> Result<(), TreeError> {
        self.append_with(leaf, |_, _| {})
    }

    /// Appends a leaf's hash and tells every node that it completes, the leaf itself first: what a store has to keep so
    /// that proofs need few reads. On average two nodes a leaf.
    pub fn append_with(
        &mut self,
        leaf: TreeHash,
        mut complete: impl FnMut(Node, TreeHash),
    ) -> Result<(), TreeError> {
        if self.size >= MAX_SIZE {
            return Err(TreeError::TooLarge {
                size: self.size.saturating_add(1),
            });
        }
        let (mut level, mut index, mut hash) = (0, self.size, leaf);
        complete(Node { level, index }, hash);
        while index % 2 == 1 {
            let Some(left) = self.peaks.pop() else { break };
            hash = TreeHash::of_node(&left, &hash);
            level += 1;
            index /= 2;
            complete(Node { level, index }, hash);
        }
        self.peaks.push(hash);
        self.size += 1;
        Ok(())
    }

    /// The root over all leaves so far.
    pub fn root(&self) -> TreeHash {
        fold(&self.peaks).unwrap_or_else(TreeHash::of_nothing)
    }

    /// Size and root.
    pub fn head(&self) -> TreeHead {
        TreeHead {
            size: self.size,
            root: self.root(),
        }
    }
}

/// The root over neighbouring subtrees that shrink from left to right; none of nothing.
pub(super) fn fold(subtrees: &[TreeHash]) -> Option<TreeHash> {
    let mut from_right = subtrees.iter().rev();
    let last = *from_right.next()?;
    Some(from_right.fold(last, |right, left| TreeHash::of_node(left, &right)))
}
