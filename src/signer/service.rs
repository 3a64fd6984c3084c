//! `caretaker signer`: one role's key behind a Unix socket, for the users that may use it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::role_keys::{InForce, open_here};
use super::socket::{Answer, DEADLINE, LONGEST, Question, Request};
use super::{KeyringError, trust_history};
use crate::attest::{PublicKey, Role, Signer, Statement};
use crate::clock::{Clock, Millis};
use crate::config::{Configuration, Environment};

/// Connections that are served at a time.
const CONNECTIONS: usize = 16;
/// How long to wait after a connection could not be taken.
const PAUSE: Duration = Duration::from_millis(100);
/// Signatures a second; a worker needs a few a minute.
const A_SECOND: u32 = 50;

/// One role's signer, its clock, and who may use it.
pub struct SigningService {
    role: Role,
    signer: Box<dyn Signer>,
    trust: InForce,
    clock: Box<dyn Clock>,
    users: Vec<u32>,
    spent: Mutex<(i64, u32)>,
}

impl SigningService {
    /// Opens one role's key, and no other. `users` are the Unix users whose processes may ask.
    ///
    /// # Errors
    /// As [`Keyring::open`](super::Keyring::open), for this role.
    pub fn open(
        role: Role,
        configuration: &Configuration,
        environment: &Environment,
        users: Vec<u32>,
        clock: Box<dyn Clock>,
    ) -> Result<Self, KeyringError> {
        let trust = InForce {
            history: Arc::new(trust_history(configuration)?),
            folder: Some(configuration.keys.dir.clone()),
        };
        let now = clock.now();
        trust.allow_acting(now)?;
        Ok(Self {
            role,
            signer: open_here(role, configuration, environment, &trust.history, now)?,
            trust,
            clock,
            users,
            spent: Mutex::default(),
        })
    }

    /// The key that it signs with.
    pub fn public_key(&self) -> &PublicKey {
        self.signer.public_key()
    }

    /// Answers who connects, until told to stop.
    pub async fn serve(self: Arc<Self>, listener: UnixListener, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Too many open files, say: some will have been closed by then.
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let service = Arc::clone(&self);
            tokio::spawn(async move {
                // Who is not answered in time has gone or never meant to listen.
                drop(tokio::time::timeout(DEADLINE, service.answer_one(stream)).await);
                drop(place);
            });
        }
    }

    async fn answer_one(self: Arc<Self>, mut stream: UnixStream) -> std::io::Result<()> {
        let peer = stream.peer_cred()?.uid();
        // Break it: let everybody in; `keys::service::another_user_is_not_answered` fails.
        if !self.users.contains(&peer) {
            tracing::warn!(uid = peer, role = %self.role, "a user that may not use this signer asked");
            let answer = self.refusal(format!(
                "user {peer} may not use this signer; name them with --allow-uid"
            ));
            return send(&mut stream, &answer).await;
        }
        let length = stream.read_u32().await?;
        if length > LONGEST {
            let answer = self.refusal(format!("a request has at most {LONGEST} bytes"));
            return send(&mut stream, &answer).await;
        }
        let mut request = Vec::new();
        (&mut stream)
            .take(length.into())
            .read_to_end(&mut request)
            .await?;
        let service = Arc::clone(&self);
        // Remembering a signature waits for the disk.
        let answer = tokio::task::spawn_blocking(move || service.answer(&request));
        let answer = answer.await.map_err(std::io::Error::other)?;
        send(&mut stream, &answer).await
    }

    fn refusal(&self, reason: String) -> Answer {
        Answer {
            refused: Some(reason),
            ..Answer::of(self.role, self.public_key().clone())
        }
    }

    fn answer(&self, request: &[u8]) -> Answer {
        let request: Option<Request> = serde_json::from_slice(request).ok();
        let decoded = request.as_ref().and_then(Request::decoded);
        let Some(Question { statement, before }) = decoded else {
            return self.refusal("it is no request that this version understands".to_owned());
        };
        let mut answer = Answer::of(self.role, self.public_key().clone());
        if let Some(statement) = statement {
            match self.signed(&statement, &before) {
                Ok(envelope) => answer.envelope = Some(STANDARD.encode(envelope)),
                Err(reason) => answer.refused = Some(reason),
            }
        }
        answer
    }

    fn signed(&self, statement: &[u8], before: &[Vec<u8>]) -> Result<Vec<u8>, String> {
        let now = self.clock.now();
        self.spend(now)?;
        let acting = self.trust.allow_acting(now);
        let listed = || self.trust.check(self.role.into(), self.public_key(), now);
        acting
            .and_then(|()| listed())
            .map_err(|error| error.to_string())?;
        let parsed = Statement::parse(statement).map_err(|error| error.to_string())?;
        if parsed.as_event().is_none() && !before.is_empty() {
            return Err("an evidence document has no place in a chain".to_owned());
        }
        let envelope = self.signer.sign_after(statement, before);
        let envelope = envelope.map_err(|error| error.to_string())?;
        envelope.to_bytes().map_err(|error| error.to_string())
    }

    /// Whoever asks without end gets no signature for everything they can think of.
    fn spend(&self, now: Millis) -> Result<(), String> {
        let second = now.0.div_euclid(1000);
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.0 != second {
            *spent = (second, 0);
        }
        spent.1 += 1;
        if spent.1 > A_SECOND {
            return Err(format!(
                "more than {A_SECOND} signatures a second are not given"
            ));
        }
        Ok(())
    }
}

async fn send(stream: &mut UnixStream, answer: &Answer) -> std::io::Result<()> {
    let body = serde_json::to_vec(answer)?;
    let length = u32::try_from(body.len()).map_err(std::io::Error::other)?;
    stream.write_u32(length).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
