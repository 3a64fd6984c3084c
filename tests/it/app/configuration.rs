//! `github.app` in the configuration.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use caretaker::config::{Configuration, Environment, SecretSource};

use super::*;

fn load(folder: &Path, text: &str, variables: &[(&str, &str)]) -> Result<Configuration, String> {
    let file = folder.join("caretaker.yaml");
    std::fs::write(&file, text).unwrap();
    let home = folder.join("home").display().to_string();
    let all = [("CARETAKER_HOME", home.as_str())];
    let environment = Environment::new(all.iter().chain(variables).copied(), folder);
    Configuration::load(Some(&file), &environment).map_err(|error| {
        error
            .to_string()
            .replace(&format!("{}/", folder.display()), "")
    })
}

#[test]
fn an_app_is_configured_by_number_and_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "github: {app: {id: 4711, private_key_file: app.pem, webhook_secret: \"file:hook\"}}";
    let app = load(folder.path(), text, &[]).unwrap().github.app.unwrap();
    assert_eq!(app.id, 4711);
    assert_eq!(app.private_key_file, folder.path().join("app.pem"));
    assert_eq!(
        app.webhook_secret,
        Some(SecretSource::File(folder.path().join("hook")))
    );
    assert_eq!(load(folder.path(), "{}", &[]).unwrap().github.app, None);
    // Each key by a variable of its own.
    let variables = [
        ("CARETAKER_GITHUB__APP__ID", "12"),
        ("CARETAKER_GITHUB__APP__PRIVATE_KEY_FILE", "/k.pem"),
        ("CARETAKER_GITHUB__APP__WEBHOOK_SECRET", "env:HOOK"),
    ];
    let app = load(folder.path(), "{}", &variables)
        .unwrap()
        .github
        .app
        .unwrap();
    assert_eq!(
        (app.id, app.private_key_file.as_path()),
        (12, Path::new("/k.pem"))
    );
}

#[test]
fn half_an_app_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refusals = [
        "github: {app: {id: 4711}}",
        "github: {app: {private_key_file: app.pem}}",
        "github: {app: {webhook_secret: \"env:HOOK\"}}",
        "github: {app: {id: 0, private_key_file: app.pem}}",
        "github: {app: {id: 4711, private_key_file: app.pem, webhook_secret: s3cret}}",
        "github: {app: {id: 4711, private_key: app.pem}}",
    ]
    .map(|text| load(folder.path(), text, &[]).unwrap_err());
    insta::assert_snapshot!(refusals.join("\n"));
    assert!(!refusals.join("\n").contains("s3cret"));
}

#[test]
fn a_key_that_others_may_read_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.pem");
    std::fs::write(&file, PKCS1).unwrap();
    let environment = Environment::new([("CARETAKER_HOME", "/h")], folder.path());
    let text = "github: {app: {id: 4711, private_key_file: app.pem}}";
    let app = load(folder.path(), text, &[]).unwrap().github.app.unwrap();
    let mode =
        |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    let error = app.private_key(&environment).unwrap_err().to_string();
    assert!(
        error.contains("mode 0640") && error.contains("chmod 600"),
        "{error}"
    );
    mode(0o600);
    assert_eq!(
        app.private_key(&environment).unwrap().expose_secret(),
        PKCS1.trim_end()
    );
}
