//! Options are checked before anything is sent.

use std::sync::Arc;

use caretaker::clock::SystemClock;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{
    GithubClient, GithubConnector, GithubOptions, GithubSetupError, check_token,
};
use caretaker::connector::{Connector as _, GitUse};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::provider::{Provider, Reply, TOKEN, json};

async fn refused(change: impl Fn(&mut GithubOptions)) -> String {
    let provider = Provider::start(|_| Reply::Silence).await;
    let mut options = provider.options();
    change(&mut options);
    match GithubConnector::new(&provider.client, options) {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn addresses_that_would_leak_the_token_are_refused_with_the_mend() {
    // Break it: drop the loopback condition in `check_base` (connector/github/options.rs); this then fails.
    let plain = refused(|it| it.api_url = "http://github.example/api/v3".to_owned()).await;
    assert!(plain.contains("use https"), "{plain}");
    let inside = refused(|it| it.git_url = "https://me:secret@github.example".to_owned()).await;
    assert!(inside.contains("its own setting"), "{inside}");
    assert!(!inside.contains("secret"), "{inside}");
    let scheme = refused(|it| it.web_url = "javascript:alert(1)".to_owned()).await;
    assert!(scheme.contains("web_url"), "{scheme}");
    let words = refused(|it| it.api_url = "github.com".to_owned()).await;
    assert!(words.contains("with its scheme"), "{words}");
    let query = refused(|it| it.api_url = "https://api.github.com/?x=1".to_owned()).await;
    assert!(query.contains("base alone"), "{query}");
}

#[tokio::test]
async fn names_that_reach_another_path_are_refused() {
    for name in ["", ".", "..", "a/b", "a b", "a%2fb", "ä", "a\n"] {
        let error = refused(|it| it.name = name.to_owned()).await;
        assert!(error.contains("must have"), "{name:?}: {error}");
        let error = refused(|it| it.owner = name.to_owned()).await;
        assert!(error.contains("owner"), "{name:?}: {error}");
    }
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_refused_without_being_shown() {
    for token in ["", "two words", "line\nend", "ümlaut"] {
        let error = check_token(&SecretString::from(token)).unwrap_err();
        assert_eq!(error, GithubSetupError::Token);
    }
    check_token(&SecretString::from(TOKEN)).unwrap();
    // Whoever sends one all the same sends nothing.
    let provider = Provider::start(|_| Reply::Silence).await;
    let credential = Arc::new(PersonalToken::new("line\nend".into()));
    let error = provider
        .connector_with(credential)
        .run(1)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cannot carry"), "{error}");
    assert!(!error.to_string().contains("end"), "{error}");
    assert!(provider.asked().is_empty());
    let provider = Provider::start(|_| Reply::Silence).await;
    assert!(!format!("{:?}", provider.options()).contains(TOKEN));
}

#[tokio::test]
async fn a_number_that_reaches_another_path_is_refused() {
    for number in ["", "42/..", "4 2", "x", "-1", "99999999999999999999999"] {
        let error = refused(|it| it.expected_repository_id = Some(number.to_owned())).await;
        assert!(error.contains("not the number"), "{number:?}: {error}");
    }
}

#[test]
fn a_connector_can_be_made_outside_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let provider = runtime.block_on(Provider::start(|_| Reply::Silence));
    let client = GithubClient::of_system(Arc::new(SystemClock));
    assert!(GithubConnector::new(&client, provider.options()).is_ok());
}

#[tokio::test]
async fn the_host_and_the_git_remote_are_the_configured_ones() {
    let provider = Provider::start(|_| Reply::Silence).await;
    let mut options = provider.options();
    options.web_url = "https://github.example".to_owned();
    options.git_url = "https://git.github.example/".to_owned();
    let connector = provider.made(options.clone());
    assert_eq!(connector.host(), "github.example");
    let remote = connector.git_remote(GitUse::Fetch).await.unwrap();
    assert_eq!(remote.url, "https://git.github.example/octo/widget.git");
    assert_eq!(remote.token.unwrap().expose_secret(), TOKEN);
    options.git_url = "file:///srv/git".to_owned();
    let local = provider.made(options);
    let local = local.git_remote(GitUse::Push).await.unwrap();
    assert_eq!(local.url, "file:///srv/git/octo/widget.git");
    assert!(local.token.is_none(), "a local path needs no password");
}

#[tokio::test]
async fn every_request_carries_each_header_once() {
    let provider = Provider::start(|_| {
        json(
            200,
            &json!({"id": 42, "full_name": "octo/widget", "default_branch": "main"}),
        )
    })
    .await;
    let repository = provider.connector().repository().await.unwrap();
    assert_eq!((repository.id.as_str(), repository.archived), ("42", false));
    let asked = provider.asked().remove(0);
    assert_eq!(asked.target, "/api/v3/repositories/42");
    assert_eq!(asked.all("accept"), ["application/vnd.github+json"]);
    assert_eq!(asked.all("x-github-api-version"), ["2022-11-28"]);
    assert_eq!(asked.all("authorization"), [format!("Bearer {TOKEN}")]);
    let agents = asked.all("user-agent");
    assert!(
        agents.len() == 1 && agents[0].starts_with("caretaker/"),
        "{agents:?}"
    );
}
