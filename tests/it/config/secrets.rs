//! Secrets: where they are looked for, and when they are refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use caretaker::config::{KeyName, Keys, SecretSource};
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
            &Keys::configuration_key(KeyName::Policy),
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
    insta::assert_snapshot!(messages.join("\n"), @"");
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
    ] {
        let error = text.parse::<SecretSource>().unwrap_err();
        assert!(error.contains("env:NAME or file:PATH") && !error.contains("hunter2"));
    }
}
