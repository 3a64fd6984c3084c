//! What is logged: one serialisation of each thing, and nothing that could be read as two things.

use caretaker::attest::dsse::{IN_TOTO, TRUST_ROOT};
use caretaker::attest::{EnvelopeError, Label, Role};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::log::{Leaf, LeafError, LeafKind, MAX_ENTRY, Record, TreeHash};

use crate::attest::ledger::{forge, seed};

const HEARTBEAT: &str = r#"{"caretaker-log":"heartbeat/v1","at":1800000000000}"#;
const EVIDENCE: &str = r#"{"caretaker-log":"evidence/v1","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","bytes":5,"media_type":"text/plain"}"#;
const RULES: &str = r#"{"caretaker-log":"rules/v1","sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","bytes":5}"#;

fn records() -> [(Record, LeafKind, &'static str); 3] {
    let sha256 = Sha256Digest::of(b"hello");
    let at = Millis(1_800_000_000_000);
    let media_type = Label::new("text/plain").unwrap();
    let bytes = 5;
    [
        (Record::Heartbeat { at }, LeafKind::Heartbeat, HEARTBEAT),
        (
            Record::Evidence {
                sha256,
                bytes,
                media_type,
            },
            LeafKind::Evidence,
            EVIDENCE,
        ),
        (Record::Rules { sha256, bytes }, LeafKind::Rules, RULES),
    ]
}

fn statement() -> Vec<u8> {
    forge(IN_TOTO, b"{}", &seed(Role::Executor))
}

fn trust_root() -> Vec<u8> {
    forge(TRUST_ROOT, b"{}", &[100; 32])
}

/// The envelope with its one signature `count` times.
fn signed_times(envelope: &[u8], count: usize) -> Vec<u8> {
    let text = str::from_utf8(envelope).unwrap();
    let (head, signature) = text.split_once("\"signatures\":[").unwrap();
    let signature = signature.strip_suffix("]}").unwrap();
    let signatures = vec![signature; count].join(",");
    format!("{head}\"signatures\":[{signatures}]}}").into_bytes()
}

#[test]
fn the_bytes_of_records_are_fixed() {
    for (record, kind, bytes) in records() {
        let leaf = Leaf::record(record).unwrap();
        assert_eq!(leaf.kind(), kind);
        assert_eq!(leaf.to_bytes().unwrap(), bytes.as_bytes());
        assert_eq!(Leaf::parse(bytes.as_bytes()).as_ref(), Ok(&leaf));
        assert_eq!(leaf.hash().unwrap(), TreeHash::of_leaf(bytes.as_bytes()));
    }
    // What docs/log.md gives a stranger to compare with.
    let documented = include_str!("../../../docs/log.md");
    for bytes in [HEARTBEAT, EVIDENCE, RULES] {
        assert!(documented.contains(bytes), "{bytes}");
    }
    let hash = TreeHash::of_leaf(HEARTBEAT.as_bytes());
    assert!(documented.contains(&hash.to_string()), "{hash}");
}

#[test]
fn envelopes_are_logged_as_they_are_stored() {
    for (bytes, kind) in [
        (statement(), LeafKind::Statement),
        (trust_root(), LeafKind::TrustRoot),
        (signed_times(&trust_root(), 3), LeafKind::TrustRoot),
    ] {
        let leaf = Leaf::parse(&bytes).unwrap();
        assert_eq!(leaf.kind(), kind);
        assert_eq!(leaf.to_bytes().unwrap(), bytes);
        assert_eq!(leaf.hash().unwrap(), TreeHash::of_leaf(&bytes));
    }
    assert!(matches!(
        Leaf::parse(&signed_times(&statement(), 2)),
        Err(LeafError::Envelope(EnvelopeError::SignatureCount { .. }))
    ));
    Leaf::parse(&signed_times(&trust_root(), 0)).unwrap_err();
    Leaf::parse(&signed_times(&trust_root(), 17)).unwrap_err();
}

#[test]
fn an_envelope_of_another_type_is_no_leaf() {
    for payload_type in ["application/json", "", "application/vnd.in-toto+json2"] {
        let envelope = forge(payload_type, b"{}", &seed(Role::Executor));
        for bytes in [envelope.clone(), signed_times(&envelope, 2)] {
            assert!(matches!(
                Leaf::parse(&bytes),
                Err(LeafError::UnknownKind { .. })
            ));
        }
    }
}

#[test]
fn a_leaf_has_one_serialisation() {
    for (bytes, kind) in [
        (statement(), "statement"),
        (trust_root(), "trust-root"),
        (HEARTBEAT.into(), "heartbeat"),
        (EVIDENCE.into(), "evidence"),
        (RULES.into(), "rules"),
    ] {
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(Leaf::parse(text.as_bytes()).unwrap().kind().name(), kind);
        for other in [
            format!(" {text}"),
            format!("{text}\n"),
            format!("\u{feff}{text}"),
            text.replacen(':', ": ", 1),
            text.replacen('{', "{ ", 1),
            text.replacen("\"}", "\" }", 1),
            text.replacen('{', "{\"extra\":1,", 1),
            text.replacen('p', "\\u0070", 1),
            text.replacen("/v1", "\\/v1", 1),
            text.replacen("at\":", "at\":0", 1),
            text.replacen("heartbeat/v1", "heartbeat/v2", 1),
            text[..text.len() - 1].to_owned(),
        ] {
            assert!(
                other == text || Leaf::parse(other.as_bytes()).is_err(),
                "{other}"
            );
        }
    }
    for other in [
        // Another order, a member twice, an array for an object, a weak digest beside the good one, no digest.
        r#"{"caretaker-log":"rules/v1","bytes":5,"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}"#.to_owned(),
        r#"{"at":1800000000000,"caretaker-log":"heartbeat/v1"}"#.to_owned(),
        r#"{"caretaker-log":"heartbeat/v1","at":1,"at":1}"#.to_owned(),
        r#"{"caretaker-log":"heartbeat/v1","caretaker-log":"heartbeat/v1","at":1}"#.to_owned(),
        r#"["heartbeat/v1",1]"#.to_owned(),
        RULES.replace(",\"bytes\"", ",\"sha1\":\"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d\",\"bytes\""),
        RULES.replace("sha256", "sha1"),
        RULES.replace("2cf2", "2CF2"),
        RULES.replace("2cf2", ""),
        EVIDENCE.replace(",\"media_type\":\"text/plain\"", ""),
        EVIDENCE.replace("text/plain", "text plain"),
        EVIDENCE.replace("text/plain", ""),
        HEARTBEAT.replace("1800000000000", "-1"),
        HEARTBEAT.replace("1800000000000", "1.0"),
        HEARTBEAT.replace("1800000000000", "1e3"),
        HEARTBEAT.replace("1800000000000", "9007199254740992"),
        HEARTBEAT.replace("1800000000000", "null"),
        HEARTBEAT.replace("1800000000000", "\"1\""),
    ] {
        assert!(Leaf::parse(other.as_bytes()).is_err(), "{other}");
    }
}

#[test]
fn a_record_is_not_an_envelope_and_an_envelope_no_record() {
    let text = String::from_utf8(statement()).unwrap();
    let both = text.replacen('{', "{\"caretaker-log\":\"heartbeat/v1\",\"at\":1,", 1);
    assert!(Leaf::parse(both.as_bytes()).is_err());
    let both = HEARTBEAT.replacen("\"at\"", "\"payload\":\"\",\"at\"", 1);
    assert!(Leaf::parse(both.as_bytes()).is_err());
    for (_, _, bytes) in records() {
        assert!(bytes.starts_with("{\"caretaker-log\":\""));
        assert!(text.starts_with("{\"payload\":\""));
    }
}

#[test]
fn a_kind_of_a_later_version_is_named_as_such() {
    let later = r#"{"caretaker-log":"tombstone/v1","at":1}"#;
    let error = Leaf::parse(later.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the leaf is of kind tombstone/v1, which this version does not know; verify with a newer one"
    );
}

#[test]
fn a_leaf_fits_into_an_entry_bundle() {
    let longest = forge(IN_TOTO, &vec![b' '; 46_000], &seed(Role::Executor));
    assert!(longest.len() <= MAX_ENTRY);
    Leaf::parse(&longest).unwrap();
    let error = Leaf::parse(&vec![b'{'; MAX_ENTRY + 1]).unwrap_err();
    assert_eq!(
        error,
        LeafError::TooLong {
            length: MAX_ENTRY + 1
        }
    );
    assert!(Leaf::record(Record::Heartbeat { at: Millis(-1) }).is_err());
    let sha256 = Sha256Digest::of(b"hello");
    let bytes = 1 << 53;
    assert!(Leaf::record(Record::Rules { sha256, bytes }).is_err());
}
