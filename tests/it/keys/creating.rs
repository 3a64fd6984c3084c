//! Making keys: wholly, privately, once.

use caretaker::attest::keys::{FillError, Kdf};
use caretaker::attest::{KeyFile, KeyUse, Role, TrustRoot};
use caretaker::id::OrganisationId;
use caretaker::signer::{self, CreateError, Keyring, TRUST_ROOT_SECONDS};

use super::{Home, NOW, bytes_of, set_mode};

#[test]
fn the_folder_is_complete_and_for_its_owner_only() {
    let home = Home::made("a whole folder");
    insta::assert_snapshot!(home.listing().join("\n"), @r"
    700 keys
    600 keys/approver.key
    600 keys/approver.secret
    600 keys/credential.key
    600 keys/executor.key
    600 keys/executor.secret
    600 keys/log.key
    600 keys/log.secret
    600 keys/policy.key
    600 keys/policy.secret
    600 keys/proposer.key
    600 keys/proposer.secret
    600 keys/root.key
    600 keys/root.secret
    600 keys/trust-root-1.json
    ");
}

#[test]
fn what_was_made_opens_and_is_what_the_trust_root_lists() {
    let home = Home::new();
    let created = home.create("opens").unwrap();
    let keyring = home.open().unwrap();
    assert_eq!(keyring.organisation(), &created.organisation);
    assert_eq!(keyring.trust().digest(), created.trust.digest());
    assert_eq!(keyring.history().versions().count(), 1);
    for role in Role::ALL {
        let signer = keyring.signer(role);
        assert_eq!(signer.role(), role);
        let (listed, key) = keyring.trust().role_key(signer.keyid()).unwrap();
        assert_eq!((listed, &key.public), (role, signer.public_key()));
        assert!(
            created
                .keys
                .contains(&(KeyUse::from(role), signer.keyid().clone()))
        );
    }
    let document = created.trust.document();
    assert_eq!((document.version, document.threshold), (1, 1));
    assert_eq!(document.expires_at, NOW.plus_seconds(TRUST_ROOT_SECONDS));
    assert_eq!(
        TrustRoot::parse_pinned(&home.read("trust-root-1.json"), &created.trust.digest()).unwrap(),
        created.trust
    );
}

#[test]
fn the_logs_key_is_made_listed_and_opened_with_the_others() {
    let home = Home::new();
    let created = home.create("log").unwrap();
    let keyring = home.open().unwrap();
    let public = keyring.log_key().unwrap().public();
    assert!(created.keys.contains(&(KeyUse::Log, public.keyid())));
    let history = keyring.history();
    assert_eq!(history.log_keys_at(NOW), [&public]);
    assert!(history.log_keys_at(NOW.plus_millis(-1)).is_empty());
    let listed = keyring.trust().side_keys(KeyUse::Log);
    assert_eq!(listed.count(), 1);
    assert_eq!(keyring.trust().side_keys(KeyUse::Receipt).count(), 0);
    keyring.allow_acting(NOW).unwrap();
}

#[test]
fn the_root_key_opens_too_and_is_never_needed_for_signing() {
    let home = Home::made("offline root");
    let root = home.root_key();
    let keyring = home.open().unwrap();
    assert_eq!(
        keyring.trust().document().root_keys[0].public,
        root.public()
    );
    std::fs::remove_file(home.file("root.key")).unwrap();
    std::fs::remove_file(home.file("root.secret")).unwrap();
    home.open().unwrap();
}

#[test]
fn the_organisation_given_is_kept() {
    let home = Home::new();
    let organisation = OrganisationId::new(NOW, [7; 10]);
    let created = signer::create(
        &home.configuration(),
        &home.environment(),
        Some(organisation.clone()),
        NOW,
        &mut bytes_of("given"),
    )
    .unwrap();
    assert_eq!(created.organisation, organisation);
    assert_eq!(home.open().unwrap().organisation(), &organisation);
}

// Break it: let `signer::create::target` answer `Ok` without looking.
#[test]
fn keys_are_never_made_over_keys() {
    let home = Home::made("first");
    let before = home.read("approver.key");
    let refused = home.create("second").unwrap_err();
    assert!(matches!(refused, CreateError::AlreadyThere { .. }));
    assert_eq!(home.read("approver.key"), before);
    // One leftover is enough: the rest may lie in a backup.
    for entry in std::fs::read_dir(home.keys()).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("trust-root-1.json") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let refused = home.create("third").unwrap_err();
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"making keys: …/home/keys holds keys already (trust-root-1.json), and new ones would orphan every ledger that those signed; see them with `caretaker keys list`, or name another folder under keys.dir");
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let home = Home::new();
    std::fs::create_dir_all(home.keys()).unwrap();
    home.put("notes.txt", "mine");
    let refused = home.create("other things").unwrap_err();
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"making keys: …/home/keys is not empty (notes.txt), and keys are put in place as a whole folder; move that elsewhere, or name another folder under keys.dir");
    assert_eq!(home.read("notes.txt"), b"mine");
}

#[test]
fn an_empty_folder_is_taken_and_closed_to_others() {
    let home = Home::new();
    std::fs::create_dir_all(home.keys()).unwrap();
    set_mode(&home.keys(), 0o755);
    home.create("empty folder").unwrap();
    assert_eq!(super::mode(&home.keys()), 0o700);
    home.open().unwrap();
}

#[test]
fn whenever_randomness_fails_nothing_is_left_behind() {
    // Break it: write each file as soon as it is made, into the folder itself.
    let mut failures = 0;
    for calls in 0.. {
        let home = Home::new();
        let mut bytes = bytes_of("fails");
        let mut left = calls;
        let mut fill = |buffer: &mut [u8]| {
            if left == 0 {
                return Err(FillError {
                    reason: "no entropy".to_owned(),
                });
            }
            left -= 1;
            bytes(buffer)
        };
        let made = signer::create(
            &home.configuration(),
            &home.environment(),
            None,
            NOW,
            &mut fill,
        );
        if made.is_ok() {
            break;
        }
        assert_eq!(home.listing(), Vec::<String>::new(), "after {calls} calls");
        failures += 1;
    }
    assert!(failures > 15, "{failures}");
}

#[test]
fn where_the_system_refuses_nothing_is_left_behind() {
    let mut home = Home::new();
    let blocked = home.folder.path().join("blocked");
    std::fs::write(&blocked, "a file where a folder should be").unwrap();
    home.variables.push((
        "CARETAKER_KEYS__DIR".to_owned(),
        blocked.join("keys").display().to_string(),
    ));
    let refused = home.create("refused").unwrap_err();
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"making keys: looking at …/blocked/keys: Not a directory (os error 20); keys.dir has to be in a folder that this user may write");
}

#[test]
fn secrets_that_the_configuration_names_are_used_and_none_is_made_for_them() {
    let random = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let home = Home::with(&[
        ("CARETAKER_KEYS__ROLES__PROPOSER__SECRET", "env:FIRST"),
        ("CARETAKER_KEYS__ROLES__POLICY__SECRET", "env:SECOND"),
        ("FIRST", "correct horse battery staple"),
        ("SECOND", random),
    ]);
    let created = home.create("named").unwrap();
    assert!(!home.file("proposer.secret").exists() && !home.file("policy.secret").exists());
    assert_eq!(created.generated_secrets.len(), 4);
    let derivation = |name| {
        KeyFile::parse(&home.read(name))
            .unwrap()
            .header()
            .kdf
            .clone()
    };
    // What people can think up is opened slowly, what is random at once.
    assert!(matches!(derivation("proposer.key"), Kdf::Argon2id { .. }));
    assert!(matches!(derivation("policy.key"), Kdf::HkdfSha256 { .. }));
    assert!(matches!(derivation("executor.key"), Kdf::HkdfSha256 { .. }));
    home.open().unwrap();
}

#[test]
fn a_named_secret_that_is_not_there_stops_everything() {
    let home = Home::with(&[("CARETAKER_KEYS__ROLES__EXECUTOR__SECRET", "env:GONE")]);
    let refused = home.create("gone").unwrap_err();
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"making keys: looking for the secret of the executor's key: environment variable GONE is not set or empty; set it, or name another place under keys.roles.executor.secret");
    assert_eq!(home.listing(), Vec::<String>::new());
}

#[test]
fn one_secret_in_two_places_is_still_one_secret() {
    let home = Home::with(&[
        ("CARETAKER_KEYS__ROLES__PROPOSER__SECRET", "env:FIRST"),
        ("CARETAKER_KEYS__ROLES__APPROVER__SECRET", "env:SECOND"),
        ("FIRST", "hunter2 hunter2"),
        ("SECOND", "hunter2 hunter2"),
    ]);
    let refused = home.create("shared").unwrap_err().to_string();
    assert!(!refused.contains("hunter2"));
    insta::assert_snapshot!(home.tidy(&refused), @"making keys: proposer and approver have the same secret; each needs one of its own, since whoever holds one must not open the other");
}

#[test]
fn a_keyring_in_memory_is_as_good_until_it_expires() {
    let keyring = Keyring::in_memory(None, NOW, &mut bytes_of("in memory")).unwrap();
    keyring.allow_acting(NOW).unwrap();
    let late = NOW.plus_seconds(TRUST_ROOT_SECONDS);
    assert!(keyring.allow_acting(late).is_err());
    assert!(keyring.allow_acting(late.plus_millis(-1)).is_ok());
    // Two roles with one key would be one role.
    let constant = Keyring::in_memory(None, NOW, &mut |buffer: &mut [u8]| {
        buffer.fill(1);
        Ok(())
    });
    assert!(matches!(constant, Err(CreateError::TrustRoot(_))));
}
