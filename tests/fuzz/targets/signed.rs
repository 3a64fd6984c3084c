//! What is signed: envelopes, statements, trust roots, key files, and chains of statements that their own keys signed anew.

use std::collections::BTreeSet;

use caretaker::attest::dsse::{Envelope, ForeignEnvelope, IN_TOTO, SignedDocument, TRUST_ROOT};
use caretaker::attest::keys::Kdf;
use caretaker::attest::{KeyFile, KeyUse, Role, Statement, TrustRoot, verify_chain};

use super::super::ledger::{
    Ledger, forge, key, label, payload_of, root_document, root_key, seed, trust_root,
};
use super::{Target, words};

pub(super) fn targets() -> Vec<Target> {
    vec![
        envelope(),
        foreign(),
        statement(),
        root(),
        chain(),
        key_file(),
    ]
}

/// A ledger with every kind of chain event, and its evidence documents.
fn envelopes() -> Vec<Vec<u8>> {
    let mut ledger = Ledger::merged();
    ledger.escalate(|_| ());
    ledger.admit_gap();
    let signed = ledger.documents.iter().take(3).cloned();
    ledger.envelopes.iter().cloned().chain(signed).collect()
}

fn public_keys() -> Vec<caretaker::attest::PublicKey> {
    Role::ALL
        .into_iter()
        .map(|role| key(role).public())
        .collect()
}

/// One spelling only, and nothing comes out that nobody signed.
fn envelope() -> Target {
    let good = envelopes();
    let mut signed: BTreeSet<Vec<u8>> = good.iter().map(|bytes| payload_of(bytes)).collect();
    signed.insert(b"{}".to_vec());
    let mut all = good;
    all.push(forge(IN_TOTO, b"{}", &seed(Role::Policy)));
    all.extend(trust_root().to_bytes());
    let keys = public_keys();
    Target::new("envelope", all, move |bytes| {
        let document = SignedDocument::parse(bytes).map_err(words)?;
        assert_eq!(document.to_bytes().map_err(words)?, bytes);
        let verified = document.verify(IN_TOTO, &keys, 1).map_err(words)?;
        assert!(signed.contains(verified.payload()), "nobody signed this");
        let envelope = Envelope::parse(bytes).map_err(words)?;
        assert_eq!(envelope.to_bytes().map_err(words)?, bytes);
        Ok(())
    })
}

fn foreign() -> Target {
    let good = envelopes();
    let signed: BTreeSet<Vec<u8>> = good.iter().map(|bytes| payload_of(bytes)).collect();
    let keys = public_keys();
    Target::new("foreign", good, move |bytes| {
        let envelope = ForeignEnvelope::parse(bytes).map_err(words)?;
        let verified = envelope.verify(IN_TOTO, &keys, 1).map_err(words)?;
        assert!(signed.contains(verified.payload()), "nobody signed this");
        Ok(())
    })
}

/// Whatever is read is written in one form, which is read as the same.
fn statement() -> Target {
    let good = envelopes().iter().map(|bytes| payload_of(bytes)).collect();
    Target::new("statement", good, |bytes| {
        let statement = Statement::parse(bytes).map_err(words)?;
        let draft = statement.draft().map_err(words)?;
        assert_eq!(Statement::parse(&draft), Ok(statement));
        Ok(())
    })
}

fn root() -> Target {
    let first = trust_root();
    let mut document = root_document();
    document.version = 2;
    document.prev = Some(first.digest().into());
    let second = TrustRoot::sign(&document, &[&root_key(0), &root_key(1)]);
    let roots: Vec<_> = std::iter::once(first).chain(second).collect();
    let known: BTreeSet<String> = roots.iter().map(|root| root.digest().to_string()).collect();
    let mut good: Vec<_> = roots
        .iter()
        .filter_map(|root| root.to_bytes().ok())
        .collect();
    good.push(forge(TRUST_ROOT, b"{}", &[100; 32]));
    Target::new("trust-root", good, move |bytes| {
        let root = TrustRoot::parse_unpinned(bytes).map_err(words)?;
        assert_eq!(root.to_bytes().map_err(words)?, bytes);
        assert!(
            known.contains(&root.digest().to_string()),
            "nobody signed this"
        );
        Ok(())
    })
}

/// A statement that was changed and then signed by its role's own key, at every place of a chain: an answer, whatever it says. In
/// front of the last place the next event no longer follows.
fn chain() -> Target {
    let ledger = Ledger::merged();
    let good: Vec<_> = ledger
        .envelopes
        .iter()
        .map(|bytes| payload_of(bytes))
        .collect();
    let originals = good.clone();
    Target::new("chain", good, move |payload| {
        let mut told = String::new();
        for (place, original) in originals.iter().enumerate() {
            let role = Role::ALL[place % Role::ALL.len()];
            let mut envelopes = ledger.envelopes.clone();
            envelopes[place] = forge(IN_TOTO, payload, &seed(role));
            let report = verify_chain(&ledger.trust, &ledger.expectation(), &envelopes);
            let valid = report.verdict == caretaker::attest::chain::Verdict::Valid;
            assert!(
                !valid || payload == original,
                "valid, but not what was recorded"
            );
            told.extend(
                report
                    .failures
                    .first()
                    .map(|failure| failure.rule.to_string()),
            );
        }
        Err(told)
    })
}

fn key_file() -> Target {
    let role = KeyUse::Policy;
    let sealed = KeyFile::seal(
        &key(Role::Policy),
        &label("example"),
        role,
        Kdf::hkdf([3; 16]),
        &[5; 32],
        &mut |buffer: &mut [u8]| {
            buffer.fill(4);
            Ok(())
        },
    );
    let good = sealed.map(|file| file.to_bytes());
    let original = good.as_ref().cloned().unwrap_or_default();
    Target::new("key-file", good.into_iter().collect(), move |bytes| {
        let file = KeyFile::parse(bytes).map_err(words)?;
        // A hostile header may ask for the slow derivation: bounded, but not a thousand times.
        if !matches!(file.header().kdf, Kdf::HkdfSha256 { .. }) {
            return Err("another derivation".to_owned());
        }
        file.open(role, &[5; 32]).map_err(words)?;
        let own = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        assert_eq!(
            own,
            original.strip_suffix(b"\n").unwrap_or(&original),
            "a changed file opens"
        );
        Ok(())
    })
}
