//! What is sealed as a project's credential: a person's token, or the number of the installation as which the App acts. The
//! App's key is in neither; it stays in its file.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

use super::super::credential::{PersonalToken, TokenSource};
use super::super::options::{GithubSetupError, check_token};
use super::{AppTokens, Target};

/// Begins the text of an installation. No token begins like this: the provider's have no colon.
const INSTALLATION: &str = "app-installation:";

/// A project's credential, opened.
#[derive(Debug, Clone)]
pub enum StoredCredential {
    /// A person's token.
    Token(SecretString),
    /// The number of an installation of the configured App.
    Installation(u64),
}

impl StoredCredential {
    /// Reads the text that was sealed.
    ///
    /// # Errors
    /// It is neither a token that can be sent nor the number of an installation.
    pub fn read(text: SecretString) -> Result<Self, GithubSetupError> {
        let Some(number) = text.expose_secret().strip_prefix(INSTALLATION) else {
            check_token(&text)?;
            return Ok(Self::Token(text));
        };
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        match number.parse() {
            Ok(number) if digits && number != 0 => Ok(Self::Installation(number)),
            _ => Err(GithubSetupError::Installation),
        }
    }

    /// The text to seal.
    pub fn text(&self) -> SecretString {
        match self {
            Self::Token(token) => token.clone(),
            Self::Installation(number) => SecretString::from(format!("{INSTALLATION}{number}")),
        }
    }
}

/// Where the tokens of a project with this credential come from; `app` are those of the configured App.
///
/// # Errors
/// It is an installation, and no App is configured.
pub fn token_source(
    credential: StoredCredential,
    app: Option<&Arc<AppTokens>>,
    repository: Target,
) -> Result<Arc<dyn TokenSource>, GithubSetupError> {
    match credential {
        StoredCredential::Token(token) => Ok(Arc::new(PersonalToken::new(token))),
        StoredCredential::Installation(installation) => {
            let app = app.ok_or(GithubSetupError::NoApp { installation })?;
            Ok(Arc::new(app.of(installation, repository)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_reads_back() {
        let read = |text: &str| StoredCredential::read(SecretString::from(text));
        let Ok(StoredCredential::Installation(77)) = read("app-installation:77") else {
            panic!("it is an installation");
        };
        let text = StoredCredential::Installation(77).text();
        assert_eq!(text.expose_secret(), "app-installation:77");
        let Ok(StoredCredential::Token(token)) = read("ghp_example") else {
            panic!("it is a token");
        };
        assert_eq!(token.expose_secret(), "ghp_example");
    }

    #[test]
    fn what_is_no_credential_is_refused() {
        for number in ["", "0", "-1", "+1", " 1", "1x", "99999999999999999999"] {
            let text = SecretString::from(format!("app-installation:{number}"));
            let refused = StoredCredential::read(text).unwrap_err();
            assert_eq!(refused, GithubSetupError::Installation, "{number}");
        }
        for token in ["", "two words"] {
            let refused = StoredCredential::read(SecretString::from(token)).unwrap_err();
            assert_eq!(refused, GithubSetupError::Token);
        }
    }

    #[test]
    fn an_installation_without_an_app_is_refused_with_the_mend() {
        let installed = StoredCredential::Installation(77);
        let refused = token_source(installed, None, Target::Number(42))
            .err()
            .unwrap();
        assert!(refused.to_string().contains("github.app"), "{refused}");
    }
}
