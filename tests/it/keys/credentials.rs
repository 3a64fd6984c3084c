//! The seal of projects' credentials.

use caretaker::change::Sha256Digest;
use caretaker::id::ProjectId;
use caretaker::signer::{CredentialError, CredentialSeal};
use proptest::prelude::*;
use secrecy::{ExposeSecret as _, SecretString};

use super::{Home, NOW, bytes_of};

fn draft() -> Sha256Digest {
    Sha256Digest::of(b"draft")
}

fn project(entropy: u8) -> ProjectId {
    ProjectId::new(NOW, [entropy; 10])
}

fn sealed(seal: &CredentialSeal, token: &str) -> Vec<u8> {
    seal.seal(
        &project(1),
        &draft(),
        &SecretString::from(token),
        &mut bytes_of("nonce"),
    )
    .unwrap()
}

#[test]
fn an_installation_seals_and_opens_the_token_of_a_project() {
    let home = Home::made("credentials");
    let bytes = sealed(home.open().unwrap().credentials(), "ghp_example");
    assert!(!bytes.windows(4).any(|window| window == b"ghp_"));
    let opened = home
        .open()
        .unwrap()
        .credentials()
        .open(&project(1), &draft(), &bytes);
    assert_eq!(opened.unwrap().expose_secret(), "ghp_example");
}

// Break it: leave the project out of `signer::credential::associated_data`.
#[test]
fn another_project_or_another_installation_does_not_open_it() {
    let (home, other) = (Home::made("ours"), Home::made("theirs"));
    let bytes = sealed(home.open().unwrap().credentials(), "ghp_example");
    for (place, project) in [(&home, project(2)), (&other, project(1))] {
        let refused = place
            .open()
            .unwrap()
            .credentials()
            .open(&project, &draft(), &bytes);
        assert_eq!(
            refused.unwrap_err(),
            CredentialError::Unopened {
                project: project.clone()
            }
        );
    }
}

#[test]
fn what_is_no_token_is_not_sealed() {
    let seal = CredentialSeal::new([1; 32]);
    for token in [String::new(), "x".repeat(16 * 1024 + 1)] {
        let refused = seal.seal(
            &project(1),
            &draft(),
            &SecretString::from(token),
            &mut bytes_of("nonce"),
        );
        assert!(matches!(refused, Err(CredentialError::Length { .. })));
    }
}

proptest! {
    #[test]
    fn every_token_comes_back_and_no_changed_byte_opens(
        token in ".{1,60}",
        place in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let seal = CredentialSeal::new([9; 32]);
        let mut bytes = sealed(&seal, &token);
        let opened = seal.open(&project(1), &draft(), &bytes).unwrap();
        prop_assert_eq!(opened.expose_secret(), &token);
        let at = place.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(seal.open(&project(1), &draft(), &bytes).is_err());
        bytes[at] ^= flip;
        bytes.truncate(at);
        prop_assert!(seal.open(&project(1), &draft(), &bytes).is_err());
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(CredentialSeal::new([9; 32]).open(&project(1), &draft(), &bytes).is_err());
    }
}
