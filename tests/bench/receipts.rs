//! What deciding about a call costs, and what verifying receipts does, beside the raw cost of the signatures and beside the published
//! program, all in one run: `cargo bench --bench receipts --no-default-features --features verifier`.
//!
//! Everything is on one core. `CARETAKER_INTEROP_PYTHON` names a Python that has raucle; without one those columns are left out.

use std::io::Write as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use caretaker::attest::json::read;
use caretaker::attest::{Label, SecretKey};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::receipts::verify::Reader;
use caretaker::receipts::{
    AgentId, Call, Constraints, Decision, Door, Expectation, Gate, GivenArguments, Grant, Intent,
    Issuer, Narrowing, PemKey, ReceiptChain, Revocations, Session, Token, ToolName, TrustedKeys,
    Walk, public_pem,
};
use ed25519_dalek::{Signature, Signer as _, SigningKey};
use serde_json::Value;

/// Receipts in a file.
const RECEIPTS: usize = 10_000;
/// How often a call is decided.
const CALLS: usize = 5_000;
const NOW: Millis = Millis(1_800_000_060_000);
const CALL: &str = r#"{"path":"src/parser/lib.rs","amount":3,"text":"fn main() {}"}"#;
const LIMITS: &str = r#"{"starts_with":{"path":"src/"},"max_value":{"amount":10}}"#;
const PURPOSE: &str = r#"{"statement":"Mend the parser","tools":["Edit"],"constraints":{"starts_with":{"path":"src/"}}}"#;

type Tried<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Tried<()> {
    let mut out = std::io::stdout();
    let folder = tempfile::tempdir()?;
    let peer = std::env::var_os("CARETAKER_INTEROP_PYTHON");
    let ask = |words: &[&str]| -> Tried<Option<Value>> {
        let Some(python) = &peer else { return Ok(None) };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/receipts.py");
        let mut command = Command::new(python);
        let command = command.arg(script).args(words).current_dir(folder.path());
        let output = command.output()?;
        Ok(Some(serde_json::from_slice(&output.stdout)?))
    };
    let (limit, key) = (raw(), pem());
    std::fs::write(folder.path().join("key.pub"), public_pem(&key.public()))?;
    writeln!(
        out,
        "verify_strict alone: {:.1} µs, {:.0} a second on one core\n\n| a call under | median (µs) | 95 of 100 (µs) |\n|---|---|---|",
        1e6 / limit,
        limit
    )?;
    for (words, purpose) in [("v1", None), ("v1.2, with an intent", Some(PURPOSE))] {
        let (token, chain) = family(purpose)?;
        for (how, memory) in [
            ("nothing remembered", Memory::Nothing),
            ("ancestors remembered", Memory::Ancestors),
            ("all remembered", Memory::All),
        ] {
            let (median, slow) = calls(&token, &chain, memory)?;
            writeln!(
                out,
                "| a chain of three, {words}, {how} | {median:.1} | {slow:.1} |"
            )?;
        }
        let (root, median) = (&chain[0], calls(&chain[0], &[], Memory::All)?);
        assert!(root.claims().parent.is_none());
        writeln!(
            out,
            "| one token, {words}, remembered | {:.1} | {:.1} |",
            median.0, median.1
        )?;
    }
    let (token, chain) = family(None)?;
    for (name, token) in [
        ("token.json", &token),
        ("root.json", &chain[0]),
        ("child.json", &chain[1]),
    ] {
        std::fs::write(folder.path().join(name), token.to_text())?;
    }
    let words = [
        "gate-speed",
        "key.pub",
        "1800000060",
        "Edit",
        CALL,
        "token.json",
        "child.json",
        "root.json",
    ];
    if let Some(told) = ask(&words)? {
        let median = &told["median_micros"];
        writeln!(
            out,
            "| raucle 0.23.0: a chain of three, v1 | {median:.1} | |"
        )?;
    }
    verifying(&folder.path().join("receipts.jsonl"), limit, &ask)
}

/// A file of receipts, each of a call under a token with an intent.
fn verifying(
    path: &std::path::Path,
    limit: f64,
    ask: &dyn Fn(&[&str]) -> Tried<Option<Value>>,
) -> Tried<()> {
    let mut out = std::io::stdout();
    let file = written()?;
    std::fs::write(path, &file)?;
    let reader = Reader::new(&TrustedKeys::new([pem().public()]), &[]);
    let mut best = f64::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        let mut walk = Walk::default();
        for line in file.lines() {
            walk.next(Some(reader.read(line.as_bytes())));
        }
        let report = walk.finish(&Expectation::default());
        best = best.min(begin.elapsed().as_secs_f64());
        if !report.valid() {
            return Err(format!("{:?}", report.failures.first()).into());
        }
    }
    let count = f64::from(u32::try_from(RECEIPTS)?);
    let rate = count / best;
    writeln!(
        out,
        "\n| {RECEIPTS} receipts | seconds | a second | of verify_strict |\n|---|---|---|---|\n| ours, intents judged again | {best:.3} | {rate:.0} | {:.2} |",
        rate / limit
    )?;
    if let Some(told) = ask(&["speed", "receipts.jsonl", "key.pub"])? {
        let seconds = told["seconds"].as_f64().ok_or("no time")?;
        if told["valid"] != true {
            return Err("raucle does not take the receipts".into());
        }
        let theirs = count / seconds;
        writeln!(
            out,
            "| raucle 0.23.0, which judges no intents | {seconds:.3} | {theirs:.0} | {:.2} |\n\n{:.1} times as fast",
            theirs / limit,
            rate / theirs
        )?;
    }
    Ok(())
}

fn pem() -> PemKey {
    PemKey::new(SecretKey::from_seed(&[7; 32]))
}

/// Verifications a second of nothing but signatures, over messages as long as those of receipts.
fn raw() -> f64 {
    let key = SigningKey::from_bytes(&[7; 32]);
    let signed: Vec<(Vec<u8>, Signature)> = (0..200_u8)
        .map(|number| {
            let message = vec![number; 1_100];
            let signature = key.sign(&message);
            (message, signature)
        })
        .collect();
    let public = key.verifying_key();
    let (begin, mut count) = (Instant::now(), 0_u32);
    while begin.elapsed().as_secs_f64() < 2.0 {
        for (message, signature) in &signed {
            count += u32::from(public.verify_strict(message, signature).is_ok());
        }
    }
    f64::from(count) / begin.elapsed().as_secs_f64()
}

/// A token whose parent has a parent, and both of them: the root first.
fn family(purpose: Option<&'static str>) -> Tried<(Token, [Token; 2])> {
    let issuer = Issuer::new("bench", Arc::new(pem()))?;
    let limits = |text: &'static str| -> Tried<Constraints> {
        Ok(Constraints::from_json(&read(text.as_bytes(), 4_096)?)?)
    };
    let intent = |text: &'static str| -> Tried<Intent> {
        Ok(Intent::from_json(&read(text.as_bytes(), 4_096)?)?)
    };
    let grant = Grant {
        agent: AgentId::parse("agent:fixer")?,
        tool: ToolName::parse("Edit")?,
        constraints: limits(LIMITS)?,
        intent: purpose.map(intent).transpose()?,
        ttl_seconds: 3_600,
    };
    let now = Millis(1_800_000_000_000);
    let narrowed = |parent: &Token, text: &'static str| -> Tried<Token> {
        let narrowing = Narrowing {
            constraints: limits(text)?,
            ..Narrowing::default()
        };
        Ok(issuer.attenuate(parent, &TrustedKeys::default(), &narrowing, now)?)
    };
    let root = issuer.mint(&grant, now)?;
    let child = narrowed(&root, r#"{"max_value":{"amount":5}}"#)?;
    let token = narrowed(&child, r#"{"starts_with":{"path":"src/parser/"}}"#)?;
    Ok((token, [root, child]))
}

/// Whose signatures the gate has seen before.
#[derive(Clone, Copy, PartialEq)]
enum Memory {
    Nothing,
    Ancestors,
    All,
}

/// The middle and the slow times of deciding about a call, in µs.
fn calls(token: &Token, chain: &[Token], memory: Memory) -> Tried<(f64, f64)> {
    let keys = TrustedKeys::new([pem().public()]);
    let given = GivenArguments::read(CALL.as_bytes());
    let call = Call {
        tool: "Edit",
        agent: None,
        arguments: &given.judged,
        now: NOW,
    };
    let fresh = || Gate::new(keys.clone(), Revocations::default());
    let mut gate = fresh();
    gate.check(token, chain, &call);
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        if memory != Memory::All {
            gate = fresh();
        }
        if memory == Memory::Ancestors {
            for ancestor in chain {
                gate.check(ancestor, chain, &call);
            }
        }
        let begin = Instant::now();
        let checked = gate.check(token, chain, &call);
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        if checked.decision() != Decision::Allow {
            return Err(format!("{:?}", checked.denial).into());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok((times[CALLS / 2], times[CALLS * 95 / 100]))
}

fn written() -> Tried<String> {
    let session = Session {
        id: Label::new("bench")?,
        gate: AgentId::parse("agent:caretaker.gate")?,
        input: Sha256Digest::of(b"bench"),
        door: Door::Library,
        advisory: false,
        policy: None,
    };
    let (mut chain, root) = ReceiptChain::begin(session, Arc::new(pem()), NOW)?;
    let (token, ancestors) = family(Some(PURPOSE))?;
    let gate = Gate::new(TrustedKeys::new([pem().public()]), Revocations::default());
    let given = GivenArguments::read(CALL.as_bytes());
    let call = Call {
        tool: "Edit",
        agent: None,
        arguments: &given.judged,
        now: NOW,
    };
    let mut file = root.to_jsonl();
    for _ in 1..RECEIPTS {
        let outcome = gate
            .check(&token, &ancestors, &call)
            .outcome(&call, given.digest);
        file.push_str(&chain.append(&outcome, NOW)?.to_jsonl());
    }
    Ok(file)
}
