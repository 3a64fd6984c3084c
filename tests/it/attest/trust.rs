//! Trust roots: whose keys count, and for how long.

use caretaker::attest::chain::{Rule, Verdict};
use caretaker::attest::trust_root::{Revocation, RoleKey, RootKey, SideKey};
use caretaker::attest::*;
use caretaker::clock::Millis;

use super::ledger::{
    Ledger, NOW, digest, forge, key, label, root_document, root_key, text, trust_root,
};
use crate::twin;

fn signed(document: &TrustRootDocument) -> Result<TrustRoot, TrustRootError> {
    TrustRoot::sign(document, &[&root_key(0)])
}

fn bytes(document: &TrustRootDocument, keys: &[&SecretKey]) -> Vec<u8> {
    TrustRoot::sign(document, keys).unwrap().to_bytes().unwrap()
}

/// The document after version 1, whose root keys are the same.
fn second() -> TrustRootDocument {
    let first = trust_root();
    TrustRootDocument {
        version: 2,
        prev: Some(first.digest().into()),
        ..root_document()
    }
}

#[track_caller]
fn assert_unsound(document: &TrustRootDocument, member: &str) {
    match signed(document) {
        Err(TrustRootError::Unsound { member: found, .. }) => assert_eq!(found, member),
        other => panic!("{other:?}"),
    }
    // Nor can it be read when somebody else signed it.
    let payload = serde_json::to_vec(document).unwrap();
    let forged = forge(dsse::TRUST_ROOT, &payload, &[100; 32]);
    assert!(twin::trust_root(&forged).is_err());
}

#[test]
fn a_pinned_trust_root_is_read_and_another_one_is_not() {
    let root = trust_root();
    let stored = root.to_bytes().unwrap();
    assert_eq!(
        TrustRoot::parse_pinned(&stored, &root.digest()).unwrap(),
        root
    );
    let strangers = TrustRootDocument {
        root_keys: List::first_of([RootKey::from_public(root_key(9).public())]),
        ..root_document()
    };
    let strangers = bytes(&strangers, &[&root_key(9)]);
    // Break: drop the comparison with the pin in `TrustRoot::parse_pinned`.
    assert!(matches!(
        TrustRoot::parse_pinned(&strangers, &root.digest()),
        Err(TrustRootError::NotPinned { .. })
    ));
}

#[test]
fn a_key_in_two_roles_makes_the_trust_root_invalid() {
    let mut document = root_document();
    document.roles.approver = document.roles.proposer.clone();
    // Break: drop the `seen` check in `TrustRootDocument::check_keys`.
    assert_unsound(&document, "roles");
    let mut document = root_document();
    document.roles.approver = List::first_of([RoleKey::from_public(root_key(0).public(), NOW)]);
    assert_unsound(&document, "roles");
    let mut document = root_document();
    document.side_keys = Some(List::first_of([SideKey::from_public(
        label("log"),
        key(Role::Policy).public(),
    )]));
    assert_unsound(&document, "side_keys");
}

#[test]
fn a_threshold_that_lets_anything_pass_makes_it_invalid() {
    for threshold in [0, 2, 9_007_199_254_740_991] {
        assert_unsound(
            &TrustRootDocument {
                threshold,
                ..root_document()
            },
            "threshold",
        );
    }
    let twice = [
        RootKey::from_public(root_key(0).public()),
        RootKey::from_public(root_key(0).public()),
    ];
    assert_unsound(
        &TrustRootDocument {
            threshold: 2,
            root_keys: List::first_of(twice),
            ..root_document()
        },
        "root_keys",
    );
    assert_unsound(
        &TrustRootDocument {
            root_keys: List::default(),
            ..root_document()
        },
        "threshold",
    );
    let stored = String::from_utf8(trust_root().to_bytes().unwrap()).unwrap();
    let unsigned = format!("{}[]}}", &stored[..stored.find('[').unwrap()]);
    assert!(twin::trust_root(unsigned.as_bytes()).is_err());
    let negative = String::from_utf8(serde_json::to_vec(&root_document()).unwrap())
        .unwrap()
        .replace("\"threshold\":1", "\"threshold\":-1");
    assert!(twin::trust_root(&forge(dsse::TRUST_ROOT, negative.as_bytes(), &[100; 32])).is_err());
}

#[test]
fn documents_that_contradict_themselves_are_refused() {
    let document = root_document;
    assert_unsound(&TrustRootDocument { v: 2, ..document() }, "v");
    assert_unsound(
        &TrustRootDocument {
            version: 0,
            ..document()
        },
        "prev",
    );
    assert_unsound(
        &TrustRootDocument {
            version: 2,
            ..document()
        },
        "prev",
    );
    assert_unsound(
        &TrustRootDocument {
            prev: Some(digest("x")),
            ..document()
        },
        "prev",
    );
    assert_unsound(
        &TrustRootDocument {
            expires_at: document().issued_at,
            ..document()
        },
        "expires_at",
    );
    let with = |bend: fn(&mut RoleKey)| {
        let mut document = document();
        let mut role_key = document.roles.policy[0].clone();
        bend(&mut role_key);
        document.roles.policy = List::first_of([role_key]);
        document
    };
    assert_unsound(
        &with(|key| key.keyid = root_key(1).public().keyid()),
        "roles",
    );
    assert_unsound(&with(|key| key.alg = label("rsa")), "roles");
    assert_unsound(&with(|key| key.not_after = Some(key.not_before)), "roles");
    assert_unsound(
        &with(|key| (key.from_index, key.until_index) = (Some(7), Some(7))),
        "roles",
    );
    let mut none = document();
    none.roles.executor = List::default();
    assert_unsound(&none, "roles");
}

#[test]
fn a_root_signed_by_too_few_or_by_strangers_is_refused() {
    let keys = [0, 1, 2].map(root_key);
    let roots = keys.iter().map(|key| RootKey::from_public(key.public()));
    let document = TrustRootDocument {
        threshold: 2,
        root_keys: List::first_of(roots),
        ..root_document()
    };
    assert!(TrustRoot::sign(&document, &[&keys[0], &keys[2]]).is_ok());
    for too_few in [
        vec![&keys[0]],
        vec![&keys[0], &keys[0]],
        vec![&keys[0], &root_key(7)],
    ] {
        assert!(matches!(
            TrustRoot::sign(&document, &too_few),
            Err(TrustRootError::Envelope(_))
        ));
    }
    assert!(TrustRoot::sign(&root_document(), &[&key(Role::Policy)]).is_err());
    let payload = serde_json::to_vec(&root_document()).unwrap();
    assert!(twin::trust_root(&forge(dsse::TRUST_ROOT, &payload, &[99; 32])).is_err());
}

#[test]
fn an_event_is_no_trust_root_and_a_trust_root_no_event() {
    let envelope = &Ledger::merged().envelopes[0];
    assert!(twin::trust_root(envelope).is_err());
    let payload = serde_json::to_vec(&root_document()).unwrap();
    assert!(twin::trust_root(&forge(dsse::IN_TOTO, &payload, &[100; 32])).is_err());
    let mut ledger = Ledger::new();
    ledger.envelopes.push(trust_root().to_bytes().unwrap());
    ledger.assert_broken(0, Rule::Key);
}

#[test]
fn a_new_version_is_signed_by_the_old_and_the_new_root_keys() {
    let mut rotated = second();
    rotated.root_keys = List::first_of([RootKey::from_public(root_key(1).public())]);
    let mut history = TrustHistory::from(trust_root());
    // Break: drop the verification with the old document in `TrustHistory::add_newer`.
    assert!(matches!(
        history.add_newer(&bytes(&rotated, &[&root_key(1)])),
        Err(TrustRootError::Envelope(_))
    ));
    assert!(TrustRoot::sign(&rotated, &[&root_key(0)]).is_err());
    history
        .add_newer(&bytes(&rotated, &[&root_key(0), &root_key(1)]))
        .unwrap();
    assert_eq!(history.newest().document().version, 2);
}

#[test]
fn versions_follow_each_other_without_gaps_roll_back_or_changed_roles() {
    let newer = |bend: fn(&mut TrustRootDocument)| {
        let mut document = second();
        bend(&mut document);
        TrustHistory::from(trust_root()).add_newer(&bytes(&document, &[&root_key(0)]))
    };
    newer(|_| ()).unwrap();
    let discontinuous = |result| matches!(result, Err(TrustRootError::Discontinuous { .. }));
    assert!(discontinuous(newer(|document| document.version = 3)));
    assert!(discontinuous(newer(
        |document| document.prev = Some(digest("x"))
    )));
    assert!(discontinuous(newer(
        |document| document.org = label("other")
    )));
    assert!(discontinuous(newer(|document| {
        let roles = &mut document.roles;
        std::mem::swap(&mut roles.proposer, &mut roles.approver);
    })));
    assert!(discontinuous(
        TrustHistory::from(trust_root()).add_newer(&trust_root().to_bytes().unwrap())
    ));
}

#[test]
fn an_older_version_is_trusted_because_a_newer_one_names_it() {
    let mut history = TrustHistory::from(signed(&second()).unwrap());
    let ledger = Ledger::merged();
    let under = |history: &TrustHistory| {
        let mut ledger = ledger.clone();
        ledger.trust = history.clone();
        ledger.verify()
    };
    let under_first = under(&history);
    // The keys are known, but the version that the events name is not held: nobody can say.
    assert_eq!(
        under_first.verdict,
        Verdict::CannotVerify,
        "{under_first:#?}"
    );
    assert_eq!(under_first.failures[0].rule, Rule::TrustRoot);
    let strangers = TrustRootDocument {
        org: label("other"),
        ..root_document()
    };
    assert!(
        history
            .add_older(&bytes(&strangers, &[&root_key(0)]))
            .is_err()
    );
    history
        .add_older(&trust_root().to_bytes().unwrap())
        .unwrap();
    assert_eq!(under(&history).verdict, Verdict::Valid);
}

#[test]
fn expiry_stops_acting_and_never_verifying() {
    let root = trust_root();
    let end = root.document().expires_at;
    assert!(root.allow_acting(NOW).is_ok());
    assert!(matches!(
        root.allow_acting(end),
        Err(TrustRootError::Expired { version: 1, .. })
    ));
    Ledger::merged().assert_valid();
}

/// A ledger under a trust root whose approver's key was bent.
fn under(bend: impl FnOnce(&mut RoleKey)) -> Ledger {
    let mut document = root_document();
    let mut approver = document.roles.approver[0].clone();
    bend(&mut approver);
    document.roles.approver = List::first_of([approver]);
    let mut ledger = Ledger::new();
    ledger.trust = signed(&document).unwrap().into();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger
}

#[test]
fn a_key_counts_inside_its_validity_only() {
    under(|key| key.not_before = NOW).assert_valid();
    under(|key| key.not_before = NOW.plus_millis(1)).assert_broken(2, Rule::KeyWindow);
    // Break: return true from `RoleKey::counts_at`.
    under(|key| key.not_after = Some(NOW)).assert_broken(2, Rule::KeyWindow);
    under(|key| key.not_after = Some(NOW.plus_millis(1))).assert_valid();
}

#[test]
fn a_revoked_key_does_not_count_from_its_compromise_on() {
    let revoked = |at: Millis, since: Option<Millis>| {
        under(|key| {
            key.revoked = Some(Revocation {
                at,
                at_index: None,
                compromised_since: since,
                reason: text("laptop lost"),
            });
        })
    };
    revoked(NOW.plus_millis(1), None).assert_valid();
    revoked(NOW, None).assert_broken(2, Rule::KeyRevoked);
    revoked(NOW.plus_millis(10), Some(NOW)).assert_broken(2, Rule::KeyRevoked);
    // A later compromise than the revocation does not extend it.
    revoked(NOW, Some(NOW.plus_millis(10))).assert_broken(2, Rule::KeyRevoked);
}

#[test]
fn a_revocation_in_a_newer_version_reaches_back() {
    let mut document = second();
    let mut approver = document.roles.approver[0].clone();
    approver.revoked = Some(Revocation {
        at: NOW,
        at_index: None,
        compromised_since: None,
        reason: text("lost"),
    });
    document.roles.approver = List::first_of([approver]);
    let mut ledger = Ledger::merged();
    ledger
        .trust
        .add_newer(&bytes(&document, &[&root_key(0)]))
        .unwrap();
    ledger.assert_broken(2, Rule::KeyRevoked);
}

#[test]
fn an_event_that_names_another_document_of_the_same_version_is_invalid() {
    let mut ledger = Ledger::new();
    ledger.propose(|proposal| proposal.event.trust_root.sha256 = digest("another").sha256);
    ledger.assert_broken(0, Rule::TrustRoot);
}

/// What a newer version says about the executor's key, on a whole ledger under the version before.
fn bent_by_the_next_version(bend: impl FnOnce(&mut RoleKey)) -> Ledger {
    let mut document = second();
    let mut approver = document.roles.approver[0].clone();
    bend(&mut approver);
    document.roles.approver = List::first_of([approver]);
    let mut ledger = Ledger::merged();
    ledger
        .trust
        .add_newer(&bytes(&document, &[&root_key(0)]))
        .unwrap();
    ledger
}

#[test]
fn a_key_that_was_replaced_cannot_go_on_under_the_version_before() {
    bent_by_the_next_version(|key| key.not_after = Some(NOW.plus_millis(1))).assert_valid();
    bent_by_the_next_version(|key| key.not_after = Some(NOW)).assert_broken(2, Rule::KeyWindow);
}

#[test]
fn a_logged_event_counts_by_its_index_and_not_by_its_claim() {
    let revoked = |compromised_since, at_index| {
        bent_by_the_next_version(|key| {
            key.revoked = Some(Revocation {
                at: NOW.plus_millis(10),
                at_index,
                compromised_since,
                reason: text("laptop lost"),
            });
        })
    };
    let approval = |ledger: &Ledger, index| {
        let envelope = Envelope::parse(&ledger.envelopes[2]).unwrap();
        let found = chain::authenticate_logged(&ledger.trust, &envelope, index);
        found.map(drop).map_err(|refusal| refusal.rule)
    };
    // Claimed after the compromise, logged before it: it counts.
    let late = revoked(Some(NOW), Some(7));
    assert_eq!(approval(&late, Some(6)), Ok(()));
    assert_eq!(approval(&late, Some(7)), Err(Rule::KeyRevoked));
    assert_eq!(approval(&late, None), Err(Rule::KeyRevoked));
    // Claimed before the compromise, logged after it: somebody dated it back.
    let early = revoked(Some(NOW.plus_millis(5)), Some(7));
    assert_eq!(approval(&early, Some(7)), Err(Rule::KeyRevoked));
    // Without an index on one side only the claim is left.
    assert_eq!(approval(&early, None), Ok(()));
    let unknown = revoked(Some(NOW), None);
    assert_eq!(approval(&unknown, Some(1)), Err(Rule::KeyRevoked));
    // Windows of indexes count, too.
    let window = bent_by_the_next_version(|key| {
        key.from_index = Some(2);
        key.until_index = Some(4);
    });
    let found = [1, 2, 3, 4].map(|index| approval(&window, Some(index)).is_ok());
    assert_eq!(found, [false, true, true, false]);
}

#[test]
fn a_key_does_not_come_back_under_another_use() {
    let mut history = TrustHistory::from(trust_root());
    let mut document = second();
    document.side_keys = Some(List::first_of([SideKey::from_public(
        label("log"),
        root_key(5).public(),
    )]));
    history
        .add_newer(&bytes(&document, &[&root_key(0)]))
        .unwrap();
    let mut third = TrustRootDocument {
        version: 3,
        prev: Some(history.newest().digest().into()),
        side_keys: None,
        ..document
    };
    third.roles.approver = List::first_of([RoleKey::from_public(root_key(5).public(), NOW)]);
    assert!(matches!(
        history.add_newer(&bytes(&third, &[&root_key(0)])),
        Err(TrustRootError::Discontinuous { .. })
    ));
}
