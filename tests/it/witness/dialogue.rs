//! A published dialogue between a log and a witness (litewitness's), replayed against ours.

use caretaker::attest::PublicKey;
use caretaker::log::{KeyName, SignatureType, VerifierKey};
use caretaker::witness::{Limits, Witness};

use super::scene::{Place, post, served};
use crate::support::corpus;

#[tokio::test]
async fn a_published_dialogue_is_answered_as_its_witness_did() {
    let Some(script) = corpus("attest/vectors/note/torchwood_litewitness.txt") else {
        return;
    };
    let script = String::from_utf8(script).unwrap();
    let mut key = [0; 32];
    let encoded = script.split("add-sigsum-log -key=").nth(1).unwrap();
    hex::decode_to_slice(&encoded[..64], &mut key).unwrap();
    let name = script.split("\nstdout ").nth(1).unwrap();
    let name = KeyName::new(name.lines().next().unwrap()).unwrap();
    let key = PublicKey::from_bytes(&key).unwrap();
    let key = VerifierKey::new(name, SignatureType::Log, key);
    let place = Place::new();
    let witness = Witness::open(&place.path(), vec![key]).unwrap();
    let base = served(witness, Limits::default()).await;
    let (mut differences, mut sizes) = (Vec::new(), Vec::new());
    let parts: Vec<_> = script.split("```\nHTTP ").collect();
    for part in parts.windows(2) {
        let body = part[0].rsplit_once("```\n").unwrap().1.to_owned();
        let expected: u16 = part[1][..3].parse().unwrap();
        let (status, kind, said) = post(&base, body).await;
        if status != expected {
            differences.push((expected, status));
        }
        match status {
            200 => assert!(
                said.starts_with("\u{2014} auditor.example/witness "),
                "{said}"
            ),
            409 => {
                assert_eq!(kind, "text/x.tlog.size");
                assert!(part[1].contains(&format!("body == {said:?}")), "{said}");
                sizes.push(said);
            }
            _ => {}
        }
    }
    assert_eq!(parts.len(), 10);
    assert_eq!(sizes, ["3\n", "5\n"]);
    // The changed signature of the dialogue is not the one spelling of its base64, so it is refused unread; and since then the
    // specification gives an unknown log a status of its own.
    assert_eq!(differences, [(403, 400), (403, 404)]);
}
