//! Installation tokens: one minting at a time for each use, a new one before the old one ends, nothing written down.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};

use super::super::credential::{
    CredentialIdentity, Grant, IssuedToken, TokenError, TokenSource, Use,
};
use super::event::{Ended, TokenEvent, TokenRecord, TokenSink};
use super::interface::InstallationView;
use super::permissions::{needed, welcome};
use super::{Level, Permissions};
use crate::clock::{Clock, Millis};

/// A token is replaced when less than this is left of it, whatever was asked for.
const MARGIN: Duration = Duration::from_mins(5);
/// The longest that a token can be promised for: they last an hour, and clocks differ a little.
const LONGEST_PROMISE: Duration = Duration::from_mins(55);

/// Which form of token is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Whatever the provider gives.
    Usual,
    /// The older, short form, for a git server that does not take the long one.
    Compatible,
}

/// The one repository that a token opens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// By its number, which stays whatever the repository is called.
    Number(u64),
    /// By its name without its owner: for the one look at a registration, before the number is known.
    Name(String),
}

/// `repository number 42`, `repository widget`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "repository number {number}"),
            Self::Name(name) => write!(f, "repository {name}"),
        }
    }
}

/// An order for one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MintOrder {
    /// The installation that it is of.
    pub installation: u64,
    /// The one repository that it opens.
    pub repository: Target,
    /// What it is for.
    pub task: Use,
    /// What it may do.
    pub permissions: Permissions,
    /// In which form.
    pub form: Form,
}

impl MintOrder {
    /// What is being done, for errors.
    pub(super) fn action(&self) -> String {
        format!("getting a token for the {}", self.task.role())
    }
}

/// A token as it was issued. No `Debug`: it holds the token.
pub struct Minted {
    /// The token.
    pub secret: SecretString,
    /// When it ends.
    pub expires_at: Millis,
    /// What it may do.
    pub permissions: Permissions,
    /// The number of the repository that it opens, where the answer says.
    pub repository: Option<u64>,
}

/// Where tokens are made: the provider.
#[async_trait]
pub trait Mint: Send + Sync {
    /// An installation as it is now.
    ///
    /// # Errors
    /// It is gone or suspended, or the provider cannot be reached.
    async fn installation(&self, installation: u64) -> Result<InstallationView, TokenError>;

    /// Makes a token, asking once.
    ///
    /// # Errors
    /// The provider refuses or cannot be reached.
    async fn mint(&self, order: &MintOrder) -> Result<Minted, TokenError>;

    /// Ends a token before its time; one that has ended is fine.
    ///
    /// # Errors
    /// The provider refuses or cannot be reached.
    async fn revoke(&self, token: &SecretString) -> Result<(), TokenError>;
}

/// What tokens are kept apart by. The permissions follow from the use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    installation: u64,
    repository: Target,
    task: Use,
    form: Form,
}

/// One token and the minting of the next.
#[derive(Default)]
struct Slot {
    flight: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    /// How many mintings have ended here, well or not.
    landed: u64,
    /// Why the last one failed, if it did.
    failed: Option<TokenError>,
}

#[derive(Clone)]
struct Held {
    token: IssuedToken,
    record: TokenRecord,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lasting(&self, now: Millis, margin: Duration) -> Option<IssuedToken> {
        let held = self.held.as_ref()?;
        held.token.lasts(now, margin).then(|| held.token.clone())
    }

    /// What there is although no other token could be had: the old one may still do, while the provider is away.
    fn despite(
        &self,
        error: TokenError,
        now: Millis,
        at_least: Duration,
    ) -> Result<IssuedToken, TokenError> {
        let old = self.lasting(now, at_least).filter(|_| error.is_transient());
        old.ok_or(error)
    }

    /// Takes the token out, if it is this one.
    fn take(&mut self, token: &IssuedToken) -> Option<TokenRecord> {
        let same = |held: &mut Held| held.token.fingerprint == token.fingerprint;
        self.held.take_if(same).map(|held| held.record)
    }
}

/// All tokens of an App in this process.
pub struct AppTokens {
    mint: Arc<dyn Mint>,
    clock: Arc<dyn Clock>,
    tell: TokenSink,
    slots: Mutex<BTreeMap<Place, Arc<Slot>>>,
}

impl AppTokens {
    /// No tokens yet.
    pub fn new(mint: Arc<dyn Mint>, clock: Arc<dyn Clock>, tell: TokenSink) -> Arc<Self> {
        Arc::new(Self {
            mint,
            clock,
            tell,
            slots: Mutex::default(),
        })
    }

    /// The tokens for one repository of an installation. Handles for the same repository share their tokens.
    pub fn of(self: &Arc<Self>, installation: u64, repository: Target) -> InstallationTokens {
        InstallationTokens {
            tokens: Arc::clone(self),
            installation,
            repository,
        }
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<Place, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn obtain(&self, place: Place, at_least: Duration) -> Result<IssuedToken, TokenError> {
        // Break it: leave this out; `app::tokens::a_repository_that_is_known_by_name_alone_is_only_looked_at` then fails.
        if matches!(place.repository, Target::Name(_)) && place.task != Use::Read {
            return Err(TokenError::Refused {
                action: format!("getting a token for the {}", place.task.role()),
                reason: format!(
                    "{} is known by name alone, and may only be looked at until it is registered",
                    place.repository
                ),
            });
        }
        if at_least > LONGEST_PROMISE {
            let longest = i64::try_from(LONGEST_PROMISE.as_secs()).unwrap_or(i64::MAX);
            return Err(short_lived(&place, at_least, longest));
        }
        let slot = Arc::clone(self.slots().entry(place.clone()).or_default());
        let wanted = at_least.max(MARGIN);
        let seen = {
            let state = slot.state();
            if let Some(token) = state.lasting(self.clock.now(), wanted) {
                return Ok(token);
            }
            state.landed
        };
        // Break it: leave this lock out; `app::tokens::twenty_callers_at_once_cost_one_minting` then fails.
        let _flight = slot.flight.lock().await;
        {
            let state = slot.state();
            if let Some(token) = state.lasting(self.clock.now(), wanted) {
                return Ok(token);
            }
            // Whoever waited for a minting that failed has its answer; asking again at once would only be the same question.
            if let Some(error) = state.failed.as_ref().filter(|_| state.landed != seen) {
                return state.despite(error.clone(), self.clock.now(), at_least);
            }
        }
        let minted = self.order(&place).await;
        let (outcome, events) = self.landed(&slot, &place, at_least, minted);
        for event in events {
            (self.tell)(event);
        }
        outcome
    }

    /// Orders a token with what its use needs, and with what is welcome where the installation has it.
    async fn order(&self, place: &Place) -> Result<Minted, TokenError> {
        let mut order = MintOrder {
            installation: place.installation,
            repository: place.repository.clone(),
            task: place.task,
            permissions: needed(place.task),
            form: place.form,
        };
        let welcome = welcome(place.task);
        if !welcome.is_empty() {
            let installation = self.mint.installation(place.installation).await?;
            if installation.suspended {
                return Err(TokenError::Suspended {
                    action: order.action(),
                    installation: place.installation,
                });
            }
            let refused = welcome.beyond(&installation.permissions);
            let granted: Vec<(&str, Level)> = welcome
                .iter()
                .filter(|(name, _)| refused.get(name).is_none())
                .collect();
            order.permissions = order.permissions.with(&Permissions::of(&granted));
        }
        self.mint.mint(&order).await
    }

    /// Keeps what was minted, or why it was not, for those who wait.
    fn landed(
        &self,
        slot: &Slot,
        place: &Place,
        at_least: Duration,
        minted: Result<Minted, TokenError>,
    ) -> (Result<IssuedToken, TokenError>, Vec<TokenEvent>) {
        let now = self.clock.now();
        let mut state = slot.state();
        state.landed += 1;
        state.failed = None;
        let minted = match minted {
            Ok(minted) => minted,
            Err(error) => {
                state.failed = Some(error.clone());
                return (state.despite(error, now, at_least), Vec::new());
            }
        };
        let token = IssuedToken::new(minted.secret, Some(minted.expires_at));
        let record = TokenRecord {
            installation: place.installation,
            repository: minted
                .repository
                .map_or_else(|| place.repository.clone(), Target::Number),
            task: place.task,
            permissions: minted.permissions,
            fingerprint: token.fingerprint.clone(),
            expires_at: minted.expires_at,
        };
        let old = state
            .held
            .take()
            .map(|held| TokenEvent::Expired(held.record));
        let issued = TokenEvent::Issued(record.clone());
        let events = old.into_iter().chain([issued]).collect();
        let outcome = if token.lasts(now, at_least) {
            let held = Held {
                token: token.clone(),
                record,
            };
            state.held = Some(held);
            Ok(token)
        } else {
            let left = minted.expires_at.0.saturating_sub(now.0);
            let error = short_lived(place, at_least, left.div_euclid(1000));
            state.failed = Some(error.clone());
            Err(error)
        };
        (outcome, events)
    }

    /// Takes a token out of wherever it is kept.
    fn take(&self, token: &IssuedToken) -> Option<TokenRecord> {
        let slots: Vec<Arc<Slot>> = self.slots().values().cloned().collect();
        slots.iter().find_map(|slot| slot.state().take(token))
    }
}

fn short_lived(place: &Place, wanted: Duration, found_seconds: i64) -> TokenError {
    TokenError::ShortLived {
        action: format!("getting a token for the {}", place.task.role()),
        wanted_seconds: wanted.as_secs(),
        found_seconds,
    }
}

/// Whether a token has the long form of installation tokens: `ghs_`, then parts with dots between.
fn is_long(token: &SecretString) -> bool {
    let text = token.expose_secret();
    text.starts_with("ghs_") && text.contains('.')
}

/// The tokens of one repository.
#[derive(Clone)]
pub struct InstallationTokens {
    tokens: Arc<AppTokens>,
    installation: u64,
    repository: Target,
}

impl InstallationTokens {
    fn place(&self, task: Use, form: Form) -> Place {
        Place {
            installation: self.installation,
            repository: self.repository.clone(),
            task,
            form,
        }
    }
}

#[async_trait]
impl TokenSource for InstallationTokens {
    /// At least five minutes are left of it, and as much as is asked for, up to 55 minutes; while the provider is away, as much
    /// as is asked for.
    async fn token(&self, task: Use, at_least: Duration) -> Result<IssuedToken, TokenError> {
        let place = self.place(task, Form::Usual);
        self.tokens.obtain(place, at_least).await
    }

    async fn refused(&self, token: &IssuedToken) -> bool {
        // Break it: leave the token where it is; `app::tokens::a_token_that_the_provider_refuses_is_replaced_once` then fails.
        if let Some(record) = self.tokens.take(token) {
            (self.tokens.tell)(TokenEvent::Revoked(record, Ended::Refused));
        }
        true
    }

    fn identity(&self) -> CredentialIdentity {
        CredentialIdentity::Installation(self.installation)
    }

    async fn granted(&self) -> Result<Option<Grant>, TokenError> {
        let view = self.tokens.mint.installation(self.installation).await?;
        if view.suspended {
            return Err(TokenError::Suspended {
                action: "reading what the installation may do".to_owned(),
                installation: self.installation,
            });
        }
        Ok(Some(Grant {
            permissions: view.permissions,
            page: view.page,
        }))
    }

    async fn compatible_token(
        &self,
        token: &IssuedToken,
        task: Use,
        at_least: Duration,
    ) -> Result<Option<IssuedToken>, TokenError> {
        if !is_long(&token.secret) {
            return Ok(None);
        }
        let place = self.place(task, Form::Compatible);
        self.tokens.obtain(place, at_least).await.map(Some)
    }

    async fn release(&self, token: &IssuedToken) -> Result<(), TokenError> {
        // Forgotten first, so that nobody takes a token that is about to end.
        let record = self.tokens.take(token);
        self.tokens.mint.revoke(&token.secret).await?;
        if let Some(record) = record {
            (self.tokens.tell)(TokenEvent::Revoked(record, Ended::Released));
        }
        Ok(())
    }
}
