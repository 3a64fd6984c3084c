//! Credentials for tests: tokens that end, and others that take their place.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use caretaker::connector::github::credential::{
    CredentialIdentity, IssuedToken, TokenError, TokenSource, Use,
};

/// An installation's tokens, numbered: `token-0` until it is refused or changed, then `token-1`, …
pub(super) struct Numbered {
    number: Mutex<u32>,
    /// Whether there is another when one is refused.
    renews: bool,
    uses: Mutex<Vec<Use>>,
}

impl Numbered {
    pub(super) fn new(renews: bool) -> Self {
        Self {
            number: Mutex::new(0),
            renews,
            uses: Mutex::default(),
        }
    }

    /// The hour is over: another token.
    pub(super) fn rotate(&self) {
        *self.number.lock().unwrap() += 1;
    }

    pub(super) fn number(&self) -> u32 {
        *self.number.lock().unwrap()
    }

    /// What tokens were asked for.
    pub(super) fn uses(&self) -> Vec<Use> {
        self.uses.lock().unwrap().clone()
    }
}

#[async_trait]
impl TokenSource for Numbered {
    async fn token(&self, task: Use, _: Duration) -> Result<IssuedToken, TokenError> {
        self.uses.lock().unwrap().push(task);
        let text = format!("token-{}", self.number());
        Ok(IssuedToken::new(text.into(), None))
    }

    async fn refused(&self, _: &IssuedToken) -> bool {
        if self.renews {
            self.rotate();
        }
        self.renews
    }

    fn identity(&self) -> CredentialIdentity {
        CredentialIdentity::Installation(1)
    }
}

/// No token can be had.
pub(super) struct Without(pub(super) TokenError);

#[async_trait]
impl TokenSource for Without {
    async fn token(&self, _: Use, _: Duration) -> Result<IssuedToken, TokenError> {
        Err(self.0.clone())
    }

    async fn refused(&self, _: &IssuedToken) -> bool {
        false
    }

    fn identity(&self) -> CredentialIdentity {
        CredentialIdentity::Installation(2)
    }
}
