//! A role's signer in a process of its own, behind a Unix socket.
//!
//! One request a connection, one answer; each is JSON with its length in four bytes before it. The request carries the statement and,
//! for an event, the stored envelopes before it; the service verifies those and that the statement continues them before it signs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::exchange::exchange;
use crate::attest::{
    Envelope, KeyId, PublicKey, Role, SignError, Signer, TrustHistory, authenticate,
};

/// The longest request or answer, in bytes.
pub(super) const LONGEST: u32 = 4 << 20;
/// How long a signer may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
const VERSION: u32 = 1;

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) v: u32,
    /// The statement in base64; without one, the signer says who it is.
    pub(super) statement: Option<String>,
    /// The stored envelopes before it, in base64.
    pub(super) before: Vec<String>,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) v: u32,
    pub(super) role: Role,
    pub(super) public: PublicKey,
    /// The envelope in base64.
    pub(super) envelope: Option<String>,
    /// Why there is none.
    pub(super) refused: Option<String>,
}

impl Answer {
    pub(super) const fn of(role: Role, public: PublicKey) -> Self {
        Self {
            v: VERSION,
            role,
            public,
            envelope: None,
            refused: None,
        }
    }
}

/// What is asked, as bytes.
pub(super) struct Question {
    pub(super) statement: Option<Vec<u8>>,
    pub(super) before: Vec<Vec<u8>>,
}

impl Request {
    /// What is asked, if this is a request of this version.
    pub(super) fn decoded(&self) -> Option<Question> {
        let decode = |text: &String| STANDARD.decode(text).ok();
        let statement = match &self.statement {
            Some(text) => Some(decode(text)?),
            None => None,
        };
        let before = self.before.iter().map(decode).collect::<Option<_>>()?;
        (self.v == VERSION).then_some(Question { statement, before })
    }
}

/// Asks a signer in another process.
#[derive(Debug)]
pub(super) struct SocketSigner {
    role: Role,
    socket: PathBuf,
    public: PublicKey,
    keyid: KeyId,
    history: Arc<TrustHistory>,
}

impl SocketSigner {
    /// Asks who answers there.
    pub(super) fn connect(
        role: Role,
        socket: &Path,
        history: Arc<TrustHistory>,
    ) -> Result<Self, SignError> {
        let answer = ask(socket, None, &[]).map_err(|error| unreachable(role, socket, &error))?;
        if let Some(reason) = answer.refused {
            return Err(unreachable(role, socket, &io::Error::other(reason)));
        }
        // Break it: leave this out; `keys::service::a_role_is_not_taken_for_another_at_either_end` fails.
        if answer.role != role {
            let error = io::Error::other(format!("the {}'s signer answers there", answer.role));
            return Err(unreachable(role, socket, &error));
        }
        Ok(Self {
            role,
            socket: socket.to_owned(),
            keyid: answer.public.keyid(),
            public: answer.public,
            history,
        })
    }
}

fn unreachable(role: Role, socket: &Path, error: &io::Error) -> SignError {
    SignError::Unreachable {
        role,
        reason: format!(
            "{}: {error}; see that `caretaker signer --role {role}` runs there and lets this user in",
            socket.display()
        ),
    }
}

impl Signer for SocketSigner {
    fn role(&self) -> Role {
        self.role
    }

    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn keyid(&self) -> &KeyId {
        &self.keyid
    }

    fn sign(&self, statement: &[u8]) -> Result<Envelope, SignError> {
        self.sign_after(statement, &[])
    }

    fn sign_after(&self, statement: &[u8], before: &[Vec<u8>]) -> Result<Envelope, SignError> {
        let role = self.role;
        let failed = |error: io::Error| unreachable(role, &self.socket, &error);
        let answer = ask(&self.socket, Some(statement), before).map_err(failed)?;
        if let Some(reason) = answer.refused {
            return Err(SignError::Elsewhere { role, reason });
        }
        let other = || {
            failed(io::Error::other(
                "its answer is no signature of this statement",
            ))
        };
        let bytes = answer.envelope.and_then(|text| STANDARD.decode(text).ok());
        let envelope = Envelope::parse(&bytes.ok_or_else(other)?).map_err(|_| other())?;
        // Break it: take the answer as it is; `keys::service::an_answer_that_is_no_signature_is_refused` fails.
        let attested = authenticate(&self.history, &envelope).map_err(|_| other())?;
        let said = attested.statement().draft().map_err(|_| other())?;
        if attested.role() == role && said == statement {
            Ok(envelope)
        } else {
            Err(other())
        }
    }
}

fn ask(socket: &Path, statement: Option<&[u8]>, before: &[Vec<u8>]) -> io::Result<Answer> {
    let request = Request {
        v: VERSION,
        statement: statement.map(|bytes| STANDARD.encode(bytes)),
        before: before.iter().map(|bytes| STANDARD.encode(bytes)).collect(),
    };
    let body = serde_json::to_vec(&request)?;
    if body.len() as u64 > u64::from(LONGEST) {
        return Err(io::Error::other("the request is too long"));
    }
    let answer = exchange(socket, &body, LONGEST, DEADLINE)?;
    let answer: Answer = serde_json::from_slice(&answer)?;
    if answer.v == VERSION {
        Ok(answer)
    } else {
        Err(io::Error::other("it is another version's signer"))
    }
}
