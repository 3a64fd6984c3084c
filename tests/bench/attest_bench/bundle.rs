//! One incident's bundle, as an auditor is handed it: from the file to the verdict.

use std::collections::BTreeMap;
use std::time::Instant;

use caretaker::attest::chain::Verdict;
use caretaker::audit::{BundleContents, log_origin};
use caretaker::log::{Checkpoint, Frontier, LogProof, LogSigner, Node, ProofPlan, TreeHash};
use caretaker::verifier::{Request, verify};
use serde::{Deserialize, Serialize};

use super::incidents::{log_key, long, nothing_yet, trust_root};
use crate::Tried;

/// Leaves of the log that a bundle's proofs are from: a proof has seventeen hashes.
const LEAVES: usize = 100_000;
/// How often it is verified.
const TIMES: usize = 200;

/// What one verification takes.
#[derive(Serialize, Deserialize)]
pub(crate) struct Bundle {
    /// In the bundle.
    pub(crate) events: usize,
    /// Of the file.
    pub(crate) bytes: usize,
    /// In the middle of all times.
    pub(crate) median_millis: f64,
    /// The slowest but two of a hundred.
    pub(crate) slow_millis: f64,
}

/// Writes a bundle of about as many events and verifies it.
pub(crate) fn measured(events: usize) -> Tried<Bundle> {
    let (bytes, events) = written(events)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("incident.caretaker");
    std::fs::write(&path, &bytes)?;
    let request = Request {
        bundle: path,
        trust_root: trust_root()?.digest().to_string(),
        checkpoint: None,
        state: None,
        policy: None,
    };
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let begin = Instant::now();
        let verdict = verify(&request)?.verdict();
        times.push(begin.elapsed().as_secs_f64() * 1_000.0);
        if verdict != Verdict::Valid {
            return Err("the bundle is not valid".into());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(Bundle {
        events,
        bytes: bytes.len(),
        median_millis: times[TIMES / 2],
        slow_millis: times[TIMES * 98 / 100],
    })
}

fn written(events: usize) -> Tried<(Vec<u8>, usize)> {
    let ledger = long(&nothing_yet()?, events);
    let mut tree = Frontier::new();
    let mut nodes: BTreeMap<Node, TreeHash> = BTreeMap::new();
    let mut places = Vec::new();
    let apart = LEAVES / ledger.envelopes.len();
    for leaf in 0..LEAVES {
        let own = ledger.envelopes.get(leaf / apart);
        let own = own.filter(|_| leaf.is_multiple_of(apart));
        if own.is_some() {
            places.push(leaf as u64);
        }
        let bytes = own
            .cloned()
            .unwrap_or_else(|| leaf.to_string().into_bytes());
        tree.append_with(TreeHash::of_leaf(&bytes), |node, hash| {
            nodes.insert(node, hash);
        })?;
    }
    let origin = log_origin("example")?;
    let signer = LogSigner::new(origin.clone(), log_key());
    let checkpoint = signer.sign(Checkpoint::new(origin, tree.head()))?;
    let mut contents = BundleContents {
        trust_roots: vec![(1, trust_root()?.to_bytes()?)],
        ..BundleContents::default()
    };
    for (place, envelope) in places.into_iter().zip(&ledger.envelopes) {
        let plan = ProofPlan::inclusion(place, tree.size())?;
        let hashes = plan.build(|node| nodes.get(&node).copied().ok_or("no such node"))?;
        let proof = LogProof::new(place, hashes, checkpoint.clone())?.to_string();
        contents.events.push((envelope.clone(), proof.into_bytes()));
    }
    let events = contents.events.len();
    Ok((contents.write()?, events))
}
