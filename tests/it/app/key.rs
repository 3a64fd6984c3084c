//! The App's key signs what the provider can verify, and is shown nowhere.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caretaker::clock::{FixedClock, Millis};
use caretaker::connector::github::app::{AppInterface, AppKey, AppKeyError, AppOptions};
use secrecy::SecretString;
use serde_json::Value;

use super::provider::{Provider, verified};
use super::*;

/// What the App said of itself with a key.
async fn said_with(pem: &str, now: Millis) -> String {
    let provider = Provider::start(Arc::new(FixedClock::at(now))).await;
    let interface = AppInterface::new(AppOptions {
        key: AppKey::from_pem(&SecretString::from(pem)).unwrap(),
        ..provider.options()
    });
    interface.unwrap().app().await.unwrap();
    let asked = provider.asked();
    let header = asked.last().unwrap().authorization.clone().unwrap();
    header.strip_prefix("Bearer ").unwrap().to_owned()
}

#[tokio::test]
async fn both_forms_of_the_key_sign_the_same_assertion_of_ten_minutes() {
    let said = said_with(PKCS1, NOW).await;
    assert_eq!(said, said_with(PKCS8, NOW).await, "RS256 has no randomness");
    assert!(verified(&said), "the provider's own check");
    let parts: Vec<Value> = said
        .split('.')
        .take(2)
        .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
        .collect();
    assert_eq!(parts[0]["alg"], "RS256");
    let seconds = NOW.0 / 1000;
    assert_eq!(parts[1]["iat"], seconds - 60);
    assert_eq!(parts[1]["exp"], seconds + 9 * 60);
    assert_eq!(parts[1]["iss"], provider::APP.to_string());
    assert_eq!(parts[1].as_object().unwrap().len(), 3);
}

#[test]
fn what_is_no_rsa_key_is_refused_in_words_that_do_not_repeat_it() {
    let from = |pem: &str| AppKey::from_pem(&SecretString::from(pem)).map(|_| ());
    let elliptic = include_str!("keys/elliptic.pem");
    assert_eq!(from(elliptic), Err(AppKeyError::Kind));
    assert_eq!(from(include_str!("keys/short.pem")), Err(AppKeyError::Kind));
    assert_eq!(
        from(include_str!("keys/locked.pem")),
        Err(AppKeyError::Form)
    );
    assert_eq!(
        from(include_str!("keys/public.pem")),
        Err(AppKeyError::Form)
    );
    let cut: String = PKCS1.lines().take(10).collect();
    for odd in ["", "hello", cut.as_str(), &PKCS1.replace("RSA ", "DSA ")] {
        let error = from(odd).unwrap_err();
        assert_eq!(error, AppKeyError::Form, "{odd}");
    }
    insta::assert_snapshot!(
        [AppKeyError::Form, AppKeyError::Kind].map(|error| error.to_string()).join("\n"),
        @r"
    reading the App's private key: it holds no unencrypted private key in PEM form; use the .pem file as GitHub gave it
    reading the App's private key: it is no RSA key of 2048 to 8192 bits; generate a private key on the App's page and use that file
    "
    );
    let key = AppKey::from_pem(&SecretString::from(PKCS1)).unwrap();
    assert_eq!(format!("{key:?}"), "AppKey(..)");
}
