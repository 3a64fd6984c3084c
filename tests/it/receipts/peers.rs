//! The published program reads our tokens and receipts, and we its. Needs a Python with it, named by `CARETAKER_INTEROP_PYTHON`
//! (`tests/run --peers` makes one); without one nothing is tried.

use std::path::PathBuf;
use std::process::Command;

use caretaker::attest::json::read;
use caretaker::receipts::canonical::to_canonical;
use caretaker::receipts::verify::Reader;
use caretaker::receipts::{Narrowing, PemKey, Token, Walk, public_pem, read_public_pem};
use serde_json::{Value, json};

use super::desk::{
    Expectation, GATE, ISSUER, NOON, agent, asked, at, chain_of, constraints, gate, grant, issuer,
    json as strict, receipted, said, token, trusting, verdict, verified,
};

/// The other program, and a folder to meet in.
struct Peer {
    python: std::ffi::OsString,
    folder: tempfile::TempDir,
}

impl Peer {
    fn found() -> Option<Self> {
        let python = std::env::var_os("CARETAKER_INTEROP_PYTHON")?;
        let folder = tempfile::tempdir().unwrap();
        let peer = Self { python, folder };
        for number in [ISSUER, GATE] {
            let (key, pem) = PemKey::generate(&mut |buffer: &mut [u8]| {
                buffer.fill(number);
                Ok(())
            })
            .unwrap();
            peer.file(&format!("{number}.pem"), &pem);
            peer.file(&format!("{number}.pub"), &public_pem(&key.public()));
        }
        Some(peer)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn ask(&self, words: &[&str]) -> Value {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/receipts.py");
        let output = Command::new(&self.python)
            .arg(script)
            .args(words)
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&told).unwrap_or_else(|_| {
            panic!(
                "{words:?}: {told}{}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }

    fn verifies(&self, file: &str) -> bool {
        self.file("receipts.jsonl", file);
        self.ask(&["verify", "receipts.jsonl", "2.pub"])["valid"] == true
    }
}

const PURPOSE: &str = r#"{"statement":"Pay what is due — à temps 🔑","tools":["pay"],"constraints":{"allowed_values":{"to":["ada"]}}}"#;

#[test]
fn its_verifier_accepts_our_receipts_and_rejects_changed_ones() {
    let Some(peer) = Peer::found() else { return };
    let plain = chain_of(5).0.concat();
    let bound = receipted(
        &gate(),
        &token("pay", "{}", Some(PURPOSE)),
        "pay",
        r#"{"to":"ada"}"#,
    );
    let denied = receipted(
        &gate(),
        &token("pay", "{}", Some(PURPOSE)),
        "pay",
        r#"{"to":"eve"}"#,
    );
    for file in [&plain, &bound, &denied] {
        assert!(
            peer.verifies(file),
            "{}",
            peer.ask(&["verify", "receipts.jsonl", "2.pub"])
        );
        let last = file.lines().last().unwrap();
        for place in [last.len() / 3, last.len() / 2, last.len() - 20] {
            let mut bytes = last.as_bytes().to_vec();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(
                !peer.verifies(&file.replace(last, &changed)),
                "byte {place}"
            );
        }
        // Without its root the chain has a parent that is not there.
        let (_, rest) = file.split_once('\n').unwrap();
        assert!(!peer.verifies(rest));
    }
}

#[test]
fn its_gate_takes_our_tokens_of_v1_and_none_with_an_intent() {
    let Some(peer) = Peer::found() else { return };
    let root = token(
        "pay",
        r#"{"max_value":{"amount":10},"forbidden_values":{"to":["eve","Bob"]}}"#,
        None,
    );
    let narrowing = Narrowing {
        agent: Some(agent("agent:fixer.a")),
        constraints: constraints(r#"{"max_value":{"amount":5},"required_present":["to"]}"#),
        ttl_seconds: Some(600),
        ..Narrowing::default()
    };
    let child = issuer(ISSUER)
        .attenuate(&root, &trusting(&[]), &narrowing, at(NOON))
        .unwrap();
    peer.file("root.json", &root.to_text());
    peer.file("child.json", &child.to_text());
    peer.file("bound.json", &token("pay", "{}", Some(PURPOSE)).to_text());
    let now = (NOON + 60).to_string();
    let ask = |arguments: &str, tokens: &[&str]| {
        let mut words = vec!["gate", "1.pub", &now, "pay", arguments];
        words.extend(tokens);
        peer.ask(&words)
    };
    assert_eq!(ask(r#"{"amount":10}"#, &["root.json"])["allowed"], true);
    assert_eq!(ask(r#"{"amount":11}"#, &["root.json"])["allowed"], false);
    assert_eq!(
        ask(r#"{"amount":5,"to":"ada"}"#, &["child.json", "root.json"])["allowed"],
        true
    );
    assert_eq!(
        ask(r#"{"amount":6,"to":"ada"}"#, &["child.json", "root.json"])["allowed"],
        false
    );
    // It knows no intents, so it takes the member for a change to what was signed: closed, not open.
    let bound = ask(r#"{"to":"ada"}"#, &["bound.json"]);
    assert_eq!(bound["allowed"], false);
    assert!(bound["reason"].as_str().unwrap().contains("bad signature"));
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let Some(peer) = Peer::found() else { return };
    let now = NOON.to_string();
    for limits in [
        "{}",
        r#"{"max_value":{},"min_value":{"a":-3}}"#,
        r#"{"allowed_values":{"é🔑":["b","a",2,true,1,false,"🔑",""]},"forbidden_values":{"x":["b","b"]}}"#,
        r#"{"starts_with":{"path":"src/"},"required_present":["z","a"],"forbidden_field_combinations":[["z","a"],["b"]]}"#,
    ] {
        let ours = issuer(ISSUER)
            .mint(&grant("pay", limits, None), at(NOON))
            .unwrap();
        let wanted = json!({"agent_id": "agent:fixer", "tool": "pay", "ttl_seconds": 3600,
            "constraints": serde_json::from_str::<Value>(limits).unwrap()});
        let theirs = peer.ask(&["mint", "1.pem", &now, &wanted.to_string()]);
        // Ed25519 is deterministic: the same body has the same signature, and the same name.
        let theirs = Token::parse(theirs.to_string().as_bytes()).unwrap();
        assert_eq!(theirs.to_text(), ours.to_text());

        peer.file("parent.json", &ours.to_text());
        let later = (NOON + 7).to_string();
        let wanted = json!({"extra_constraints": {"max_value": {"n": 9}, "required_present": ["q"]},
            "narrower_ttl_seconds": 60, "narrower_agent_id": "agent:fixer.a"});
        let theirs = peer.ask(&[
            "attenuate",
            "1.pem",
            &later,
            "parent.json",
            &wanted.to_string(),
        ]);
        let narrowing = Narrowing {
            agent: Some(agent("agent:fixer.a")),
            constraints: constraints(r#"{"max_value":{"n":9},"required_present":["q"]}"#),
            ttl_seconds: Some(60),
            ..Narrowing::default()
        };
        let ours = issuer(ISSUER).attenuate(&ours, &trusting(&[]), &narrowing, at(NOON + 7));
        let theirs = Token::parse(theirs.to_string().as_bytes()).unwrap();
        let (ours, theirs) = (ours.unwrap(), theirs);
        if limits.contains(r#"["b","b"]"#) {
            // It keeps repetitions that a child need not have, and its own gate then refuses the child.
            assert!(
                ours.claims()
                    .constraints
                    .narrows(&theirs.claims().constraints)
                    .is_ok()
            );
        } else {
            assert_eq!(theirs.to_text(), ours.to_text());
        }
    }
}

#[test]
fn its_tokens_are_ours_to_judge() {
    let Some(peer) = Peer::found() else { return };
    let wanted = json!({"agent_id": "agent:fixer", "tool": "pay", "constraints": {"max_value": {"amount": 10}}});
    let theirs = peer.ask(&["mint", "1.pem", &NOON.to_string(), &wanted.to_string()]);
    let theirs = Token::parse(serde_json::to_string_pretty(&theirs).unwrap().as_bytes()).unwrap();
    assert_eq!(
        said(&asked(&gate(), &theirs, &[], "pay", r#"{"amount":10}"#)),
        "ALLOW"
    );
    assert!(
        said(&asked(&gate(), &theirs, &[], "pay", r#"{"amount":11}"#)).starts_with("constraints")
    );
}

#[test]
fn its_receipts_are_ours_to_verify() {
    let Some(peer) = Peer::found() else { return };
    let told = peer.ask(&["log", "2.pem", "theirs.jsonl"]);
    assert_eq!(
        (&told["valid"], &told["count"]),
        (&json!(true), &json!(6)),
        "{told}"
    );
    let file = std::fs::read_to_string(peer.folder.path().join("theirs.jsonl")).unwrap();
    assert_eq!(verdict(&verified(&file)), "valid");
    let changed = file.replacen("\"jws\": \"e", "\"jws\": \"f", 1);
    assert!(changed != file && !verified(&changed).valid());
    let fewer: Vec<&str> = file.lines().skip(1).collect();
    assert!(verdict(&verified(&fewer.join("\n"))).contains("is not in the file"));
}

/// Both gates give the same answer, except where ours is stricter on purpose.
#[test]
fn both_gates_agree() {
    let Some(peer) = Peer::found() else { return };
    let limits = [
        r#"{"allowed_values":{"a":["x",1,true]}}"#,
        r#"{"allowed_values":{"a":[]}}"#,
        r#"{"forbidden_values":{"a":["x",1]}}"#,
        r#"{"max_value":{"a":3}}"#,
        r#"{"min_value":{"a":3}}"#,
        r#"{"starts_with":{"a":"src/"}}"#,
        r#"{"required_present":["a"]}"#,
        r#"{"forbidden_field_combinations":[["a","b"]]}"#,
        r#"{"forbidden_field_combinations":[[]]}"#,
    ];
    let calls = [
        r"{}",
        r#"{"a":"x"}"#,
        r#"{"a":"X"}"#,
        r#"{"a":1}"#,
        r#"{"a":true}"#,
        r#"{"a":false}"#,
        r#"{"a":0}"#,
        r#"{"a":3}"#,
        r#"{"a":4}"#,
        r#"{"a":null}"#,
        r#"{"a":[]}"#,
        r#"{"a":{}}"#,
        r#"{"a":["x",1]}"#,
        r#"{"a":["x",[2]]}"#,
        r#"{"a":{"x":"x"}}"#,
        r#"{"a":{"q":3}}"#,
        r#"{"a":"src/b"}"#,
        r#"{"a":"src/../b"}"#,
        r#"{"a":["src/b"]}"#,
        r#"{"a":1,"b":null}"#,
        r#"{"b":"x"}"#,
    ];
    let mut cases = Vec::new();
    let mut lines = String::new();
    for limits in limits {
        let token = token("pay", limits, None);
        for call in calls {
            let token_text = token.to_text();
            let line = format!("{{\"token\":{token_text},\"args\":{call}}}\n");
            lines.push_str(&line);
            cases.push((token.clone(), limits, call));
        }
    }
    peer.file("cases.jsonl", &lines);
    let told = peer.ask(&[
        "gates",
        "1.pub",
        &(NOON + 60).to_string(),
        "pay",
        "cases.jsonl",
    ]);
    let theirs = told["allowed"].as_array().unwrap();
    assert_eq!(theirs.len(), cases.len());
    let gate = gate();
    let mut stricter = Vec::new();
    for ((token, limits, call), theirs) in cases.iter().zip(theirs) {
        let ours = said(&asked(&gate, token, &[], "pay", call)) == "ALLOW";
        if ours != theirs.as_bool().unwrap() {
            assert!(!ours, "{limits} allows {call} here only");
            stricter.push(format!("{limits} {call}"));
        }
    }
    // `true` is listed beside 1 in the first, so that nothing but the path is left.
    assert_eq!(
        stricter,
        [r#"{"starts_with":{"a":"src/"}} {"a":"src/../b"}"#]
    );
}

#[test]
fn its_test_vectors_hold() {
    let Some(peer) = Peer::found() else { return };
    let vectors = peer.ask(&["vectors"]);
    let all = |name: &str| vectors[name].as_array().unwrap().clone();
    let spelt = all("canonicalization_vectors");
    let refused = all("invalid_canonicalization_vectors");
    assert!(
        spelt.len() >= 6 && refused.len() >= 3,
        "{} and {}",
        spelt.len(),
        refused.len()
    );
    for vector in spelt {
        let text = vector["input_object"].to_string();
        let canonical = hex::encode(to_canonical(&strict(&text)));
        assert_eq!(
            canonical,
            vector["expected_canonical_hex"].as_str().unwrap(),
            "{}",
            vector["name"]
        );
    }
    for vector in refused {
        let text = vector["input_text"].as_str().unwrap();
        assert!(
            read(text.as_bytes(), usize::MAX).is_err(),
            "{}",
            vector["name"]
        );
    }
    let pem = vectors["public_key_pem"].as_str().unwrap();
    let keys = caretaker::receipts::TrustedKeys::new([read_public_pem(pem).unwrap()]);
    let reader = Reader::new(&keys, &[]);
    let mut walk = Walk::default();
    let receipts = all("vectors");
    let bad = all("invalid_receipt_vectors");
    assert!(receipts.len() >= 5 && bad.len() >= 4);
    for vector in &bad {
        let jws = vector["jws"].as_str().unwrap();
        let hash = caretaker::receipts::ReceiptHash::of(jws);
        let line = json!({"receipt_hash": hash.to_string(), "jws": jws}).to_string();
        assert!(reader.read(line.as_bytes()).is_err(), "{}", vector["name"]);
    }
    for vector in &receipts {
        let jws = vector["expected_jws"].as_str().unwrap();
        let hash = caretaker::receipts::ReceiptHash::of(jws);
        let line = json!({"receipt_hash": hash.to_string(), "jws": jws}).to_string();
        walk.next(Some(reader.read(line.as_bytes())));
    }
    let report = walk.finish(&Expectation::default());
    assert_eq!(
        report.receipts,
        receipts.len() as u64,
        "{}",
        verdict(&report)
    );
}
