//! A log with its keys and witnesses, a tree by the definition alone, and a store of nodes.

use std::collections::HashMap;

use caretaker::attest::SecretKey;
use caretaker::clock::Millis;
use caretaker::log::{
    Checkpoint, Frontier, KeyName, LogPolicy, LogSigner, Node, ProofPlan, SignedCheckpoint,
    TreeHash, TreeHead, WitnessSigner,
};

/// The moment at which everything happens.
pub(crate) const NOW: Millis = Millis(1_800_000_000_000);
pub(crate) const ORIGIN: &str = "example.com/audit/caretaker";

pub(crate) fn name(name: &str) -> KeyName {
    KeyName::new(name).unwrap()
}

/// The seed of the log's key; fixed, so that a test can also sign without the library.
pub(crate) const LOG_SEED: [u8; 32] = [41; 32];

pub(crate) fn log() -> LogSigner {
    LogSigner::new(name(ORIGIN), SecretKey::from_seed(&LOG_SEED))
}

pub(crate) fn witness_seed(number: u8) -> [u8; 32] {
    [50 + number; 32]
}

pub(crate) fn witness(number: u8) -> WitnessSigner {
    let secret = SecretKey::from_seed(&witness_seed(number));
    WitnessSigner::new(name(&format!("witness.example/w{number}")), secret)
}

/// The log, witnesses 1 to 3, and how many of them must have cosigned.
pub(crate) fn policy(quorum: usize) -> LogPolicy {
    let witnesses = (1..=3).map(|number| witness(number).verifier()).collect();
    LogPolicy::new(vec![log().verifier()], witnesses, quorum).unwrap()
}

pub(crate) fn entry(index: usize) -> Vec<u8> {
    format!("entry {index}").into_bytes()
}

pub(crate) fn leaf(index: usize) -> TreeHash {
    TreeHash::of_leaf(&entry(index))
}

/// The tree as a store keeps it: every node, by level and index.
pub(crate) struct Stored {
    pub(crate) frontier: Frontier,
    pub(crate) nodes: HashMap<Node, TreeHash>,
}

impl Stored {
    pub(crate) fn of(size: usize) -> Self {
        let mut stored = Self {
            frontier: Frontier::new(),
            nodes: HashMap::new(),
        };
        for index in 0..size {
            stored
                .frontier
                .append_with(leaf(index), |node, hash| {
                    assert_eq!(stored.nodes.insert(node, hash), None, "{node:?}");
                })
                .unwrap();
        }
        stored
    }

    pub(crate) fn head(&self) -> TreeHead {
        self.frontier.head()
    }

    pub(crate) fn build(&self, plan: &ProofPlan) -> Vec<TreeHash> {
        plan.build(|node| self.nodes.get(&node).copied().ok_or(node))
            .unwrap()
    }

    pub(crate) fn head_at(&self, size: u64) -> TreeHead {
        let root = self.build(&ProofPlan::root(size).unwrap());
        let root = root.first().copied();
        TreeHead::new(size, root.unwrap_or_else(TreeHash::of_nothing)).unwrap()
    }

    pub(crate) fn inclusion(&self, index: u64, size: u64) -> Vec<TreeHash> {
        self.build(&ProofPlan::inclusion(index, size).unwrap())
    }

    pub(crate) fn consistency(&self, old: u64, new: u64) -> Vec<TreeHash> {
        self.build(&ProofPlan::consistency(old, new).unwrap())
    }

    pub(crate) fn checkpoint(&self, size: u64) -> SignedCheckpoint {
        let checkpoint = Checkpoint::new(name(ORIGIN), self.head_at(size));
        log().sign(checkpoint).unwrap()
    }
}

/// RFC 6962, section 2.1, word for word: the tree over a list.
pub(crate) mod definition {
    use caretaker::log::TreeHash;

    fn split(leaves: usize) -> usize {
        let mut k = 1;
        while k * 2 < leaves {
            k *= 2;
        }
        k
    }

    pub(crate) fn root(leaves: &[TreeHash]) -> TreeHash {
        match leaves {
            [] => TreeHash::of_nothing(),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(split(leaves.len()));
                TreeHash::of_node(&root(left), &root(right))
            }
        }
    }

    pub(crate) fn path(index: usize, leaves: &[TreeHash]) -> Vec<TreeHash> {
        if leaves.len() <= 1 {
            return Vec::new();
        }
        let k = split(leaves.len());
        let (left, right) = leaves.split_at(k);
        let (mut path, sibling) = if index < k {
            (self::path(index, left), root(right))
        } else {
            (self::path(index - k, right), root(left))
        };
        path.push(sibling);
        path
    }

    pub(crate) fn consistency(old: usize, leaves: &[TreeHash]) -> Vec<TreeHash> {
        subproof(old, leaves, true)
    }

    fn subproof(old: usize, leaves: &[TreeHash], whole: bool) -> Vec<TreeHash> {
        if old == leaves.len() {
            return if whole {
                Vec::new()
            } else {
                vec![root(leaves)]
            };
        }
        let k = split(leaves.len());
        let (left, right) = leaves.split_at(k);
        let (mut proof, sibling) = if old <= k {
            (subproof(old, left, whole), root(right))
        } else {
            (subproof(old - k, right, false), root(left))
        };
        proof.push(sibling);
        proof
    }
}
