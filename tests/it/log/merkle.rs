//! The tree and its proofs against the vectors of others, the definition of RFC 6962 and another implementation.

use caretaker::log::{
    Frontier, MAX_PROOF, MAX_SIZE, Node, ProofError, ProofPlan, TreeError, TreeHash, TreeHead,
    verify_consistency, verify_inclusion,
};
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;
use serde_json::Value;
use sha2::Sha256;

use super::scene::{Stored, definition, entry, leaf};
use crate::support::corpus_folder;

/// A hash of a vector; none where it does not have 32 bytes, which is refused before any proof is looked at.
fn hash(value: &Value) -> Option<TreeHash> {
    value.as_str().unwrap_or_default().parse().ok()
}

fn proof(vector: &Value) -> Option<Vec<TreeHash>> {
    let hashes = vector["proof"].as_array().into_iter().flatten();
    hashes.map(hash).collect()
}

fn inclusion_vector(vector: &Value, size: &str) -> Option<()> {
    let head = TreeHead::new(vector[size].as_u64()?, hash(&vector["root"])?).ok()?;
    let leaf = hash(&vector["leafHash"])?;
    verify_inclusion(leaf, vector["leafIdx"].as_u64()?, &proof(vector)?, &head).ok()
}

fn consistency_vector(vector: &Value, old: &str, new: &str) -> Option<()> {
    let old = TreeHead::new(vector[old].as_u64()?, hash(&vector["root1"])?).ok()?;
    let new = TreeHead::new(vector[new].as_u64()?, hash(&vector["root2"])?).ok()?;
    verify_consistency(&old, &new, &proof(vector)?).ok()
}

#[test]
fn the_vectors_of_others_are_decided_as_they_say() {
    let Some(files) = corpus_folder("attest/vectors/merkle/testdata") else {
        return;
    };
    let (mut decided, mut accepted, mut of_other_length) = (0, 0, 0);
    for (path, bytes) in files {
        let vector: Value = serde_json::from_slice(&bytes).unwrap();
        let kind = path.split('/').next().unwrap();
        // Subtrees that do not begin at the first leaf, or are empty, are no trees of ours.
        let whole = vector["start"] == 0 && vector["end"] != 0;
        let found = match kind {
            "inclusion" => inclusion_vector(&vector, "treeSize"),
            "consistency" => consistency_vector(&vector, "size1", "size2"),
            "subtreeinclusion" if whole => inclusion_vector(&vector, "end"),
            "subtreeconsistency" if whole => consistency_vector(&vector, "end", "size"),
            _ => continue,
        };
        decided += 1;
        if path.ends_with("sizes-are-equal-one-and-proof-is-empty.json") {
            // Its two equal roots have 12 bytes, which is no hash here.
            of_other_length += 1;
            continue;
        }
        accepted += usize::from(found.is_some());
        assert_eq!(found.is_some(), vector["wantErr"] == false, "{path}");
    }
    assert_eq!((decided, accepted, of_other_length), (380, 22, 2));
}

#[test]
fn a_leaf_cannot_be_passed_off_as_a_node() {
    let (left, right) = (leaf(0), leaf(1));
    let node = TreeHash::of_node(&left, &right);
    let mut children = left.as_bytes().to_vec();
    children.extend_from_slice(right.as_bytes());
    assert_ne!(TreeHash::of_leaf(&children), node);
    children.insert(0, 0x01);
    assert_ne!(TreeHash::of_leaf(&children), node);
    // The values of RFC 6962's tests.
    assert_eq!(
        TreeHash::of_leaf(b"").to_digest().to_string(),
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    );
    assert_eq!(
        Frontier::new().root().to_digest().to_string(),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

#[test]
fn the_growing_tree_is_the_one_of_the_definition_and_of_another_implementation() {
    let mut other = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    let mut frontier = Frontier::new();
    let mut leaves = Vec::new();
    for index in 0..=300 {
        assert_eq!(frontier.size(), index as u64);
        assert_eq!(frontier.root(), definition::root(&leaves), "{index}");
        if index > 0 {
            assert_eq!(
                frontier.root().as_bytes()[..],
                other.root().as_bytes()[..],
                "{index}"
            );
        }
        frontier.append(leaf(index)).unwrap();
        leaves.push(leaf(index));
        other.push(entry(index));
    }
}

#[test]
fn a_tree_goes_on_from_its_stored_nodes() {
    let stored = Stored::of(200);
    for size in 0..200 {
        let peaks = Node::peaks(size).unwrap();
        let hashes = peaks.iter().map(|node| stored.nodes[node]).collect();
        let mut frontier = Frontier::from_peaks(size, hashes).unwrap();
        assert_eq!(frontier.head(), stored.head_at(size));
        for index in size..200 {
            frontier
                .append(leaf(usize::try_from(index).unwrap()))
                .unwrap();
        }
        assert_eq!(frontier, stored.frontier);
    }
    assert_eq!(
        Frontier::from_peaks(3, vec![leaf(0)]),
        Err(TreeError::Peaks {
            size: 3,
            expected: 2,
            found: 1
        })
    );
}

#[test]
fn every_tree_extends_every_earlier_one_and_no_later_one() {
    let stored = Stored::of(200);
    let leaves: Vec<_> = (0..200).map(leaf).collect();
    let mut other = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    for new in 1..=200_usize {
        other.push(entry(new - 1));
        for old in 1..=new {
            let proof = stored.consistency(old as u64, new as u64);
            assert_eq!(proof, definition::consistency(old, &leaves[..new]));
            let theirs = other.prove_consistency(new - old);
            let bytes: Vec<u8> = proof.iter().flat_map(TreeHash::as_bytes).copied().collect();
            assert_eq!(bytes, theirs.as_bytes());
            let (old, new) = (stored.head_at(old as u64), stored.head_at(new as u64));
            verify_consistency(&old, &new, &proof).unwrap();
            if old != new {
                assert!(matches!(
                    verify_consistency(&new, &old, &proof),
                    Err(ProofError::Shrunk { .. })
                ));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_entry_of_a_tree_is_proved_at_its_place_alone(size in 1_usize..300) {
        let stored = Stored::of(size);
        let leaves: Vec<_> = (0..size).map(leaf).collect();
        for index in 0..size {
            let proof = stored.inclusion(index as u64, size as u64);
            prop_assert_eq!(&proof, &definition::path(index, &leaves));
            verify_inclusion(leaf(index), index as u64, &proof, &stored.head()).unwrap();
            for elsewhere in [index ^ 1, index ^ 2, index + 1, size, size + index] {
                if elsewhere != index {
                    verify_inclusion(leaf(index), elsewhere as u64, &proof, &stored.head())
                        .unwrap_err();
                }
            }
        }
    }
}

/// The hash with one of its 256 bits turned.
fn turned(hash: TreeHash, bit: usize) -> TreeHash {
    let mut bytes = *hash.as_bytes();
    bytes[bit / 8 % 32] ^= 1 << (bit % 8);
    TreeHash::from_bytes(bytes)
}

fn turned_head(head: TreeHead, bit: usize) -> TreeHead {
    TreeHead::new(head.size(), turned(head.root(), bit)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_changed_bit_ends_every_proof(
        size in 1_u64..200,
        place in any::<prop::sample::Index>(),
        bit in 0_usize..256,
    ) {
        let stored = Stored::of(usize::try_from(size).unwrap());
        let index = place.index(usize::try_from(size).unwrap());
        let (head, entry) = (stored.head(), leaf(index));
        let index = index as u64;
        let path = stored.inclusion(index, size);
        verify_inclusion(turned(entry, bit), index, &path, &head).unwrap_err();
        verify_inclusion(entry, index, &path, &turned_head(head, bit)).unwrap_err();
        for at in 0..path.len() {
            let mut changed = path.clone();
            changed[at] = turned(changed[at], bit);
            verify_inclusion(entry, index, &changed, &head).unwrap_err();
            changed.remove(at);
            verify_inclusion(entry, index, &changed, &head).unwrap_err();
        }
        let old = stored.head_at(index + 1);
        let proof = stored.consistency(old.size(), size);
        verify_consistency(&old, &head, &proof).unwrap();
        verify_consistency(&turned_head(old, bit), &head, &proof).unwrap_err();
        verify_consistency(&old, &turned_head(head, bit), &proof).unwrap_err();
        for at in 0..proof.len() {
            let mut changed = proof.clone();
            changed[at] = turned(changed[at], bit);
            verify_consistency(&old, &head, &changed).unwrap_err();
            changed.remove(at);
            verify_consistency(&old, &head, &changed).unwrap_err();
        }
    }
}

#[test]
fn nothing_is_consistent_with_nothing() {
    let stored = Stored::of(9);
    let head = stored.head();
    let nothing = Frontier::new().head();
    for proof in [vec![], stored.consistency(4, 9)] {
        assert_eq!(
            verify_consistency(&nothing, &head, &proof),
            Err(ProofError::FromNothing)
        );
        assert_eq!(
            verify_consistency(&nothing, &nothing, &proof),
            Err(ProofError::FromNothing)
        );
    }
    assert_eq!(ProofPlan::consistency(0, 9), Err(ProofError::FromNothing));
    // A tree without leaves has no other root, and no entry.
    TreeHead::new(0, leaf(0)).unwrap_err();
    assert_eq!(
        verify_inclusion(leaf(0), 0, &[], &nothing),
        Err(ProofError::OutOfTree { index: 0, size: 0 })
    );
}

#[test]
fn a_second_history_and_a_restored_one_are_named() {
    let stored = Stored::of(9);
    let head = stored.head();
    let other = turned_head(head, 0);
    assert!(matches!(
        verify_consistency(&head, &other, &[]),
        Err(ProofError::Fork { size: 9, .. })
    ));
    assert_eq!(
        verify_consistency(&head, &stored.head_at(8), &[]),
        Err(ProofError::Shrunk { old: 9, new: 8 })
    );
    // Equal trees need no proof, and take none.
    verify_consistency(&head, &head, &[]).unwrap();
    assert_eq!(
        verify_consistency(&head, &head, &[leaf(0)]),
        Err(ProofError::Shape { length: 1 })
    );
    assert!(stored.consistency(9, 9).is_empty());
    assert_eq!(
        verify_consistency(&stored.head_at(3), &head, &[]),
        Err(ProofError::Shape { length: 0 })
    );
}

#[test]
fn a_proof_has_the_shape_of_its_tree() {
    // Roots chosen so that the hashes of a proof that is one too long lead to them, as a lying log could sign them.
    let over = |root: TreeHash| TreeHash::of_node(&leaf(9), &root);
    let one = TreeHead::new(1, over(leaf(0))).unwrap();
    assert_eq!(
        verify_inclusion(leaf(0), 0, &[leaf(9)], &one),
        Err(ProofError::Shape { length: 1 })
    );
    let stored = Stored::of(4);
    let raised = |size| TreeHead::new(size, over(stored.head_at(size).root())).unwrap();
    let mut proof = stored.consistency(3, 4);
    proof.push(leaf(9));
    assert_eq!(
        verify_consistency(&raised(3), &raised(4), &proof),
        Err(ProofError::Shape { length: 4 })
    );
}

#[test]
fn proofs_of_more_than_63_hashes_are_refused_by_length() {
    let largest = TreeHead::new(MAX_SIZE, leaf(0)).unwrap();
    let path = vec![leaf(1); MAX_PROOF];
    // The longest proof fits the largest tree's shape: what fails is its root.
    assert!(matches!(
        verify_inclusion(leaf(0), 0, &path, &largest),
        Err(ProofError::Root { .. })
    ));
    let one = TreeHead::new(1, leaf(0)).unwrap();
    assert!(matches!(
        verify_consistency(&one, &largest, &path),
        Err(ProofError::Root { .. })
    ));
    for length in [64, 65, 1_000_000] {
        let path = vec![leaf(1); length];
        let refused = Err(ProofError::TooLong { length });
        assert_eq!(verify_inclusion(leaf(0), 0, &path, &largest), refused);
        assert_eq!(verify_consistency(&one, &largest, &path), refused);
        assert_eq!(verify_consistency(&largest, &largest, &path), refused);
    }
}

#[test]
fn a_tree_has_fewer_than_2_to_the_63_leaves() {
    for size in [1 << 63, (1 << 63) + 1, u64::MAX] {
        let refused = TreeError::TooLarge { size };
        assert_eq!(TreeHead::new(size, leaf(0)), Err(refused.clone()));
        assert_eq!(Node::peaks(size), Err(refused.clone()));
        assert_eq!(Frontier::from_peaks(size, vec![]), Err(refused.clone()));
        for plan in [
            ProofPlan::inclusion(0, size),
            ProofPlan::consistency(1, size),
            ProofPlan::root(size),
        ] {
            assert_eq!(plan, Err(ProofError::Tree(refused.clone())));
        }
    }
    let mut full = Frontier::from_peaks(MAX_SIZE, vec![leaf(0); 63]).unwrap();
    let before = full.clone();
    full.append(leaf(1)).unwrap_err();
    assert_eq!(full, before);
    for index in [MAX_SIZE, u64::MAX] {
        let head = TreeHead::new(MAX_SIZE, leaf(0)).unwrap();
        assert!(matches!(
            verify_inclusion(leaf(0), index, &[], &head),
            Err(ProofError::OutOfTree { .. })
        ));
        assert!(ProofPlan::inclusion(index, MAX_SIZE).is_err());
    }
    for (level, index) in [(0, MAX_SIZE), (62, 1), (63, 0), (64, 0), (255, 0)] {
        Node::new(level, index).unwrap_err();
    }
    assert_eq!(Node::new(62, 0).unwrap().first_leaf(), 0);
}

#[test]
fn a_proof_reads_few_nodes_however_large_the_tree() {
    for size in [1, 2, 1_000_000, (1 << 40) + 12_345, 1 << 62, MAX_SIZE] {
        for index in [0, size / 3, size / 2, size - 1] {
            let inclusion = ProofPlan::inclusion(index, size).unwrap();
            let consistency = ProofPlan::consistency(index + 1, size).unwrap();
            for plan in [inclusion, consistency] {
                assert!(plan.nodes().count() <= 126, "{index} {size}");
                for node in plan.nodes() {
                    Node::new(node.level(), node.index()).unwrap();
                    let leaves = node.first_leaf() + (1 << node.level());
                    assert!(leaves <= size, "{node:?} of {size}");
                }
            }
        }
    }
}
