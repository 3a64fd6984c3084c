//! The last step of making an App from a manifest: a code that the provider gave for it becomes the App and its key.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use secrecy::SecretString;

use super::super::credential::TokenError;
use super::super::options::GithubSetupError;
use super::http::{Http, Request};
use super::interface::{AppView, app_view, failure, nonsense, read, unreachable};
use super::wire;
use crate::clock::Clock;

/// Longest code that is passed on, in bytes.
const LONGEST_CODE: usize = 200;

/// An App that was just made, with what the provider says of it only now. No `Debug`: it holds the key.
pub struct NewApp {
    /// The App.
    pub app: AppView,
    /// Its private key, PEM.
    pub private_key: SecretString,
    /// The secret with which its webhooks are signed, if it has webhooks.
    pub webhook_secret: Option<SecretString>,
}

/// The provider's interface for codes; it needs no credential.
pub struct ManifestExchange {
    http: Http,
    clock: Arc<dyn Clock>,
}

impl ManifestExchange {
    /// Checks the address and makes the client; nothing is sent yet.
    ///
    /// # Errors
    /// An address or a deadline that cannot be used, or no HTTPS client.
    pub fn new(
        api_url: &str,
        deadline: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, GithubSetupError> {
        let http = Http::new(api_url, deadline)?;
        Ok(Self { http, clock })
    }

    /// Turns a code into the App, asking once: a code is good for one answer, within an hour. The client secret in the answer
    /// is not kept; nothing here needs it.
    ///
    /// # Errors
    /// The provider cannot be reached, does not know the code, or its answer lacks something.
    pub async fn convert(&self, code: &str) -> Result<NewApp, TokenError> {
        let action = "turning the provider's code into the App";
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !(1..=LONGEST_CODE).contains(&code.len()) || !code.bytes().all(allowed) {
            return Err(TokenError::Refused {
                action: action.to_owned(),
                reason: "this is no code that the provider gives; start again".to_owned(),
            });
        }
        let base = self.http.base();
        let request = Request {
            method: Method::POST,
            path: format!("/app-manifests/{code}/conversions"),
            bearer: None,
            // Some servers want a POST to say how long it is.
            body: Some("{}".to_owned()),
            header: None,
        };
        let sent = self.http.send(request).await;
        let answer = sent.map_err(|reason| unreachable(action, base, reason))?;
        if let Some(error) = failure(action, base, &answer, self.clock.now()) {
            return Err(error);
        }
        if answer.status == StatusCode::NOT_FOUND {
            return Err(TokenError::Refused {
                action: action.to_owned(),
                reason: "the provider does not know the code; it is used up or older than an hour, so start again".to_owned(),
            });
        }
        let converted: wire::Conversion = read(action, StatusCode::CREATED, &answer)?;
        let app = app_view(action, converted.app)?;
        let private_key = converted
            .pem
            .ok_or_else(|| nonsense(action, "there is no private key in it"))?;
        Ok(NewApp {
            app,
            private_key,
            webhook_secret: converted.webhook_secret,
        })
    }
}
