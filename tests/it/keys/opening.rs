//! Opening keys: everything that is wrong is refused in words.

use caretaker::attest::{KeyFileError, KeyUse, Role};
use caretaker::change::Sha256Digest;
use caretaker::config::Configuration;
use caretaker::id::OrganisationId;
use caretaker::signer::{self, KeyringError, TRUST_ROOT_SECONDS, open_signer, trust_history};

use super::{Home, NOW, bytes_of, set_mode};

/// Why one role's key does not open.
fn refusal_of(home: &Home, role: Role) -> KeyringError {
    let configuration = home.configuration();
    let history = trust_history(&configuration).unwrap();
    open_signer(
        role,
        &configuration,
        &home.environment(),
        &std::sync::Arc::new(history),
        NOW,
    )
    .unwrap_err()
}

/// The header line of one key file on the sealed line of another, with a checksum that fits.
fn grafted(header: &[u8], body: &[u8]) -> String {
    use base64::Engine as _;
    let line = |bytes: &[u8], number: usize| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().nth(number).unwrap().to_owned()
    };
    let sealed = line(body, 1);
    let words: Vec<&str> = sealed.split(' ').collect();
    let text = format!("{}\n{} {} ", line(header, 0), words[0], words[1]);
    let checksum = Sha256Digest::of(text.as_bytes());
    let checksum = base64::engine::general_purpose::STANDARD.encode(checksum.as_bytes());
    format!("{text}{checksum}\n")
}

#[test]
fn without_keys_the_mend_is_to_make_them() {
    insta::assert_snapshot!(Home::new().refusal(), @"opening the keys: …/home/keys holds no trust root; run `caretaker keys init`, or name the folder that holds the keys under keys.dir");
}

// Break it: decrypt without authentication in `attest::keys::file`.
#[test]
fn the_proposers_secret_does_not_open_the_approvers_key() {
    let home = Home::made("wrong secret");
    home.put("approver.secret", home.read("proposer.secret"));
    let refused = refusal_of(&home, Role::Approver);
    assert!(matches!(
        refused,
        KeyringError::KeyFile {
            used: KeyUse::Approver,
            cause: KeyFileError::WrongSecret { .. },
            ..
        }
    ));
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"opening the approver's key: …/home/keys/approver.key: the secret does not open the approver's key SHA256:…: it is not this file's secret, or the file's header was exchanged; each role has a secret of its own");
}

// Break it: seal and open with empty associated data in `attest::keys::file`.
#[test]
fn another_roles_header_on_the_right_key_does_not_open() {
    let home = Home::made("header exchanged");
    // Somebody who may write the folder wants the proposer's key to sign as the approver: the approver's header, whose salt
    // is made that of the proposer's, on the proposer's seed, with the proposer's secret as the approver's.
    let proposer = home.read("proposer.key");
    let approver = String::from_utf8(home.read("approver.key")).unwrap();
    let text = String::from_utf8(proposer.clone()).unwrap();
    let header = text
        .lines()
        .next()
        .unwrap()
        .replace("\"proposer\"", "\"approver\"");
    home.put("approver.secret", home.read("proposer.secret"));
    home.put("approver.key", grafted(header.as_bytes(), &proposer));
    let refused = refusal_of(&home, Role::Approver);
    assert!(
        matches!(
            refused,
            KeyringError::KeyFile {
                cause: KeyFileError::WrongSecret { .. },
                ..
            }
        ),
        "{refused}"
    );
    // Nor does the approver's own header with the proposer's seed.
    home.put("approver.key", grafted(approver.as_bytes(), &proposer));
    assert!(matches!(
        refusal_of(&home, Role::Approver),
        KeyringError::KeyFile {
            cause: KeyFileError::WrongSecret { .. },
            ..
        }
    ));
}

// Break it: drop the call of `shared` in `Keyring::open`.
#[test]
fn roles_that_are_opened_by_one_secret_are_refused() {
    let home = Home::made("one secret");
    home.put("approver.secret", home.read("proposer.secret"));
    insta::assert_snapshot!(home.refusal(), @"opening the keys: proposer and approver have the same secret; each needs one of its own, since whoever holds one must not open the other");
}

#[test]
fn key_files_in_each_others_place_are_told_apart() {
    let home = Home::made("exchanged");
    let (proposer, approver) = (home.read("proposer.key"), home.read("approver.key"));
    home.put("proposer.key", approver);
    home.put("approver.key", proposer);
    insta::assert_snapshot!(home.refusal(), @"opening the proposer's key: …/home/keys/proposer.key: the key file is the approver's, but the proposer's is needed; check the path");
}

#[test]
fn what_is_missing_is_named_with_its_mend() {
    let messages = ["policy.key", "policy.secret", "credential.key"].map(|name| {
        let home = Home::made("missing");
        std::fs::remove_file(home.file(name)).unwrap();
        home.refusal()
    });
    let mut unset = Home::made("missing");
    unset.variables.push((
        "CARETAKER_KEYS__ROLES__POLICY__SECRET".to_owned(),
        "env:POLICY_SECRET".to_owned(),
    ));
    insta::assert_snapshot!(format!("{}\n{}", messages.join("\n"), unset.refusal()), @r"
    opening the policy's key: …/home/keys/policy.key is missing; restore it from a backup (without a backup the key is lost, and a new trust root has to list another)
    looking for the secret of the policy's key: reading the secret file …/home/keys/policy.secret: No such file or directory (os error 2); check the path and its permissions; create it, or name another place under keys.roles.policy.secret. Only the secret that the key was made with opens it
    opening the key of credentials: …/home/keys/credential.key: No such file or directory (os error 2); restore it from a backup, or give every project its token again
    looking for the secret of the policy's key: environment variable POLICY_SECRET is not set or empty; set it, or name another place under keys.roles.policy.secret. Only the secret that the key was made with opens it
    ");
}

#[test]
fn what_is_damaged_is_named_with_its_mend() {
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() / 2].to_vec();
    let messages = [
        "executor.key",
        "executor.secret",
        "credential.key",
        "trust-root-1.json",
    ]
    .map(|name| {
        let home = Home::made("damaged");
        home.put(name, cut(home.read(name)));
        home.refusal()
    });
    insta::assert_snapshot!(messages.join("\n"), @r"
    opening the executor's key: …/home/keys/executor.key: the key file is damaged (it has no second line); restore it from a backup or rotate the key
    opening the executor's key: …/home/keys/executor.key: the secret does not open the executor's key SHA256:…: it is not this file's secret, or the file's header was exchanged; each role has a secret of its own
    opening the key of credentials: …/home/keys/credential.key: it has 16 bytes instead of 32; restore it from a backup, or give every project its token again
    opening the keys: …/home/keys/trust-root-1.json: reading a trust root: reading an envelope: at byte 911: expected the end of the string; restore the file from a backup
    ");
}

#[test]
fn whatever_lies_in_a_files_place_there_is_an_answer() {
    for name in [
        "executor.key",
        "executor.secret",
        "credential.key",
        "trust-root-1.json",
    ] {
        for (what, bytes) in [
            ("empty", Vec::new()),
            ("long", vec![b'a'; 3 << 20]),
            ("binary", vec![0xff; 100]),
        ] {
            let home = Home::made("rubbish");
            home.put(name, bytes);
            assert!(home.open().is_err(), "{what} {name}");
        }
        let home = Home::made("rubbish");
        std::fs::remove_file(home.file(name)).unwrap();
        std::fs::create_dir(home.file(name)).unwrap();
        assert!(home.open().is_err(), "a folder as {name}");
    }
}

#[test]
fn a_secret_may_be_a_credential_of_the_systemd_unit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let policy = ("CARETAKER_KEYS__ROLES__POLICY__SECRET", "credential:policy");
    std::fs::write(folder.path().join("policy"), "correct horse battery\n").unwrap();
    // As systemd makes it where it lets the service in by an access list.
    set_mode(&folder.path().join("policy"), 0o440);
    let home = Home::with(&[policy, ("CREDENTIALS_DIRECTORY", &path)]);
    home.create("systemd").unwrap();
    assert!(!home.file("policy.secret").exists());
    home.open().unwrap();
    set_mode(&folder.path().join("policy"), 0o444);
    let open = home.refusal().replace(&path, "[credentials]");
    let bare = Home::with(&[policy]);
    let missing = bare.create("no unit").unwrap_err().to_string();
    let outside = Home::with(&[(
        "CARETAKER_KEYS__ROLES__POLICY__SECRET",
        "credential:../policy",
    )]);
    let outside = Configuration::load(None, &outside.environment()).unwrap_err();
    let messages = [open, bare.tidy(&missing), outside.to_string()];
    insta::assert_snapshot!(messages.join("\n"), @r"
    looking for the secret of the policy's key: file [credentials]/policy may be read by others (mode 0444); run: chmod 600 '[credentials]/policy'
    making keys: looking for the secret of the policy's key: keys.roles.policy.secret names the credential policy, and systemd gave this process none; add LoadCredential=policy:… to the unit, or start it by systemd
    environment variable CARETAKER_KEYS__ROLES__POLICY__SECRET: a secret is named as env:NAME, file:PATH or credential:NAME; it does not itself belong into the configuration
    ");
}

#[test]
fn secrets_that_others_may_read_are_refused() {
    let messages = ["approver.secret", "credential.key"].map(|name| {
        let home = Home::made("open");
        set_mode(&home.file(name), 0o640);
        home.refusal()
    });
    insta::assert_snapshot!(messages.join("\n"), @r"
    looking for the secret of the approver's key: file …/home/keys/approver.secret may be read by others (mode 0640); run: chmod 600 '…/home/keys/approver.secret'
    opening the key of credentials: …/home/keys/credential.key may be read by others (mode 0640); run: chmod 600 '…/home/keys/credential.key', and give every project a new token if others did read it
    ");
}

#[test]
fn keys_and_trust_root_of_two_organisations_do_not_go_together() {
    let (home, other) = (Home::made("ours"), Home::made("theirs"));
    home.put("trust-root-1.json", other.read("trust-root-1.json"));
    insta::assert_snapshot!(home.refusal(), @"opening the proposer's key: it belongs to org-…, but the trust root is that of org-…; put keys and trust root of one organisation together");
}

/// Two installations of one organisation that know nothing of each other.
fn two_of_one_name() -> (Home, Home) {
    let (home, other) = (Home::new(), Home::new());
    let organisation = OrganisationId::new(NOW, [7; 10]);
    for (place, story) in [(&home, "listed"), (&other, "another of the same name")] {
        signer::create(
            &place.configuration(),
            &place.environment(),
            Some(organisation.clone()),
            NOW,
            &mut bytes_of(story),
        )
        .unwrap();
    }
    (home, other)
}

#[test]
fn an_installation_made_before_the_log_opens_without_its_key() {
    let home = Home::made_before_the_log("before");
    let keyring = home.open().unwrap();
    assert!(keyring.log_key().is_none());
    assert!(keyring.history().log_keys_at(NOW).is_empty());
    keyring.allow_acting(NOW).unwrap();
}

// Break it: let `signer::keyring::check_listed` answer `Ok(())`.
#[test]
fn a_log_key_that_the_trust_root_does_not_list_opens_nothing() {
    let missing = Home::made("missing");
    std::fs::remove_file(missing.file("log.key")).unwrap();
    let shared = Home::made("one secret");
    shared.put("log.secret", shared.read("approver.secret"));
    let (exchanged, other) = two_of_one_name();
    for name in ["log.key", "log.secret"] {
        exchanged.put(name, other.read(name));
    }
    let messages = [missing, shared, exchanged].map(|home| home.refusal());
    insta::assert_snapshot!(messages.join("\n"), @r"
    opening the log's key: …/home/keys/log.key is missing; restore it from a backup (without a backup the key is lost, and a new trust root has to list another)
    opening the keys: approver and log have the same secret; each needs one of its own, since whoever holds one must not open the other
    opening the log's key: the trust root (version 1) does not list SHA256:… as the log's; restore the key file or the trust root that belongs to it
    ");
}

// Break it: let `signer::keyring::check_listed` answer `Ok(())`.
#[test]
fn a_key_that_the_trust_root_does_not_list_never_signs() {
    let (home, other) = two_of_one_name();
    for name in ["approver.key", "approver.secret"] {
        home.put(name, other.read(name));
    }
    insta::assert_snapshot!(home.refusal(), @"opening the approver's key: the trust root (version 1) does not list SHA256:… as the approver's; restore the key file or the trust root that belongs to it");
}

#[test]
fn an_expired_trust_root_stops_acting_and_not_verifying() {
    let home = Home::made("expired");
    let late = NOW.plus_seconds(TRUST_ROOT_SECONDS);
    let refused = home.open_at(late).unwrap_err();
    insta::assert_snapshot!(refused.to_string(), @"opening the keys: trust root version 1 expired at 2031-05-27T20:26:40Z; have the root keys sign a new version before acting");
    assert!(trust_history(&home.configuration()).is_ok());
}

#[test]
fn a_clock_before_the_keys_were_made_is_said() {
    let home = Home::made("early");
    let refused = home.open_at(NOW.plus_seconds(-60)).unwrap_err();
    insta::assert_snapshot!(home.tidy(&refused.to_string()), @"opening the proposer's key: by the trust root, SHA256:… does not count at [time] (it counts from [time]); check the clock, or have the root key sign a trust root with a key that counts");
}

#[test]
fn versions_of_the_trust_root_are_what_their_names_say() {
    let gap = Home::made("gap");
    std::fs::rename(gap.file("trust-root-1.json"), gap.file("trust-root-2.json")).unwrap();
    let twice = Home::made("twice");
    twice.put("trust-root-2.json", twice.read("trust-root-1.json"));
    let foreign = Home::made("foreign");
    foreign.put("trust-root-2.json", gap.read("trust-root-2.json"));
    // Not a version's name, so nobody's.
    let stray = Home::made("stray");
    stray.put("trust-root-01.json", "nothing");
    stray.put("trust-root-1.json.bak", "nothing");
    stray.open().unwrap();
    insta::assert_snapshot!([gap, twice, foreign].map(|home| home.refusal()).join("\n"), @r"
    opening the keys: …/home/keys/trust-root-1.json: this version is missing, while a later one is there; restore the file from a backup
    opening the keys: …/home/keys/trust-root-2.json: trust root version 1 does not continue the versions that are held: it names another predecessor; restore the file from a backup
    opening the keys: …/home/keys/trust-root-2.json: trust root version 1 does not continue the versions that are held: it names another predecessor; restore the file from a backup
    ");
}
