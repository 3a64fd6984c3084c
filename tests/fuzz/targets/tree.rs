//! The log: notes, checkpoints, proofs, tiles, leaves, and what a verifier remembers.

use std::collections::BTreeMap;

use caretaker::attest::{SecretKey, TrustHistory};
use caretaker::audit::{LogFiles, LogMemory, log_origin, verify_log};
use caretaker::log::{
    AuditorPolicy, Checkpoint, Frontier, HashTile, KeyName, Leaf, LogPolicy, LogProof, LogSigner,
    Node, ProofPlan, Record, SignatureType, SignedCheckpoint, SignedNote, TileId, TileKind,
    TreeHash, VerifierKey, WitnessSigner, read_entries, read_signing_key, write_entries,
};

use super::super::ledger::{Ledger, NOW, trust_root};
use super::{Target, text, words};

pub(super) fn targets() -> Vec<Target> {
    vec![
        note(),
        checkpoint(),
        proof(),
        entries(),
        leaf(),
        path(),
        log_key(),
        auditor_policy(),
        memory(),
    ]
}

/// A log in memory.
struct Log {
    leaves: Vec<Vec<u8>>,
    tree: Frontier,
    nodes: BTreeMap<Node, TreeHash>,
}

impl Log {
    fn new() -> Self {
        let mut leaves: Vec<Vec<u8>> = trust_root().to_bytes().into_iter().collect();
        leaves.extend(Ledger::merged().envelopes);
        let beat = Leaf::record(Record::Heartbeat { at: NOW }).and_then(|leaf| leaf.to_bytes());
        leaves.extend(beat);
        let (mut tree, mut nodes) = (Frontier::new(), BTreeMap::new());
        for leaf in &leaves {
            let grown = tree.append_with(TreeHash::of_leaf(leaf), |node, hash| {
                nodes.insert(node, hash);
            });
            assert!(grown.is_ok());
        }
        Self {
            leaves,
            tree,
            nodes,
        }
    }
}

impl LogFiles for Log {
    fn file(&self, tile: TileId) -> Result<Vec<u8>, String> {
        if tile.kind() == TileKind::Entries {
            let first = usize::try_from(tile.first_leaf()).map_err(words)?;
            let entries = self
                .leaves
                .get(first..first.saturating_add(usize::from(tile.width())));
            return write_entries(entries.ok_or("no such file")?).map_err(words);
        }
        let hashes = HashTile::nodes(tile).map(|node| self.nodes.get(&node).copied());
        let hashes = hashes.collect::<Option<Vec<_>>>().ok_or("no such file")?;
        Ok(HashTile::new(tile, hashes).map_err(words)?.to_bytes())
    }
}

/// The log, its signed checkpoint, its policy and a proof of its third leaf.
fn scene() -> Option<(Log, SignedCheckpoint, LogPolicy, LogProof)> {
    let log = Log::new();
    let origin = log_origin("example").ok()?;
    let signer = LogSigner::new(origin.clone(), SecretKey::from_seed(&[77; 32]));
    let witness = WitnessSigner::new(
        KeyName::new("witness.example").ok()?,
        SecretKey::from_seed(&[78; 32]),
    );
    let mut signed = signer.sign(Checkpoint::new(origin, log.tree.head())).ok()?;
    let policy = LogPolicy::new(vec![signer.verifier()], vec![witness.verifier()], 0).ok()?;
    let trusted = policy.verify(&signed).ok()?;
    signed.add(witness.cosign(&trusted, NOW).ok()?).ok()?;
    let plan = ProofPlan::inclusion(2, log.tree.size()).ok()?;
    let hashes = plan
        .build(|node| log.nodes.get(&node).copied().ok_or(()))
        .ok()?;
    let proof = LogProof::new(2, hashes, signed.clone()).ok()?;
    let proof = proof.with_extra(b"extra".to_vec()).ok()?;
    Some((log, signed, policy, proof))
}

fn note() -> Target {
    let good = scene().map(|(_, signed, ..)| signed.to_string().into_bytes());
    Target::new("note", good.into_iter().collect(), |bytes| {
        let note = SignedNote::parse(bytes).map_err(words)?;
        assert_eq!(note.to_string().as_bytes(), bytes);
        Ok(())
    })
}

/// No checkpoint is believed but the one that was signed.
fn checkpoint() -> Target {
    let Some((log, signed, policy, _)) = scene() else {
        return Target::new("checkpoint", Vec::new(), |_| Err("no scene".to_owned()));
    };
    let head = log.tree.head();
    Target::new(
        "checkpoint",
        vec![signed.to_string().into_bytes()],
        move |bytes| {
            let signed = SignedCheckpoint::parse(bytes).map_err(words)?;
            assert_eq!(signed.to_string().as_bytes(), bytes);
            let trusted = policy.verify(&signed).map_err(words)?;
            assert_eq!(trusted.head(), head, "nobody signed this");
            Ok(())
        },
    )
}

/// Nothing is proven but the leaf at its place.
fn proof() -> Target {
    let Some((log, _, policy, proof)) = scene() else {
        return Target::new("proof", Vec::new(), |_| Err("no scene".to_owned()));
    };
    Target::new(
        "proof",
        vec![proof.to_string().into_bytes()],
        move |bytes| {
            let proof = LogProof::parse(bytes).map_err(words)?;
            assert_eq!(proof.to_string().as_bytes(), bytes);
            for (place, leaf) in log.leaves.iter().enumerate() {
                if let Ok(included) = proof.verify(leaf, &policy) {
                    assert_eq!((included.index(), place), (2, 2), "another leaf is proven");
                }
            }
            Ok(())
        },
    )
}

fn entries() -> Target {
    let leaves = Log::new().leaves;
    let count = u16::try_from(leaves.len()).unwrap_or(1);
    Target::new(
        "entries",
        write_entries(&leaves).into_iter().collect(),
        move |bytes| {
            let mut told = Err("no width".to_owned());
            for width in [256, 1, 3, count] {
                let read = read_entries(bytes, width).map_err(words).map(|entries| {
                    assert_eq!(write_entries(&entries).map_err(words), Ok(bytes.to_vec()));
                });
                if told.is_err() {
                    told = read;
                }
            }
            told
        },
    )
}

fn leaf() -> Target {
    let mut good = Log::new().leaves;
    good.push(br#"{"caretaker-log":"rules/v1","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","bytes":5}"#.to_vec());
    good.push(br#"{"caretaker-log":"evidence/v1","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","bytes":5,"media_type":"text/plain"}"#.to_vec());
    Target::new("leaf", good, |bytes| {
        let leaf = Leaf::parse(bytes).map_err(words)?;
        assert_eq!(leaf.to_bytes().map_err(words)?, bytes);
        Ok(())
    })
}

fn path() -> Target {
    let good = [
        "tile/0/000",
        "tile/entries/x001/x234/067.p/8",
        "tile/7/000.p/1",
    ];
    let good = good.map(|path| path.as_bytes().to_vec()).to_vec();
    Target::new("tile-path", good, |bytes| {
        let path = text(bytes)?;
        let tile = TileId::parse(path).map_err(words)?;
        assert_eq!(tile.to_string(), path);
        Ok(())
    })
}

fn log_key() -> Target {
    let good = scene().map(|(_, signed, ..)| signed.note().signatures()[0].to_string());
    let public = log_origin("example").map(|name| {
        let key = SecretKey::from_seed(&[77; 32]).public();
        VerifierKey::new(name, SignatureType::Log, key).to_string()
    });
    let secret = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
    let good = good.into_iter().chain(public).chain([secret.to_owned()]);
    Target::new("log-key", good.map(String::into_bytes).collect(), |bytes| {
        let text = text(bytes)?;
        let secret = read_signing_key(text).map(|_| ());
        if let Ok(key) = text.parse::<VerifierKey>() {
            assert_eq!(key.to_string(), text);
            return Ok(());
        }
        secret.map_err(words)
    })
}

/// A checkpoint that no witness has seen meets only a policy that asks for none.
fn auditor_policy() -> Target {
    let unseen = scene().and_then(|(_, signed, ..)| {
        SignedCheckpoint::parse(signed.without_cosignatures().as_bytes()).ok()
    });
    let Some(unseen) = unseen else {
        return Target::new("policy", Vec::new(), |_| Err("no scene".to_owned()));
    };
    let key = |seed: u8, kind, name| {
        VerifierKey::new(name, kind, SecretKey::from_seed(&[seed; 32]).public())
    };
    let log = log_origin("example").map(|name| key(77, SignatureType::Log, name));
    let witness = KeyName::new("witness.example");
    let witness = witness.map(|name| key(78, SignatureType::Witness, name));
    let good = log.ok().zip(witness.ok()).map(|(log, witness)| {
        format!("log {log}\n# ours\nwitness ours {witness}\ngroup both any ours\nquorum both\n")
    });
    Target::new(
        "policy",
        good.into_iter().map(String::into_bytes).collect(),
        move |bytes| {
            let policy = AuditorPolicy::parse(bytes).map_err(words)?;
            if policy.judge(&unseen).is_ok() {
                let text = String::from_utf8_lossy(bytes).into_owned();
                let mut lines = text.lines().map(|line| line.split_ascii_whitespace());
                let nobody = lines.any(|words| words.eq(["quorum", "none"]));
                assert!(nobody, "a witness is asked for, and none was needed");
            }
            Ok(())
        },
    )
}

/// What an auditor's file says: with it as without it, nothing is valid that is not.
fn memory() -> Target {
    let log = Log::new();
    let trust: TrustHistory = trust_root().into();
    let (_, memory) = verify_log(&log, &trust, log.tree.head(), None, None, 1, &mut |_| {});
    let good = memory.and_then(|memory| serde_json::to_vec(&memory).ok());
    let mut tree = Frontier::new();
    let mut heads = vec![tree.head()];
    for leaf in &log.leaves {
        assert!(tree.append(TreeHash::of_leaf(leaf)).is_ok());
        heads.push(tree.head());
    }
    Target::new("memory", good.into_iter().collect(), move |bytes| {
        let memory: LogMemory = serde_json::from_slice(bytes).map_err(words)?;
        let claimed = (memory.size, memory.root);
        let (report, _) = verify_log(
            &log,
            &trust,
            log.tree.head(),
            None,
            Some(memory),
            1,
            &mut |_| {},
        );
        let valid = report.verdict == caretaker::attest::chain::Verdict::Valid;
        let seen = heads
            .iter()
            .any(|head| claimed == (head.size(), head.root().to_digest()));
        assert!(
            !valid || seen,
            "another history was taken for the one that was seen"
        );
        if valid {
            Ok(())
        } else {
            Err(report
                .failures
                .first()
                .map_or_else(String::new, ToString::to_string))
        }
    })
}
