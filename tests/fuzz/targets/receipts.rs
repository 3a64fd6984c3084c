//! Capability tokens and receipts, as they are handed over, and what their own keys sign.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caretaker::attest::json::read;
use caretaker::attest::{Label, SecretKey, Text};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::receipts::canonical::{read_canonical, to_canonical};
use caretaker::receipts::verify::Reader;
use caretaker::receipts::{
    AgentId, Call, Decision, Door, Gate, GivenArguments, Grant, Intent, Issuer, PemKey,
    ReceiptChain, ReceiptHash, Revocations, Session, Token, ToolName, TrustedKeys, public_pem,
    read_public_pem,
};
use ed25519_dalek::{Signer as _, SigningKey};

use super::{Target, text, words};

pub(super) fn targets() -> Vec<Target> {
    vec![
        token(),
        signed_token(),
        receipt(),
        signed_receipt(),
        arguments(),
        key(),
    ]
}

const SEED: [u8; 32] = [7; 32];
const LIMITS: &str = r#"{"allowed_values":{"to":["ada",1,true]},"forbidden_field_combinations":[["bcc","cc"]],"forbidden_values":{"cc":["eve"]},"max_value":{"amount":10},"min_value":{"amount":1},"required_present":["to"],"starts_with":{"path":"src/"}}"#;
const PURPOSE: &str = r#"{"statement":"Mend the parser","tools":["Edit","Write"],"constraints":{"starts_with":{"path":"src/"}}}"#;
const CALL: &str = r#"{"to":["ada",1],"amount":3,"path":"src/lib.rs","note":"x"}"#;

fn own_key() -> PemKey {
    PemKey::new(SecretKey::from_seed(&SEED))
}

fn keys() -> TrustedKeys {
    TrustedKeys::new([own_key().public()])
}

fn minted(purpose: bool) -> Option<Token> {
    let read = |text: &'static str| read(text.as_bytes(), 65_536).ok();
    let intent = purpose.then(|| Intent::from_json(&read(PURPOSE)?).ok());
    let grant = Grant {
        agent: AgentId::parse("agent:fixer").ok()?,
        tool: ToolName::parse("Edit").ok()?,
        constraints: caretaker::receipts::Constraints::from_json(&read(LIMITS)?).ok()?,
        intent: intent.flatten(),
        ttl_seconds: 3_600,
    };
    let issuer = Issuer::new("desk", own_key().into()).ok()?;
    issuer.mint(&grant, Millis(1_800_000_000_000)).ok()
}

fn tokens() -> Vec<Token> {
    [true, false].into_iter().filter_map(minted).collect()
}

fn allowed(token: &Token) -> bool {
    let given = GivenArguments::read(CALL.as_bytes());
    let call = Call {
        tool: "Edit",
        agent: None,
        arguments: &given.judged,
        now: Millis(1_800_000_060_000),
    };
    let gate = Gate::new(keys(), Revocations::default());
    gate.check(token, &[], &call).decision() == Decision::Allow
}

/// Nothing is allowed that nobody signed.
fn token() -> Target {
    let signed = tokens();
    let good = signed.iter().map(|token| token.to_text().into_bytes());
    let good: Vec<Vec<u8>> = good.collect();
    Target::new("token", good, move |bytes| {
        let token = Token::parse(bytes).map_err(words)?;
        assert_eq!(Token::parse(token.to_text().as_bytes()), Ok(token.clone()));
        if allowed(&token) {
            assert!(signed.contains(&token), "nobody signed this");
            Ok(())
        } else {
            Err("denied".to_owned())
        }
    })
}

/// Whatever is signed: what is read of it is what was signed.
fn signed_token() -> Target {
    let good = tokens().iter().map(|token| token.body().to_vec()).collect();
    Target::new("token-body", good, move |body| {
        let inner = text(body)?.trim_end().strip_suffix('}');
        let inner = inner.ok_or("no object")?;
        let digest = Sha256Digest::of(body).to_string();
        let signature = SigningKey::from_bytes(&SEED).sign(body).to_bytes();
        let whole = format!(
            "{inner},\"signature\":\"{}\",\"token_id\":\"cap:{}\"}}",
            URL_SAFE_NO_PAD.encode(signature),
            &digest[..24]
        );
        let token = Token::parse(whole.as_bytes()).map_err(words)?;
        if allowed(&token) {
            assert_eq!(token.body(), body, "read otherwise than it was signed");
        }
        Ok(())
    })
}

fn lines() -> Vec<Vec<u8>> {
    let session = || {
        Some(Session {
            id: Label::new("incident-17").ok()?,
            gate: AgentId::parse("agent:gate").ok()?,
            input: Sha256Digest::of(b"x"),
            door: Door::Loop,
            advisory: true,
            policy: Some(Sha256Digest::of(b"y")),
        })
    };
    let made = || {
        let now = Millis(1_800_000_060_000);
        let (mut chain, root) = ReceiptChain::begin(session()?, own_key().into(), now).ok()?;
        let mut lines = vec![root.to_jsonl()];
        for token in tokens() {
            for (tool, arguments) in [("Edit", CALL), ("Bash", "{}")] {
                let given = GivenArguments::read(arguments.as_bytes());
                let call = Call {
                    tool,
                    agent: None,
                    arguments: &given.judged,
                    now,
                };
                let gate = Gate::new(keys(), Revocations::default());
                let mut outcome = gate.check(&token, &[], &call).outcome(&call, given.digest);
                outcome.reason = Text::clipped("because");
                lines.push(chain.append(&outcome, now).ok()?.to_jsonl());
            }
        }
        Some(lines)
    };
    let lines = made().unwrap_or_default().into_iter();
    lines
        .map(|line| line.trim_end().as_bytes().to_vec())
        .collect()
}

/// Nothing is a receipt that nobody signed.
fn receipt() -> Target {
    let good = lines();
    let reader = Reader::new(&keys(), &tokens());
    let hash = |line: &[u8]| Some(reader.read(line).ok()?.hash.to_string());
    let known: BTreeSet<String> = good.iter().filter_map(|line| hash(line)).collect();
    assert_eq!(known.len(), good.len(), "a good line is not taken");
    Target::new("receipt", good, move |bytes| {
        let receipt = reader.read(bytes).map_err(words)?;
        assert!(
            known.contains(&receipt.hash.to_string()),
            "nobody signed this"
        );
        Ok(())
    })
}

/// Whatever is signed is read as canonical JSON or not at all.
fn signed_receipt() -> Target {
    let payload = |line: &Vec<u8>| {
        let encoded = text(line).ok()?.split('.').nth(1)?;
        URL_SAFE_NO_PAD.decode(encoded).ok()
    };
    let good = lines().iter().filter_map(payload).collect();
    let reader = Reader::new(&keys(), &tokens());
    Target::new("receipt-payload", good, move |payload| {
        let header = format!(
            r#"{{"alg":"EdDSA","crit":["raucle/v1"],"kid":"{}","raucle/v1":"provenance","typ":"provenance-receipt/v1"}}"#,
            own_key().id()
        );
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(payload)
        );
        let signature = SigningKey::from_bytes(&SEED).sign(signed.as_bytes());
        let jws = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()));
        let hash = ReceiptHash::of(&jws);
        let line = format!("{{\"receipt_hash\":\"{hash}\",\"jws\":\"{jws}\"}}");
        reader.read(line.as_bytes()).map_err(words)?;
        let json = read_canonical(payload, 65_536).map_err(words)?;
        assert_eq!(to_canonical(&json), payload);
        Ok(())
    })
}

/// Arguments of a call: read one way only, and of the same digest.
fn arguments() -> Target {
    let good = [CALL, "{}", r#"{"path":"src/../x","a":[{"b":null}]}"#];
    let token = minted(true);
    Target::new(
        "call-arguments",
        good.map(|text| text.as_bytes().to_vec()).to_vec(),
        move |bytes| {
            let given = GivenArguments::read(bytes);
            assert_eq!(given, GivenArguments::read(bytes));
            let arguments = given.judged.as_ref().map_err(words)?;
            let limits = token.as_ref().map(|token| &token.claims().constraints);
            let limits = limits.ok_or("no token")?;
            limits.check(arguments).map_err(words)
        },
    )
}

fn key() -> Target {
    let good = vec![public_pem(&own_key().public()).into_bytes()];
    Target::new("key-pem", good, |bytes| {
        let key = read_public_pem(text(bytes)?).map_err(words)?;
        assert_eq!(read_public_pem(&public_pem(&key)), Ok(key));
        Ok(())
    })
}
