//! Inclusion and consistency proofs: checking them, and which stored nodes make them.
//!
//! Checking is by the algorithms of RFC 9162, sections 2.1.3.2 and 2.1.4.2, which take exactly the proofs of RFC 6962.

use thiserror::Error;

use super::tree::{MAX_SIZE, Node, TreeError, TreeHash, TreeHead, fold};

/// The most hashes a proof may have. Looked at before anything else, so that a long one costs nothing.
pub const MAX_PROOF: usize = 63;

/// Why a proof proves nothing, or cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProofError {
    /// Too many hashes.
    #[error("a proof of {length} hashes: no tree needs more than {MAX_PROOF}")]
    TooLong {
        /// Hashes.
        length: usize,
    },
    /// The entry is beyond the tree.
    #[error("entry {index} is not in a tree of {size} leaves; use a later checkpoint")]
    OutOfTree {
        /// Index of the entry.
        index: u64,
        /// Leaves of the tree.
        size: u64,
    },
    /// Too few or too many hashes for these sizes.
    #[error(
        "a proof of {length} hashes does not fit the tree's shape; it was made for another index or tree size"
    )]
    Shape {
        /// Hashes.
        length: usize,
    },
    /// The proof leads elsewhere.
    #[error(
        "the proof leads to root {computed}, the tree of {size} leaves has {expected}: another entry, another place, \
         another tree, or a changed proof"
    )]
    Root {
        /// Leaves of the tree whose root was missed.
        size: u64,
        /// Where the proof leads.
        computed: TreeHash,
        /// The root of the tree.
        expected: TreeHash,
    },
    /// Nothing is consistent with everything, which proves nothing.
    #[error(
        "a tree without leaves proves nothing about a later one; compare with a checkpoint that has leaves"
    )]
    FromNothing,
    /// The later tree is smaller.
    #[error(
        "the log shrank from {old} to {new} leaves: entries were cut off or an old state was restored"
    )]
    Shrunk {
        /// Leaves before.
        old: u64,
        /// Leaves now.
        new: u64,
    },
    /// Two trees of one size.
    #[error(
        "two trees of {size} leaves have the roots {old} and {new}: the log has shown two histories"
    )]
    Fork {
        /// Leaves.
        size: u64,
        /// The root before.
        old: TreeHash,
        /// The root now.
        new: TreeHash,
    },
    /// A size beyond what a log may have.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

fn check_length(path: &[TreeHash]) -> Result<(), ProofError> {
    // Break it: drop this and `log::merkle::proofs_of_more_than_63_hashes_are_refused_by_length` fails.
    if path.len() > MAX_PROOF {
        return Err(ProofError::TooLong { length: path.len() });
    }
    Ok(())
}

fn check_root(computed: TreeHash, head: &TreeHead) -> Result<(), ProofError> {
    if computed == head.root() {
        Ok(())
    } else {
        Err(ProofError::Root {
            size: head.size(),
            computed,
            expected: head.root(),
        })
    }
}

/// Steps both positions up over the levels at which the right edge has no sibling.
fn skip_missing_siblings(place: &mut u64, last: &mut u64) {
    while *place != 0 && place.is_multiple_of(2) {
        *place >>= 1;
        *last >>= 1;
    }
}

/// Whether the entry whose leaf hash is `leaf` is at `index` of the tree `head`. `path` runs from the leaf's sibling up to
/// the root's child.
pub fn verify_inclusion(
    leaf: TreeHash,
    index: u64,
    path: &[TreeHash],
    head: &TreeHead,
) -> Result<(), ProofError> {
    check_length(path)?;
    let out_of_tree = ProofError::OutOfTree {
        index,
        size: head.size(),
    };
    let mut last = head.size().checked_sub(1).ok_or(out_of_tree.clone())?;
    if index > last {
        return Err(out_of_tree);
    }
    let shape = ProofError::Shape { length: path.len() };
    let mut place = index;
    let mut hash = leaf;
    for sibling in path {
        // Break it: drop this and `log::merkle::a_proof_has_the_shape_of_its_tree` fails.
        if last == 0 {
            return Err(shape);
        }
        if place % 2 == 1 || place == last {
            hash = TreeHash::of_node(sibling, &hash);
            skip_missing_siblings(&mut place, &mut last);
        } else {
            hash = TreeHash::of_node(&hash, sibling);
        }
        place >>= 1;
        last >>= 1;
    }
    // Break it: drop this and `log::merkle::the_vectors_of_others_are_decided_as_they_say` fails.
    if last != 0 {
        return Err(shape);
    }
    check_root(hash, head)
}

/// Whether the tree `new` is `old` with leaves appended. A head without leaves is refused, because it would be consistent
/// with every tree; a smaller `new` and a second root for one size are named as what they are.
pub fn verify_consistency(
    old: &TreeHead,
    new: &TreeHead,
    path: &[TreeHash],
) -> Result<(), ProofError> {
    check_length(path)?;
    let shape = ProofError::Shape { length: path.len() };
    // Break it: drop this and `log::merkle::nothing_is_consistent_with_nothing` fails.
    if old.size() == 0 {
        return Err(ProofError::FromNothing);
    }
    if new.size() < old.size() {
        return Err(ProofError::Shrunk {
            old: old.size(),
            new: new.size(),
        });
    }
    if new.size() == old.size() {
        return match (old.root() == new.root(), path.is_empty()) {
            (false, _) => Err(ProofError::Fork {
                size: old.size(),
                old: old.root(),
                new: new.root(),
            }),
            (true, false) => Err(shape),
            (true, true) => Ok(()),
        };
    }
    let (mut place, mut last) = (old.size() - 1, new.size() - 1);
    while place % 2 == 1 {
        place >>= 1;
        last >>= 1;
    }
    // An old tree that is one complete subtree is its own first hash and is left out of the proof.
    let (start, rest) = if old.size().is_power_of_two() {
        (old.root(), path)
    } else {
        let (first, rest) = path.split_first().ok_or(shape.clone())?;
        (*first, rest)
    };
    let (mut old_hash, mut new_hash) = (start, start);
    for sibling in rest {
        // Break it: drop this and `log::merkle::a_proof_has_the_shape_of_its_tree` fails.
        if last == 0 {
            return Err(shape);
        }
        if place % 2 == 1 || place == last {
            old_hash = TreeHash::of_node(sibling, &old_hash);
            new_hash = TreeHash::of_node(sibling, &new_hash);
            skip_missing_siblings(&mut place, &mut last);
        } else {
            new_hash = TreeHash::of_node(&new_hash, sibling);
        }
        place >>= 1;
        last >>= 1;
    }
    // Break it: drop this and `log::merkle::the_vectors_of_others_are_decided_as_they_say` fails.
    if last != 0 {
        return Err(shape);
    }
    // Break it: drop either and `log::merkle::one_changed_bit_ends_every_proof` fails.
    check_root(old_hash, old)?;
    check_root(new_hash, new)
}

/// Which stored nodes make a proof, as a list to read in one go: at most about 125 nodes, whatever the tree's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofPlan {
    /// One part a hash of the proof: neighbouring complete subtrees, shrinking from left to right.
    parts: Vec<Vec<Node>>,
}

impl ProofPlan {
    /// The proof that entry `index` is in the tree of `size` leaves (RFC 6962, section 2.1.1).
    pub fn inclusion(index: u64, size: u64) -> Result<Self, ProofError> {
        check_size(size)?;
        if index >= size {
            return Err(ProofError::OutOfTree { index, size });
        }
        let (mut from, mut to) = (0, size);
        let mut parts = Vec::new();
        while let Some(middle) = split(from, to) {
            if index < middle {
                parts.push(Node::cover(middle, to));
                to = middle;
            } else {
                parts.push(Node::cover(from, middle));
                from = middle;
            }
        }
        parts.reverse();
        Ok(Self { parts })
    }

    /// The proof that the tree of `new` leaves extends that of `old` (RFC 6962, section 2.1.2). Empty when they are equal.
    pub fn consistency(old: u64, new: u64) -> Result<Self, ProofError> {
        check_size(new)?;
        if old == 0 {
            return Err(ProofError::FromNothing);
        }
        if new < old {
            return Err(ProofError::Shrunk { old, new });
        }
        let (mut from, mut to) = (0, new);
        let mut parts = Vec::new();
        while old != to {
            let Some(middle) = split(from, to) else { break };
            if old <= middle {
                parts.push(Node::cover(middle, to));
                to = middle;
            } else {
                parts.push(Node::cover(from, middle));
                from = middle;
            }
        }
        if from != 0 {
            parts.push(Node::cover(from, to));
        }
        parts.reverse();
        Ok(Self { parts })
    }

    /// The root of the tree at an earlier size, as a "proof" of one hash (of none for no leaves).
    pub fn root(size: u64) -> Result<Self, ProofError> {
        check_size(size)?;
        let cover = Node::cover(0, size);
        Ok(Self {
            parts: if cover.is_empty() {
                Vec::new()
            } else {
                vec![cover]
            },
        })
    }

    /// The nodes to read, each once.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        self.parts.iter().flatten().copied()
    }

    /// Makes the proof, asking `read` for each of [`Self::nodes`] in that order.
    pub fn build<E>(
        &self,
        mut read: impl FnMut(Node) -> Result<TreeHash, E>,
    ) -> Result<Vec<TreeHash>, E> {
        let mut proof = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let hashes = part
                .iter()
                .map(|node| read(*node))
                .collect::<Result<Vec<_>, E>>()?;
            proof.extend(fold(&hashes));
        }
        Ok(proof)
    }
}

fn check_size(size: u64) -> Result<(), ProofError> {
    if size > MAX_SIZE {
        return Err(TreeError::TooLarge { size }.into());
    }
    Ok(())
}

/// Where RFC 6962 splits the leaves `from` to `to`: after the largest power of two that is smaller than their number.
fn split(from: u64, to: u64) -> Option<u64> {
    let level = (to - from).checked_sub(1)?.checked_ilog2()?;
    Some(from + (1 << level))
}
