//! `github.webhook_secret`.

use std::path::PathBuf;

use caretaker::config::{Configuration, Environment, SecretSource};

fn load(content: &str) -> Result<(Configuration, PathBuf), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("caretaker.yaml");
    std::fs::write(&file, content).unwrap();
    let home = folder.path().join("home").display().to_string();
    let environment = Environment::new([("CARETAKER_HOME", home)], folder.path());
    let loaded = Configuration::load(Some(&file), &environment);
    let folder_name = format!("{}/", folder.path().display());
    loaded
        .map(|configuration| (configuration, folder.path().to_owned()))
        .map_err(|error| error.to_string().replace(&folder_name, ""))
}

#[test]
fn the_secret_is_named_by_its_place_and_none_is_needed() {
    let (configuration, _) = load("{}").unwrap();
    assert_eq!(configuration.github.webhook_secret, None);
    assert_eq!(configuration.github.host(), "github.com");
    let (configuration, _) = load("github: {webhook_secret: \"env:HOOK\"}").unwrap();
    let expected = SecretSource::Environment("HOOK".to_owned());
    assert_eq!(configuration.github.webhook_secret, Some(expected));
    let own = "github: {api_url: 'http://127.0.0.1:4000', web_url: 'http://127.0.0.1:4000', webhook_secret: 'file:hook.secret'}";
    let (configuration, folder) = load(own).unwrap();
    let expected = SecretSource::File(folder.join("hook.secret"));
    assert_eq!(configuration.github.webhook_secret, Some(expected));
    assert_eq!(configuration.github.host(), "127.0.0.1:4000");
}

#[test]
fn a_secret_in_the_configuration_itself_is_refused_and_not_repeated() {
    let refused = load("github: {webhook_secret: hunter2}").unwrap_err();
    assert!(
        refused.contains("env:NAME, file:PATH or credential:NAME"),
        "{refused}"
    );
    assert!(!refused.contains("hunter2"), "{refused}");
}

#[test]
fn a_secret_that_opens_a_key_is_not_given_to_the_hosting_service() {
    let shared =
        "github: {webhook_secret: \"env:S\"}\nkeys: {roles: {approver: {secret: \"env:S\"}}}";
    insta::assert_snapshot!(load(shared).unwrap_err(), @"caretaker.yaml: github.webhook_secret: it is the secret of the approver key, and the hosting service would know it; make one of its own");
    let generated = "github: {webhook_secret: \"file:home/keys/log.secret\"}";
    assert!(load(generated).unwrap_err().contains("the log key"));
}
