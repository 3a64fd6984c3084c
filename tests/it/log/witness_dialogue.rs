//! A published dialogue between a log and a witness (litewitness's), answered with this library as the witness.

use caretaker::attest::{PublicKey, SecretKey};
use caretaker::log::{
    KeyName, LogPolicy, PolicyError, SignatureType, SignedCheckpoint, TreeHash, TreeHead,
    VerifierKey, WitnessSigner, verify_consistency,
};

use super::scene::NOW;
use crate::support::corpus;

/// What a witness remembers of one log.
struct Witness {
    policy: LogPolicy,
    signer: WitnessSigner,
    seen: Option<TreeHead>,
    unreadable: usize,
}

impl Witness {
    /// The status that C2SP tlog-witness prescribes for one `add-checkpoint`.
    fn add_checkpoint(&mut self, body: &str) -> u16 {
        let (head, note) = body.split_once("\n\n").unwrap();
        let mut lines = head.lines();
        let old: u64 = lines
            .next()
            .unwrap()
            .strip_prefix("old ")
            .unwrap()
            .parse()
            .unwrap();
        let proof: Vec<TreeHash> = lines.map(|line| line.parse().unwrap()).collect();
        // The changed signature of the dialogue is not the one spelling of its base64, so it is refused unread.
        let Ok(signed) = SignedCheckpoint::parse(note.as_bytes()) else {
            self.unreadable += 1;
            return 403;
        };
        let trusted = match self.policy.verify(&signed) {
            Ok(trusted) => trusted,
            Err(PolicyError::WrongLog { .. } | PolicyError::Signatures { .. }) => return 403,
            Err(error) => panic!("{error}"),
        };
        if old != self.seen.map_or(0, |seen| seen.size()) {
            return 409;
        }
        let consistent = match self.seen {
            Some(seen) => verify_consistency(&seen, &trusted.head(), &proof).is_ok(),
            None => proof.is_empty(),
        };
        if !consistent {
            return 422;
        }
        self.signer.cosign(&trusted, NOW).unwrap();
        self.seen = Some(trusted.head());
        200
    }
}

#[test]
fn a_published_dialogue_is_answered_as_its_witness_did() {
    let Some(script) = corpus("attest/vectors/note/torchwood_litewitness.txt") else {
        return;
    };
    let script = String::from_utf8(script).unwrap();
    let mut log_key = [0; 32];
    let encoded = script.split("add-sigsum-log -key=").nth(1).unwrap();
    hex::decode_to_slice(&encoded[..64], &mut log_key).unwrap();
    let name = script
        .split("\nstdout ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let log = VerifierKey::new(
        KeyName::new(name).unwrap(),
        SignatureType::Log,
        PublicKey::from_bytes(&log_key).unwrap(),
    );
    let mut witness = Witness {
        policy: LogPolicy::new(vec![log], vec![], 0).unwrap(),
        signer: WitnessSigner::new(
            KeyName::new("example.com/witness").unwrap(),
            SecretKey::from_seed(&[9; 32]),
        ),
        seen: None,
        unreadable: 0,
    };
    let (mut requests, mut accepted) = (0, 0);
    for part in script.split("```\nHTTP ").collect::<Vec<_>>().windows(2) {
        let body = part[0].rsplit_once("```\n").unwrap().1;
        let expected: u16 = part[1][..3].parse().unwrap();
        assert_eq!(witness.add_checkpoint(body), expected, "{body}");
        requests += 1;
        accepted += usize::from(expected == 200);
    }
    assert_eq!((requests, accepted, witness.unreadable), (9, 3, 1));
    assert_eq!(witness.seen.unwrap().size(), 5);
}
