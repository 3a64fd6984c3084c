//! Secrets: where they are looked for, and when they are refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use caretaker::attest::KeyUse;
use caretaker::config::{Keys, SecretSource};
use secrecy::ExposeSecret as _;

use super::Place;

fn set_mode(file: &Path, mode: u32) {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn fetch(place: &Place, source: &str, variables: &[(&str, &str)]) -> Result<String, String> {
    let source: SecretSource = source.parse().unwrap();
    source
        .resolve(
            "role policy",
            &Keys::configuration_key(KeyUse::Policy),
            &place.environment(variables),
        )
        .map(|secret| secret.expose_secret().to_owned())
        .map_err(|error| place.shown(&error))
}

#[test]
fn a_secret_comes_from_a_variable_or_from_a_private_file() {
    let place = Place::new();
    assert_eq!(
        fetch(&place, "env:POLICY", &[("POLICY", "open sesame")]).unwrap(),
        "open sesame"
    );
    let file = place.write("policy.secret", "open sesame\n");
    set_mode(&file, 0o600);
    assert_eq!(
        fetch(&place, &format!("file:{}", file.display()), &[]).unwrap(),
        "open sesame"
    );
}

// Break it: drop the test of `mode & 0o077` in `config::secret`.
#[test]
fn a_secret_that_is_missing_empty_or_open_to_others_is_refused_with_the_mend() {
    let place = Place::new();
    let file = place.write("policy.secret", "hunter2");
    set_mode(&file, 0o644);
    let empty = place.write("empty.secret", " \n");
    set_mode(&empty, 0o600);
    let binary = place.write("binary.secret", b"\xff\xfe");
    set_mode(&binary, 0o600);
    let from = |name: &str| {
        fetch(
            &place,
            &format!("file:{}", place.path().join(name).display()),
            &[],
        )
        .unwrap_err()
    };
    let messages = [
        fetch(&place, "env:POLICY", &[]).unwrap_err(),
        fetch(&place, "env:POLICY", &[("POLICY", "")]).unwrap_err(),
        from("nowhere"),
        from(""),
        from("policy.secret"),
        from("empty.secret"),
        from("binary.secret"),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    looking for the secret of role policy: environment variable POLICY is not set or empty; set it, or name another place under keys.roles.policy.secret
    looking for the secret of role policy: environment variable POLICY is not set or empty; set it, or name another place under keys.roles.policy.secret
    looking for the secret of role policy: reading the secret file nowhere: No such file or directory (os error 2); check the path and its permissions; create it, or name another place under keys.roles.policy.secret
    looking for the secret of role policy: reading the secret file : it is a folder, a pipe or a device; name an ordinary file; create it, or name another place under keys.roles.policy.secret
    looking for the secret of role policy: file policy.secret may be read by others (mode 0644); run: chmod 600 'policy.secret'
    looking for the secret of role policy: file empty.secret is empty; write the secret into it as one line of text
    looking for the secret of role policy: file binary.secret is not text; write the secret into it as one line of text
    ");
    assert!(!messages.concat().contains("hunter2"));
}

#[test]
fn a_secret_written_into_the_configuration_itself_is_refused_and_not_repeated() {
    for text in [
        "hunter2",
        "env:",
        "env:A B",
        "file:",
        "ENV:X",
        "env:A=hunter2",
        "credential:",
        "credential:a/hunter2",
        "credential:..",
    ] {
        let error = text.parse::<SecretSource>().unwrap_err();
        assert!(
            error.contains("env:NAME, file:PATH or credential:NAME") && !error.contains("hunter2")
        );
    }
}
