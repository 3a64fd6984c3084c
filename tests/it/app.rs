//! Acting as a GitHub App: its key, its tokens, making it and looking at it.

mod commands;
mod configuration;
mod creating;
mod key;
mod long_tokens;
mod manifest;
mod page;
mod provider;
mod record;
mod shapes;
mod tokens;
mod wire;
mod with_forge;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::clock::{Clock as _, FixedClock, Millis};
use caretaker::connector::github::app::{
    AppTokens, Form, InstallationTokens, InstallationView, Level, Mint, MintOrder, Minted,
    Permissions, Target, TokenEvent, TokenSink,
};
use caretaker::connector::github::credential::{IssuedToken, TokenError, TokenSource as _, Use};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;

const NOW: Millis = Millis(1_800_000_000_000);
const INSTALLATION: u64 = 77;
const REPOSITORY: u64 = 42;
const NOTHING: Duration = Duration::ZERO;
const QUARTER: Duration = Duration::from_mins(15);

/// The App's private key, as GitHub gives it out. It is for tests and opens nothing.
const PKCS1: &str = include_str!("app/keys/pkcs1.pem");
/// The same key in the other form.
const PKCS8: &str = include_str!("app/keys/pkcs8.pem");
/// Its public half, PKCS#1 DER.
const PUBLIC: &[u8] = include_bytes!("app/keys/public.der");

/// A client that stays on this machine.
fn browser() -> reqwest::ClientBuilder {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::builder().no_proxy()
}

fn minutes(count: i64) -> i64 {
    count * 60_000
}

/// A token of the short form, or one of exactly 600 characters of the long one.
fn token_text(form: Form, number: usize) -> String {
    match form {
        Form::Compatible => format!("ghs_{number:036}"),
        Form::Usual => {
            let head = format!("ghs_4711_eyJ{number:08}.");
            format!("{head}{}.{}", "a-_Z9".repeat(60), "s".repeat(600))
                .chars()
                .take(600)
                .collect()
        }
    }
}

/// A mint in this process: it remembers what was ordered and does as it is told.
struct FakeMint {
    clock: Arc<FixedClock>,
    orders: Mutex<Vec<MintOrder>>,
    made: Mutex<Vec<String>>,
    ended: Mutex<Vec<String>>,
    failing: Mutex<Option<TokenError>>,
    granted: Mutex<Permissions>,
    lifetime: Mutex<i64>,
    /// Closed, it holds mintings up.
    gate: Semaphore,
    asked: AtomicUsize,
}

impl FakeMint {
    fn count(&self) -> usize {
        self.orders.lock().unwrap().len()
    }

    fn fail_with(&self, error: Option<TokenError>) {
        *self.failing.lock().unwrap() = error;
    }
}

#[async_trait]
impl Mint for FakeMint {
    async fn installation(&self, installation: u64) -> Result<InstallationView, TokenError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(InstallationView {
            id: installation,
            page: None,
            permissions: self.granted.lock().unwrap().clone(),
            suspended: false,
        })
    }

    async fn mint(&self, order: &MintOrder) -> Result<Minted, TokenError> {
        let number = {
            let mut orders = self.orders.lock().unwrap();
            orders.push(order.clone());
            orders.len()
        };
        drop(self.gate.acquire().await.unwrap());
        if let Some(error) = self.failing.lock().unwrap().clone() {
            return Err(error);
        }
        let text = token_text(order.form, number);
        self.made.lock().unwrap().push(text.clone());
        let lifetime = *self.lifetime.lock().unwrap();
        Ok(Minted {
            secret: SecretString::from(text),
            expires_at: self.clock.now().plus_millis(lifetime),
            permissions: order.permissions.clone(),
            repository: None,
        })
    }

    async fn revoke(&self, token: &SecretString) -> Result<(), TokenError> {
        if let Some(error) = self.failing.lock().unwrap().clone() {
            return Err(error);
        }
        let text = token.expose_secret().to_owned();
        self.ended.lock().unwrap().push(text);
        Ok(())
    }
}

/// Tokens over a mint in this process, a clock that stands, and everything that was told.
struct Bench {
    clock: Arc<FixedClock>,
    mint: Arc<FakeMint>,
    tokens: Arc<AppTokens>,
    told: Arc<Mutex<Vec<TokenEvent>>>,
}

/// A sink that keeps what it is told.
fn keeping() -> (TokenSink, Arc<Mutex<Vec<TokenEvent>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    (
        Arc::new(move |event| keep.lock().unwrap().push(event)),
        told,
    )
}

impl Bench {
    fn new() -> Self {
        let clock = Arc::new(FixedClock::at(NOW));
        let mint = Arc::new(FakeMint {
            clock: Arc::clone(&clock),
            orders: Mutex::default(),
            made: Mutex::default(),
            ended: Mutex::default(),
            failing: Mutex::default(),
            granted: Mutex::new(Permissions::of(&[("actions", Level::Write)])),
            lifetime: Mutex::new(minutes(60)),
            gate: Semaphore::new(1),
            asked: AtomicUsize::new(0),
        });
        let (sink, told) = keeping();
        let tokens = AppTokens::new(
            Arc::clone(&mint) as Arc<dyn Mint>,
            Arc::clone(&clock) as Arc<_>,
            sink,
        );
        Self {
            clock,
            mint,
            tokens,
            told,
        }
    }

    fn source(&self) -> InstallationTokens {
        self.tokens.of(INSTALLATION, Target::Number(REPOSITORY))
    }

    async fn token(&self, task: Use) -> IssuedToken {
        self.source().token(task, NOTHING).await.unwrap()
    }

    /// Kind and fingerprint of everything that was told.
    fn told(&self) -> Vec<(&'static str, String)> {
        let told = self.told.lock().unwrap();
        told.iter()
            .map(|event| (event.audit().kind, event.record().fingerprint.clone()))
            .collect()
    }
}

fn away() -> TokenError {
    TokenError::Unreachable {
        action: "getting a token".to_owned(),
        address: "https://api.example".to_owned(),
        reason: "connection refused".to_owned(),
    }
}
