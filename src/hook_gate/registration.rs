//! Sessions: registered once, read before every decision.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::changes::{self, Baseline};
use super::home::{Home, SessionId, StateError, private_folder, read_private, write_private};
use super::places::folds;
use super::tokens::SessionTokens;
use crate::attest::json;
use crate::audit_stream::open_plain;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::tool_gate::{MAXIMUM_POLICY_BYTES, Policy, PolicyError, Posture};

/// Largest registration, in bytes.
const MAXIMUM_REGISTRATION: usize = 64 << 10;
/// The file of a session's tokens.
const TOKENS: &str = "tokens.json";
/// Longest intent, in bytes.
pub const MAXIMUM_INTENT: usize = 16 << 10;
/// How often Stop refuses the end of a turn unless told otherwise.
pub const BLOCKS: u32 = 3;

/// What is asked for.
#[derive(Debug)]
pub struct NewSession<'a> {
    /// Its id.
    pub session: &'a SessionId,
    /// The policy's bytes.
    pub policy: &'a [u8],
    /// The worktree.
    pub worktree: &'a Path,
    /// What the session is for, in words.
    pub intent: Option<&'a str>,
    /// Whether it runs in the sandbox.
    pub sandboxed: bool,
    /// `security.failure_posture`.
    pub posture: Posture,
    /// How often Stop refuses before the turn may end.
    pub blocks: u32,
    /// What it may use; without tokens the policy alone says.
    pub tokens: Option<&'a SessionTokens>,
    /// Its permission profile (`approvals.profiles.NAME`); without one the default profile counts.
    pub profile: Option<&'a str>,
    /// Now.
    pub now: Millis,
}

/// Why a session cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The state.
    #[error(transparent)]
    State(#[from] StateError),
    /// The worktree.
    #[error("finding the worktree {path}: {reason}; name a folder that is there")]
    Worktree {
        /// As given.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The intent.
    #[error("the intent has more than {MAXIMUM_INTENT} bytes; say it in fewer words")]
    Intent,
}

/// What was registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) v: u32,
    pub(super) session: String,
    pub(super) worktree: String,
    pub(super) policy_sha256: Sha256Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) intent: Option<String>,
    pub(super) sandboxed: bool,
    pub(super) posture: Posture,
    pub(super) folds: bool,
    pub(super) blocks: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens_sha256: Option<Sha256Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<String>,
    pub(super) registered_at: Millis,
}

/// A session that is in order.
#[derive(Debug, Clone)]
pub struct Registered {
    /// Its folder of state.
    pub folder: PathBuf,
    /// Its id.
    pub session: String,
    /// The worktree, without links.
    pub worktree: PathBuf,
    /// Its policy, which is the pinned one.
    pub policy: Policy,
    /// What it is for.
    pub intent: Option<String>,
    /// Whether it runs in the sandbox.
    pub sandboxed: bool,
    /// `security.failure_posture`, as it was when the session was registered.
    pub posture: Posture,
    /// Whether the worktree's file system folds names.
    pub folds: bool,
    /// How often Stop refuses.
    pub blocks: u32,
    /// What it may use; without tokens the policy alone says.
    pub tokens: Option<SessionTokens>,
    /// Its permission profile; without one the default profile counts.
    pub profile: Option<String>,
    /// Whether a worktree's own policy file gates it.
    pub compatible: bool,
}

/// What is found under a session's id.
#[derive(Debug)]
pub enum Found {
    /// A session in order.
    Registered(Box<Registered>),
    /// Nothing was registered.
    Unknown,
    /// It was registered, and the policy is gone.
    PolicyMissing(Posture),
    /// The policy is not the pinned one, or none.
    PolicyUnreadable(Posture, String),
    /// The rest of what was registered is damaged.
    StateUnreadable(String),
}

/// Registers a session: its policy's digest is pinned, and what is changed in the worktree already is noted.
///
/// # Errors
/// A bad policy, a state inside of the worktree, an id that is taken: [`RegistrationError`]. Nothing is half registered.
pub fn register(home: &Home, new: &NewSession<'_>) -> Result<Registered, RegistrationError> {
    let policy = Policy::parse(new.policy)?;
    if new
        .intent
        .is_some_and(|intent| intent.len() > MAXIMUM_INTENT)
    {
        return Err(RegistrationError::Intent);
    }
    let refused = |reason: String| RegistrationError::Worktree {
        path: new.worktree.to_owned(),
        reason,
    };
    let worktree =
        std::fs::canonicalize(new.worktree).map_err(|error| refused(error.to_string()))?;
    if !worktree.is_dir() {
        return Err(refused("it is no folder".to_owned()));
    }
    let shown = worktree
        .to_str()
        .ok_or_else(|| refused("its name is not UTF-8".to_owned()))?;
    home.keep_apart(&worktree)?;
    let folder = home.session(new.session);
    let document = Document {
        v: 1,
        session: new.session.as_str().to_owned(),
        worktree: shown.to_owned(),
        policy_sha256: policy.digest(),
        intent: new.intent.map(str::to_owned),
        sandboxed: new.sandboxed,
        posture: new.posture,
        folds: folds(&worktree),
        blocks: new.blocks.max(1),
        tokens_sha256: new.tokens.map(SessionTokens::digest),
        profile: new.profile.map(str::to_owned),
        registered_at: new.now,
    };
    private_folder(&folder)?;
    home.kept_safe(&folder)?;
    let file = folder.join("session.json");
    if file.exists() {
        let same = |found: Document| {
            let registered_at = document.registered_at;
            Document {
                registered_at,
                ..found
            } == document
        };
        if !read(&file).is_ok_and(same) {
            return Err(StateError::Taken(new.session.as_str().to_owned()).into());
        }
    } else {
        let baseline = changes::baseline(&worktree);
        let baseline =
            json::to_bytes(&baseline).map_err(|error| StateError::damaged(&folder, error))?;
        write_private(&folder.join("baseline.json"), &baseline)?;
        write_private(&folder.join("policy.json"), new.policy)?;
        if let Some(tokens) = new.tokens {
            write_private(&folder.join(TOKENS), &tokens.to_bytes())?;
        }
        home.receipt_key()?;
        super::record::begin(&folder)?;
        let bytes = json::to_bytes(&document).map_err(|error| StateError::damaged(&file, error))?;
        // Last, because it is what makes a session registered.
        write_private(&file, &bytes)?;
    }
    Ok(registered(folder, document, policy, new.tokens.cloned()))
}

/// Looks a session up.
pub fn look_up(home: &Home, session: &SessionId) -> Found {
    let folder = home.session(session);
    let file = folder.join("session.json");
    let document = match read(&file) {
        Ok(document) => document,
        // The folder alone was made by a registration that did not come to its end.
        Err(_)
            if std::fs::symlink_metadata(&file)
                .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) =>
        {
            return Found::Unknown;
        }
        Err(error) => return Found::StateUnreadable(error.to_string()),
    };
    if document.v != 1 || document.session != session.as_str() {
        return Found::StateUnreadable("it is another session's, or of another version".to_owned());
    }
    if let Err(error) = home.kept_safe(&folder) {
        return Found::StateUnreadable(error.to_string());
    }
    let posture = document.posture;
    let tokens = document
        .tokens_sha256
        .map(|pinned| SessionTokens::read(&folder.join(TOKENS), pinned));
    let tokens = match tokens.transpose() {
        Ok(tokens) => tokens,
        Err(error) => return Found::StateUnreadable(error.to_string()),
    };
    let file = folder.join("policy.json");
    if !file.exists() {
        return Found::PolicyMissing(posture);
    }
    let policy = read_private(&file, MAXIMUM_POLICY_BYTES as u64)
        .map_err(|error| error.to_string())
        .and_then(|bytes| Policy::parse(&bytes).map_err(|error| error.to_string()));
    match policy {
        // Break it: do not compare; `hook_gate::state::a_policy_that_was_exchanged_is_refused` fails.
        Ok(policy) if policy.digest() == document.policy_sha256 => {
            Found::Registered(Box::new(registered(folder, document, policy, tokens)))
        }
        Ok(_) => Found::PolicyUnreadable(
            posture,
            "it is not the policy that the session was registered with".to_owned(),
        ),
        Err(error) => Found::PolicyUnreadable(posture, error),
    }
}

fn registered(
    folder: PathBuf,
    document: Document,
    policy: Policy,
    tokens: Option<SessionTokens>,
) -> Registered {
    Registered {
        folder,
        session: document.session,
        worktree: PathBuf::from(document.worktree),
        policy,
        intent: document.intent,
        sandboxed: document.sandboxed,
        posture: document.posture,
        folds: document.folds,
        blocks: document.blocks,
        tokens,
        profile: document.profile,
        compatible: false,
    }
}

fn read(file: &Path) -> Result<Document, StateError> {
    let bytes = read_private(file, MAXIMUM_REGISTRATION as u64)?;
    json::parse(&bytes, MAXIMUM_REGISTRATION).map_err(|error| StateError::damaged(file, error))
}

/// What was changed in the worktree before the session.
pub(super) fn read_baseline(folder: &Path) -> Result<Baseline, StateError> {
    let file = folder.join("baseline.json");
    let bytes = read_private(&file, 64 << 20)?;
    serde_json::from_slice(&bytes).map_err(|error| StateError::damaged(&file, error))
}

/// A session that the worktree's own policy file gates (`.sdd/runtime/hook_gate/<session>.json`, as Bernstein writes it).
///
/// Nothing is pinned: nobody registered it. The file lies where the agent works, so such a session is advisory.
pub fn look_up_compatible(home: &Home, session: &SessionId, worktree: &Path) -> Found {
    let Ok(worktree) = std::fs::canonicalize(worktree) else {
        return Found::Unknown;
    };
    let file = worktree
        .join(".sdd/runtime/hook_gate")
        .join(format!("{}.json", session.as_str()));
    let bytes = match open_plain(&file) {
        Ok(opened) => {
            use std::io::Read as _;
            let mut bytes = Vec::new();
            match opened
                .take(MAXIMUM_POLICY_BYTES as u64 + 1)
                .read_to_end(&mut bytes)
            {
                Ok(_) => bytes,
                Err(error) => {
                    return Found::PolicyUnreadable(Posture::Closed, error.to_string());
                }
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Found::Unknown,
        Err(error) => return Found::PolicyUnreadable(Posture::Closed, error.to_string()),
    };
    match Policy::parse(&bytes) {
        Ok(policy) => Found::Registered(Box::new(Registered {
            folder: home.compatible_session(session, &worktree),
            session: session.as_str().to_owned(),
            folds: folds(&worktree),
            worktree,
            policy,
            intent: None,
            sandboxed: false,
            posture: Posture::Closed,
            blocks: BLOCKS,
            tokens: None,
            profile: None,
            compatible: true,
        })),
        Err(error) => Found::PolicyUnreadable(Posture::Closed, error.to_string()),
    }
}
