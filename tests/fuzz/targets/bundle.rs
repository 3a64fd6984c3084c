//! Bundles: as files, and with members that were changed inside.

use std::collections::BTreeMap;

use caretaker::attest::chain::Verdict;
use caretaker::attest::trust_root::SideKey;
use caretaker::attest::{List, SecretKey, TrustRoot};
use caretaker::audit::{Archive, BundleContents, Pin, log_origin, verify_bundle, write_archive};
use caretaker::log::{Checkpoint, Frontier, LogProof, LogSigner, Node, ProofPlan, TreeHash};

use super::super::change::{Random, changed};
use super::super::ledger::{Ledger, label, root_document, root_key};
use super::{Reshape, Target, words};

pub(super) fn targets() -> Vec<Target> {
    vec![
        archive(),
        bundle("bundle", None),
        bundle("bundle-parts", Some(reshape)),
    ]
}

fn trust_root() -> Option<TrustRoot> {
    let mut document = root_document();
    let key = SideKey::from_public(label("log"), SecretKey::from_seed(&[77; 32]).public());
    document.side_keys = Some(List::first_of([key]));
    TrustRoot::sign(&document, &[&root_key(0)]).ok()
}

/// A sound bundle of four events, and its lines.
fn sound() -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let root = trust_root()?;
    let mut ledger = Ledger::new();
    ledger.trust = root.clone().into();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger.execute(|_| ());
    let (mut tree, mut nodes) = (Frontier::new(), BTreeMap::<Node, TreeHash>::new());
    for envelope in &ledger.envelopes {
        for leaf in [b"another's".as_slice(), envelope] {
            let grown = tree.append_with(TreeHash::of_leaf(leaf), |node, hash| {
                nodes.insert(node, hash);
            });
            grown.ok()?;
        }
    }
    let origin = log_origin("example").ok()?;
    let signer = LogSigner::new(origin.clone(), SecretKey::from_seed(&[77; 32]));
    let checkpoint = signer.sign(Checkpoint::new(origin, tree.head())).ok()?;
    let mut contents = BundleContents {
        trust_roots: vec![(1, root.to_bytes().ok()?)],
        ..BundleContents::default()
    };
    for (place, envelope) in (1_u64..).step_by(2).zip(&ledger.envelopes) {
        let plan = ProofPlan::inclusion(place, tree.size()).ok()?;
        let hashes = plan
            .build(|node| nodes.get(&node).copied().ok_or(()))
            .ok()?;
        let proof = LogProof::new(place, hashes, checkpoint.clone()).ok()?;
        let proof = proof.to_string().into_bytes();
        contents.events.push((envelope.clone(), proof));
    }
    let document = b"a document".to_vec();
    contents
        .evidence
        .push((caretaker::change::Sha256Digest::of(&document), document));
    Some((contents.write().ok()?, ledger.envelopes))
}

/// One form only.
fn archive() -> Target {
    let good = sound().map(|(bytes, _)| bytes);
    Target::new("archive", good.into_iter().collect(), |bytes| {
        let archive = Archive::parse(bytes).map_err(words)?;
        let members = archive
            .members()
            .map(|(name, content)| (name.to_owned(), content.to_vec()));
        assert_eq!(write_archive(&members.collect()).map_err(words)?, bytes);
        Ok(())
    })
}

/// Valid are only the first events of what was signed and logged, unchanged.
fn bundle(name: &'static str, reshape: Option<Reshape>) -> Target {
    let (Some((good, lines)), Some(root)) = (sound(), trust_root()) else {
        return Target::new(name, Vec::new(), |_| Err("no bundle".to_owned()));
    };
    let pin = Pin::Root(Box::new(root));
    let mut target = Target::new(name, vec![good], move |bytes| {
        let report = verify_bundle(bytes, &pin, None).map_err(words)?;
        if report.report.verdict != Verdict::Valid {
            let failure = report.report.failures.first();
            return Err(failure.map_or_else(String::new, ToString::to_string));
        }
        let archive = Archive::parse(bytes).map_err(words)?;
        let events = archive.member("events.jsonl").unwrap_or_default();
        let found: Vec<&[u8]> = events.split(|byte| *byte == b'\n').collect();
        // The last line ends with a line break, behind which is nothing.
        let count = found.len().saturating_sub(1);
        assert!(count > 0, "nothing is valid");
        assert!(
            found
                .iter()
                .zip(&lines)
                .take(count)
                .all(|(found, line)| found == line)
                && count <= lines.len(),
            "valid, but not what was signed"
        );
        Ok(())
    });
    target.reshape = reshape;
    target
}

/// Changes members inside of a bundle that stays one outside.
fn reshape(random: &mut Random, bundles: &[Vec<u8>]) -> Vec<u8> {
    let bundle = random.one_of(bundles).cloned().unwrap_or_default();
    let Ok(archive) = Archive::parse(&bundle) else {
        return bundle;
    };
    let members = archive
        .members()
        .map(|(name, content)| (name.to_owned(), content.to_vec()));
    let mut members: BTreeMap<String, Vec<u8>> = members.collect();
    let all: Vec<Vec<u8>> = members.values().cloned().collect();
    for _ in 0..=random.below(2) {
        let names: Vec<String> = members.keys().cloned().collect();
        let Some(name) = random.one_of(&names) else {
            break;
        };
        match random.below(8) {
            0 => drop(members.remove(name)),
            1 => {
                let content = members.get(name).cloned().unwrap_or_default();
                let other = changed(random, &[name.clone().into_bytes()], 64);
                members.insert(String::from_utf8_lossy(&other).into_owned(), content);
            }
            2 => {
                let content = random.one_of(&all).cloned().unwrap_or_default();
                members.insert(name.clone(), content);
            }
            _ => {
                let own = members.get(name).cloned().unwrap_or_default();
                let content = changed(random, &[own], 200_000);
                members.insert(name.clone(), content);
            }
        }
    }
    write_archive(&members).unwrap_or(bundle)
}
