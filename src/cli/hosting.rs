//! The hosting service as configured: connectors for its repositories, acting with a person's token or as the App.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use secrecy::SecretString;

use super::installation::Installation;
use crate::clock::SystemClock;
use crate::config::Github;
use crate::connector::Connector;
use crate::connector::github::app::{
    AppInterface, AppKey, AppOptions, AppTokens, Mint, StoredCredential, Target, TokenSink,
    token_source,
};
use crate::connector::github::credential::TokenSource;
use crate::connector::github::{GithubClient, GithubConnector, GithubOptions};
use crate::onboard::Repository;
use crate::onboard::app::{Recorder, token_recorder};
use crate::store::Project;

/// How long one call to the provider may take.
const CALL_DEADLINE: Duration = Duration::from_secs(30);
/// How many events about tokens wait to be written.
const EVENTS: usize = 1024;

/// The hosting service. To be made once in a process, so that tokens, connections and budgets are shared.
#[derive(Clone)]
pub(super) struct Hosting {
    client: GithubClient,
    github: Github,
    app: Option<App>,
}

/// The App, as far as it can be used. A project with a person's token needs no key, and is not kept from working without it.
type App = Result<(Arc<AppInterface>, Arc<AppTokens>), String>;

impl Hosting {
    /// With what happens to tokens for the recorder to write.
    pub(super) fn of(installation: &Installation) -> (Self, Recorder) {
        let (tell, recorder) = token_recorder(EVENTS);
        let app = app(installation, tell);
        let hosting = Self {
            client: GithubClient::of_system(Arc::new(SystemClock)),
            github: installation.configuration.github.clone(),
            app: app.map_err(|error| super::explain(&error)).transpose(),
        };
        (hosting, recorder)
    }

    /// An App that is configured and cannot be used, as an error.
    pub(super) fn usable(&self) -> anyhow::Result<()> {
        match &self.app {
            Some(Err(reason)) => Err(anyhow::anyhow!("{reason}")),
            _ => Ok(()),
        }
    }

    /// A connector for a registered project and its opened credential; an error says what is wrong, in words.
    pub(super) fn connector_of(
        &self,
        project: &Project,
        credential: SecretString,
    ) -> Result<Arc<dyn Connector>, String> {
        let number = project.repository_id.clone();
        self.connector(&project.full_name, credential, Some(number))
    }

    /// The same by `OWNER/NAME`; without a number the repository may only be looked at, if the credential is the App's.
    pub(super) fn connector(
        &self,
        full_name: &str,
        credential: SecretString,
        number: Option<String>,
    ) -> Result<Arc<dyn Connector>, String> {
        let (owner, name) = full_name
            .split_once('/')
            .ok_or_else(|| format!("{full_name:?} is not OWNER/NAME"))?;
        let target = match &number {
            Some(number) => Target::Number(number.parse().map_err(|_| {
                format!("{number:?} is not the number of a repository; register it again")
            })?),
            None => Target::Name(name.to_owned()),
        };
        let options = GithubOptions {
            api_url: self.github.api_url.as_str().to_owned(),
            web_url: self.github.web_url.as_str().to_owned(),
            git_url: self.github.git_url.as_str().to_owned(),
            owner: owner.to_owned(),
            name: name.to_owned(),
            credential: self.source(credential, target)?,
            expected_repository_id: number,
            deadline: CALL_DEADLINE,
        };
        let made = GithubConnector::new(&self.client, options);
        let made = made.map_err(|error| error.to_string())?;
        Ok(Arc::new(made))
    }

    fn source(
        &self,
        credential: SecretString,
        target: Target,
    ) -> Result<Arc<dyn TokenSource>, String> {
        let read = StoredCredential::read(credential).map_err(|error| error.to_string())?;
        let app = match (&read, &self.app) {
            (StoredCredential::Installation(_), Some(Err(reason))) => return Err(reason.clone()),
            (_, Some(Ok((_, tokens)))) => Some(tokens),
            _ => None,
        };
        token_source(read, app, target).map_err(|error| error.to_string())
    }

    /// The credential of a repository: the token in this environment variable, or else the configured App's installation there.
    pub(super) async fn credential(
        &self,
        installation: &Installation,
        token_env: Option<&str>,
        url: &str,
    ) -> anyhow::Result<SecretString> {
        if let Some(variable) = token_env {
            return token(installation, variable);
        }
        let app = self.app.as_ref().context(
            "looking for a credential: none was given. Either name the environment variable that holds a token of the repository with --token-env VAR, or act as a GitHub App: `caretaker app create` makes one, and github.app configures it",
        )?;
        let (interface, _) = app.as_ref().map_err(|reason| {
            anyhow::anyhow!("{reason}; or give a token of the repository with --token-env VAR")
        })?;
        let repository = Repository::parse(url, &self.github.web_url)?;
        let full_name = repository.full_name();
        let found = interface.installation_of(&repository.owner, &repository.name);
        let found = found.await?;
        anyhow::ensure!(
            !found.suspended,
            "looking for the installation on {full_name}: installation {} is suspended; its owner can unsuspend it at {}",
            found.id,
            found
                .page
                .as_deref()
                .unwrap_or("the App's page under Installed GitHub Apps")
        );
        Ok(StoredCredential::Installation(found.id).text())
    }
}

/// The configured App; none when none is.
fn app(
    installation: &Installation,
    tell: TokenSink,
) -> anyhow::Result<Option<(Arc<AppInterface>, Arc<AppTokens>)>> {
    let Some(interface) = app_interface(installation)? else {
        return Ok(None);
    };
    let interface = Arc::new(interface);
    let mint = Arc::clone(&interface) as Arc<dyn Mint>;
    let tokens = AppTokens::new(mint, Arc::new(SystemClock), tell);
    Ok(Some((interface, tokens)))
}

/// The provider's interface for the configured App; none when none is.
pub(super) fn app_interface(installation: &Installation) -> anyhow::Result<Option<AppInterface>> {
    let github = &installation.configuration.github;
    let Some(app) = &github.app else {
        return Ok(None);
    };
    let key = AppKey::from_pem(&app.private_key(&installation.environment)?)
        .with_context(|| app.private_key_file.display().to_string())?;
    let interface = AppInterface::new(AppOptions {
        api_url: github.api_url.as_str().to_owned(),
        app: app.id,
        key,
        deadline: CALL_DEADLINE,
        clock: Arc::new(SystemClock),
    })?;
    Ok(Some(interface))
}

/// Whether this is the name of an environment variable, and not a token that was given in its place.
fn is_name(variable: &str) -> bool {
    let starts = |prefix: &&str| variable.starts_with(prefix);
    let token = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"];
    let mut letters = variable.chars();
    let first = letters.next();
    first.is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && variable.len() <= 100
        && !token.iter().any(starts)
}

fn token(installation: &Installation, variable: &str) -> anyhow::Result<SecretString> {
    // Break it: leave this out; a token that was given in place of a name is then printed
    // (`onboard::command::wrong_words_are_told_apart_from_what_cannot_be_done`).
    anyhow::ensure!(
        is_name(variable),
        "looking for the token: what --token-env was given is not the name of an environment variable; name the variable that holds the token, not the token (and if it was one, replace it: it is in the history of your shell)"
    );
    let value = installation.environment.value(variable);
    let value = value.with_context(|| {
        format!(
            "looking for the token: environment variable {variable} is not set or empty; set it to a token of the repository, and name the variable, not the token, with --token-env"
        )
    })?;
    // A file's last line end often comes along.
    let token = StoredCredential::read(SecretString::from(value.trim_end()))?;
    anyhow::ensure!(
        matches!(token, StoredCredential::Token(_)),
        "looking for the token: environment variable {variable} holds no token; leave --token-env out to act as the App"
    );
    Ok(token.text())
}
