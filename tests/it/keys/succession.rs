//! New versions of the trust root: rotation, revocation, and what is interrupted in between.

use std::ops::ControlFlow;

use caretaker::attest::predicate::{EventBlock, Gap, Producer, Project};
use caretaker::attest::trust_root::OVERLAP_SECONDS;
use caretaker::attest::{
    Envelope, Event, KeyId, KeyUse, Label, List, Role, SignError, Statement, Text, TrustRoot,
    authenticate,
};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::id::{EventId, IncidentId};
use caretaker::signer::{
    Keyring, KeyringError, Point, Succeeded, Succession, SuccessionError, USES, Wish,
    system_randomness, trust_history,
};

use super::{Home, NOW};

/// A day after the keys were made.
const LATER: Millis = NOW.plus_seconds(24 * 60 * 60);

impl Home {
    pub(super) fn perform(&self, wish: &Wish, now: Millis) -> Result<Succeeded, SuccessionError> {
        self.perform_until(wish, now, None)
    }

    fn perform_until(
        &self,
        wish: &Wish,
        now: Millis,
        stop: Option<Point>,
    ) -> Result<Succeeded, SuccessionError> {
        let (configuration, environment) = (self.configuration(), self.environment());
        let succession = Succession::begin(&configuration, &environment, now)?;
        let passed = |point| {
            if Some(point) == stop {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let wishes = std::slice::from_ref(wish);
        succession.perform(wishes, &mut system_randomness, &passed)
    }

    pub(super) fn newest(&self) -> TrustRoot {
        trust_history(&self.configuration())
            .unwrap()
            .newest()
            .clone()
    }

    /// Names of files that lie in the folder for a while only.
    fn passing(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.keys()).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| {
                ![Some("key"), Some("secret")].contains(
                    &std::path::Path::new(name)
                        .extension()
                        .and_then(|end| end.to_str()),
                )
            })
            .filter(|name| !name.starts_with("trust-root-"))
            .collect();
        names.sort();
        names
    }
}

/// The key of one use that a keyring signs with; the root's is in its file only.
fn key_of(keyring: &Keyring, used: KeyUse) -> KeyId {
    match Role::parse(used.name()) {
        Some(role) => keyring.signer(role).keyid().clone(),
        None => keyring.log_key().unwrap().public().keyid(),
    }
}

fn revoke(keyid: &KeyId, compromised_since: Option<Millis>) -> Wish {
    Wish::Revoke {
        keyid: keyid.clone(),
        reason: Text::new("laptop lost").unwrap(),
        compromised_since,
        at_index: None,
    }
}

/// A statement of the executor as it is drafted: under the trust root in force, at a moment.
pub(super) fn drafted(trust: &TrustRoot, occurred_at: Millis, detail: &str) -> Vec<u8> {
    drafted_at(trust, occurred_at, detail, 0, None)
}

/// The same at a place of the chain.
pub(super) fn drafted_at(
    trust: &TrustRoot,
    occurred_at: Millis,
    detail: &str,
    seq: u64,
    prev: Option<Sha256Digest>,
) -> Vec<u8> {
    let text = |text: &str| Text::new(text).unwrap();
    let gap = Gap {
        event: EventBlock {
            id: EventId::new(occurred_at, [u8::try_from(seq).unwrap() + 1; 10]),
            incident: IncidentId::new(NOW, [2; 10]),
            seq,
            prev: prev.map(Into::into),
            project: Project {
                uri: text("https://github.example/octo/widget"),
                repository_id: Label::new("7").unwrap(),
            },
            role: Role::Executor,
            occurred_at,
            trust_root: trust.reference(),
            policy: Sha256Digest::of(b"rules").into(),
            producer: Producer {
                id: text("urn:caretaker:worker"),
                version: Label::new("1").unwrap(),
            },
        },
        reason: None,
        detail: text(detail),
        evidence: List::default(),
    };
    let statement = Statement::event(Event::Gap(Box::new(gap))).unwrap();
    statement.draft().unwrap()
}

#[test]
fn every_key_can_be_replaced_and_the_one_before_ends_after_an_hour() {
    for used in USES.into_iter().filter(|used| *used != KeyUse::Root) {
        let home = Home::made("rotate");
        let before = key_of(&home.open().unwrap(), used);
        let succeeded = home.perform(&Wish::Rotate(used), LATER).unwrap();
        assert!(!succeeded.resumed);
        let keyring = home.open_at(LATER).unwrap();
        let now = key_of(&keyring, used);
        assert_ne!(before, now, "{used}");
        assert_eq!(succeeded.replaced[0].keyid, now);
        assert_eq!(keyring.trust().document().version, 2);
        let end = LATER.plus_seconds(OVERLAP_SECONDS);
        if let Some((_, key)) = keyring.trust().role_key(&before) {
            assert_eq!(key.not_after, Some(end));
            assert_eq!(home.passing(), [format!("{used}.key.previous")]);
        } else {
            let counted = |moment| keyring.history().log_keys_at(moment).len();
            let ends = [LATER.plus_millis(-1), LATER, end.plus_millis(-1), end];
            assert_eq!(ends.map(counted), [1, 2, 2, 1]);
            assert!(home.passing().is_empty());
        }
        // The secret is still the one before.
        assert!(home.file(&format!("{used}.secret")).exists());
    }
}

#[test]
fn another_root_key_signs_the_next_version_and_the_one_before_signs_none() {
    let home = Home::made("root");
    let old = (home.read("root.key"), home.root_key().public());
    home.perform(&Wish::Rotate(KeyUse::Root), LATER).unwrap();
    let listed = home.newest().document().root_keys[0].public.clone();
    assert_ne!(listed, old.1);
    assert_eq!(home.root_key().public(), listed);
    home.perform(&Wish::Rotate(KeyUse::Policy), LATER).unwrap();
    home.put("root.key", old.0);
    let refused = home.perform(&Wish::Rotate(KeyUse::Policy), LATER.plus_millis(1));
    insta::assert_snapshot!(home.tidy(&refused.unwrap_err().to_string()), @"the root key in …/home/keys/root.key is SHA256:…, which trust root version 3 does not list as a root key; put the one that it lists there");
}

/// Stopped at each point, as `kill -9` would: the keys open with what the trust root lists, and the next command ends it.
#[test]
fn whatever_is_interrupted_the_keys_open_and_the_next_command_ends_it() {
    for used in USES {
        for point in [
            Point::KeysWritten,
            Point::TrustRootInPlace,
            Point::PreviousKept,
            Point::KeyInPlace,
        ] {
            let story = format!("{used} {point:?}");
            let home = Home::made("interrupted");
            let wish = Wish::Rotate(used);
            let stopped = home.perform_until(&wish, LATER, Some(point));
            assert!(
                matches!(stopped, Err(SuccessionError::Stopped(at)) if at == point),
                "{story}"
            );
            let keyring = home.open_at(LATER).unwrap();
            keyring.allow_acting(LATER).unwrap();
            let version = keyring.trust().document().version;
            assert_eq!(version == 1, point == Point::KeysWritten, "{story}");
            // What was drafted before and what is drafted now: both are signed by a key that counts.
            let first = keyring.history().versions().next().unwrap().clone();
            let trust = keyring.trust();
            let mut chain: Vec<Vec<u8>> = Vec::new();
            for (root, moment) in [(&first, NOW), (trust, LATER.plus_millis(1))] {
                let before = chain.last().map(|stored| Envelope::parse(stored).unwrap());
                let seq = chain.len() as u64;
                let draft = drafted_at(root, moment, "lost", seq, before.map(|it| it.digest()));
                let fresh = home.open_at(LATER).unwrap();
                let signer = fresh.signer(Role::Executor);
                let signed = signer.sign_after(&draft, &chain).unwrap();
                authenticate(fresh.history(), &signed).unwrap();
                chain.push(signed.to_bytes().unwrap());
            }
            let later = LATER.plus_millis(1);
            let again = home.perform(&wish, later).unwrap();
            let waits = matches!(point, Point::TrustRootInPlace | Point::PreviousKept);
            assert_eq!(again.resumed, waits, "{story}");
            let expected = if point == Point::KeyInPlace { 3 } else { 2 };
            assert_eq!(home.newest().document().version, expected, "{story}");
            home.open_at(later).unwrap();
            let left = home.passing();
            assert!(
                left.iter().all(|name| name.ends_with(".previous")),
                "{left:?}"
            );
        }
    }
}

#[test]
fn who_runs_on_stops_signing_when_a_new_version_is_in_place() {
    let home = Home::made("running");
    let running = home.open().unwrap();
    running.allow_acting(LATER).unwrap();
    home.perform(&Wish::Rotate(KeyUse::Policy), LATER).unwrap();
    let refused = running.allow_acting(LATER).unwrap_err();
    assert!(matches!(refused, KeyringError::Superseded { held: 1, .. }));
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"acting by trust root version 1: a newer one is in place (…/home/keys/trust-root-2.json); start this program again, so that it opens the keys that count now");
    home.open_at(LATER).unwrap().allow_acting(LATER).unwrap();
}

#[test]
fn what_was_drafted_before_a_rotation_is_signed_by_the_key_it_names() {
    let home = Home::made("drafts");
    let draft = drafted(&home.newest(), LATER.plus_millis(-1), "lost");
    let before = home.open().unwrap().signer(Role::Executor).keyid().clone();
    home.perform(&Wish::Rotate(KeyUse::Executor), LATER)
        .unwrap();
    let keyring = home.open_at(LATER).unwrap();
    let signer = keyring.signer(Role::Executor);
    let signed = signer.sign(&draft).unwrap();
    assert_eq!(signed.keyid(), &before);
    authenticate(keyring.history(), &signed).unwrap();
    // Under the new version, and under the old one after the overlap, the key before says nothing.
    let prev = Some(signed.digest());
    let fresh = drafted_at(&home.newest(), LATER, "other", 1, prev);
    let other = home.open_at(LATER).unwrap();
    assert_eq!(
        other.signer(Role::Executor).sign(&fresh).unwrap().keyid(),
        signer.keyid()
    );
    let first = keyring.history().versions().next().unwrap();
    let late = LATER.plus_seconds(OVERLAP_SECONDS);
    let late = drafted_at(first, late, "late", 1, prev);
    let refused = keyring.signer(Role::Executor).sign(&late).unwrap_err();
    assert!(
        matches!(refused, SignError::WouldNotCount { .. }),
        "{refused}"
    );
}

#[test]
fn a_key_in_use_that_is_revoked_is_replaced_and_signs_nothing_more() {
    let home = Home::made("revoked");
    let before = home.open().unwrap().signer(Role::Executor).keyid().clone();
    let running = home.open().unwrap();
    let draft = drafted(&home.newest(), LATER.plus_millis(-1), "lost");
    let early = running.signer(Role::Executor).sign(&draft).unwrap();
    let wish = revoke(&before, Some(LATER.plus_seconds(-60)));
    let succeeded = home.perform(&wish, LATER).unwrap();
    assert_eq!(succeeded.replaced.len(), 1);
    assert!(home.passing().is_empty());
    let keyring = home.open_at(LATER).unwrap();
    assert_ne!(keyring.signer(Role::Executor).keyid(), &before);
    let refused = keyring.signer(Role::Executor).sign(&draft).unwrap_err();
    assert!(
        matches!(refused, SignError::WouldNotCount { .. }),
        "{refused}"
    );
    // What it signed within the compromise does not count any more.
    let refused = authenticate(keyring.history(), &early).unwrap_err();
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"key-revoked: expected a moment before the revocation's, [time], found [time]");
    // Revoking again moves the beginning back, and replaces nothing.
    let wish = revoke(&before, Some(LATER.plus_seconds(-3600)));
    let again = home.perform(&wish, LATER.plus_millis(1)).unwrap();
    assert!(again.replaced.is_empty());
    let (_, key) = again.trust.role_key(&before).unwrap();
    let revoked = key.revoked.as_ref().unwrap();
    assert_eq!(revoked.effective_from(), LATER.plus_seconds(-3600));
}

#[test]
fn a_kept_key_goes_when_it_is_revoked() {
    let home = Home::made("kept");
    let before = home.open().unwrap().signer(Role::Executor).keyid().clone();
    home.perform(&Wish::Rotate(KeyUse::Executor), LATER)
        .unwrap();
    assert_eq!(home.passing(), ["executor.key.previous"]);
    let wish = revoke(&before, None);
    assert!(
        home.perform(&wish, LATER.plus_millis(1))
            .unwrap()
            .replaced
            .is_empty()
    );
    assert!(home.passing().is_empty());
}

#[test]
fn an_installation_made_before_the_log_gets_its_key() {
    let home = Home::made_before_the_log("add");
    home.perform(&Wish::AddLog, LATER).unwrap();
    let keyring = home.open_at(LATER).unwrap();
    let public = keyring.log_key().unwrap().public();
    assert_eq!(keyring.history().log_keys_at(LATER), [&public]);
    let again = home
        .perform(&Wish::AddLog, LATER.plus_millis(1))
        .unwrap_err();
    insta::assert_snapshot!(again.to_string(), @"the log has a key already; `caretaker keys rotate log` puts another in its place");
}

#[test]
fn wishes_that_make_no_sense_change_nothing() {
    let home = Home::made("wishes");
    let root = home.root_key().public().keyid();
    let unknown = KeyId::parse(&format!("SHA256:{}", "A".repeat(43))).unwrap();
    let wishes = [
        revoke(&root, None),
        revoke(&unknown, None),
        Wish::Rotate(KeyUse::Receipt),
        Wish::RemoveRoot(root),
        Wish::Threshold(2),
    ];
    let messages = wishes.map(|wish| {
        let refused = home.perform(&wish, LATER).unwrap_err();
        home.tidy(&refused.to_string())
    });
    insta::assert_snapshot!(messages.join("\n"), @r"
    making trust root version 2: SHA256:… is a root key, which is not revoked but replaced: `caretaker keys rotate root`
    making trust root version 2: it lists no key SHA256:…; `caretaker keys list` shows those it lists
    an installation has no key for receipt
    trust root version 2: threshold: must be from 1 to the number of root keys
    trust root version 2: threshold: must be from 1 to the number of root keys
    ");
    let early = home.perform(&Wish::Rotate(KeyUse::Log), NOW.plus_seconds(-1));
    insta::assert_snapshot!(home.tidy(&early.unwrap_err().to_string()), @"making trust root version 2: the clock says [time], and the version before was made at [time]; set the clock");
    assert_eq!(home.newest().document().version, 1);
    home.open_at(LATER).unwrap();
}

#[test]
fn a_version_by_which_the_keys_here_do_not_count_is_not_put_in_place() {
    let home = Home::made("would stop");
    let (configuration, environment) = (home.configuration(), home.environment());
    let succession = Succession::begin(&configuration, &environment, LATER).unwrap();
    let wishes = [Wish::Rotate(KeyUse::Approver)];
    let mut proposal = succession.propose(&wishes, &mut system_randomness).unwrap();
    proposal.sign(&home.root_key()).unwrap();
    let bytes = proposal.to_bytes().unwrap();
    // The key that it lists is gone, and the one before will not count for long.
    std::fs::remove_file(home.file("approver.key.next")).unwrap();
    std::fs::remove_file(home.file("approver.key")).unwrap();
    let passed = |_| ControlFlow::Continue(());
    let refused = succession.accept(&bytes, &passed).unwrap_err();
    assert!(matches!(
        refused,
        SuccessionError::Keys(KeyringError::MissingKey {
            used: KeyUse::Approver,
            ..
        })
    ));
    assert_eq!(home.newest().document().version, 1);
}

#[test]
fn a_proposal_that_too_few_signed_or_that_follows_another_version_is_refused() {
    let home = Home::made("unsigned");
    let (configuration, environment) = (home.configuration(), home.environment());
    let succession = Succession::begin(&configuration, &environment, LATER).unwrap();
    let wishes = [Wish::Rotate(KeyUse::Approver)];
    let mut proposal = succession.propose(&wishes, &mut system_randomness).unwrap();
    let passed = |_| ControlFlow::Continue(());
    let accept = |bytes: &[u8]| succession.accept(bytes, &passed).unwrap_err().to_string();
    let unsigned = accept(&proposal.to_bytes().unwrap());
    proposal.sign(&Home::made("stranger").root_key()).unwrap();
    let foreign = accept(&proposal.to_bytes().unwrap());
    let same = accept(&home.newest().to_bytes().unwrap());
    insta::assert_snapshot!([unsigned, foreign, same].join("\n"), @r"
    reading a trust root: reading an envelope: it has 0 signatures, expected 1 to 16
    reading a trust root: 0 of the keys allowed to sign this did, 1 are needed
    trust root version 1 does not continue the versions that are held: it names another predecessor
    ");
    let second = Succession::begin(&configuration, &environment, LATER).unwrap_err();
    assert!(matches!(second, SuccessionError::Busy { .. }));
    assert_eq!(home.newest().document().version, 1);
    // A key waits, and nobody uses it.
    assert_eq!(home.passing(), ["approver.key.next"]);
    home.open_at(LATER).unwrap();
}
