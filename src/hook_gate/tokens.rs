//! The capability tokens of a session: one a tool, all for the same intent, minted when the session is opened.
//!
//! They lie with the session's state, where the agent cannot reach them; their digest is pinned by the registration. A sub-agent's
//! call is held against a child of the tool's token, narrowed to that sub-agent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::home::{Home, StateError, read_private};
use crate::attest::json;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::receipts::constraints::Constraints;
use crate::receipts::{
    self, AgentId, Checked, Denial, Gate, GivenArguments, Grant, Intent, IssueError, Issuer,
    Narrowing, PemKey, Revocations, Stage, Token, ToolName, TrustedKeys,
};
use crate::tool_gate::Call;

/// Who issues the tokens of sessions.
const ISSUER: &str = "caretaker/worker";
/// The agent that a session's tokens are for; sub-agents are below it.
const AGENT: &str = "agent:caretaker-coder";
/// Largest file of tokens, in bytes.
pub(super) const MAXIMUM_TOKENS: usize = 1 << 20;

/// Why a session gets no tokens.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// A name.
    #[error("minting the session's tokens: {0}")]
    Name(#[from] receipts::NameError),
    /// A token.
    #[error("minting the session's tokens: {0}")]
    Issue(#[from] IssueError),
    /// The key.
    #[error(transparent)]
    State(#[from] StateError),
}

/// A tool that a session may use, and what its arguments must be like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant {
    /// The tool, exactly as calls spell it.
    pub tool: ToolName,
    /// What its arguments must be like.
    pub constraints: Constraints,
}

/// A session's tokens by tool, each as its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTokens(BTreeMap<String, String>);

impl SessionTokens {
    /// Mints one token for each tool, all for `intent` and `ttl_seconds`.
    ///
    /// # Errors
    /// A tool that the intent does not cover, a time to live out of bounds, or a key that cannot be used.
    pub fn mint(
        home: &Home,
        grants: &[ToolGrant],
        intent: &Intent,
        ttl_seconds: i64,
        now: Millis,
    ) -> Result<Self, MintError> {
        let issuer = Issuer::new(ISSUER, home.token_key()?)?;
        let agent = AgentId::parse(AGENT)?;
        let minted = grants.iter().map(|grant| {
            let granted = Grant {
                agent: agent.clone(),
                tool: grant.tool.clone(),
                constraints: grant.constraints.clone(),
                intent: Some(intent.clone()),
                ttl_seconds,
            };
            let token = issuer.mint(&granted, now)?;
            Ok((grant.tool.as_str().to_owned(), token.to_text()))
        });
        minted.collect::<Result<_, MintError>>().map(Self)
    }

    /// The file's bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // A map of texts always serialises; an empty text would not read back as tokens.
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    /// SHA-256 of the tokens as they are kept.
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.to_bytes())
    }

    /// Reads the tokens that a registration pinned.
    pub(super) fn read(file: &Path, pinned: Sha256Digest) -> Result<Self, StateError> {
        let bytes = read_private(file, MAXIMUM_TOKENS as u64)?;
        // Break it: do not compare; `hook_gate::tokens::tokens_that_were_exchanged_refuse_everything` fails.
        if Sha256Digest::of(&bytes) != pinned {
            return Err(StateError::damaged(
                file,
                "they are not the tokens that the session was registered with",
            ));
        }
        json::parse(&bytes, MAXIMUM_TOKENS)
            .map(Self)
            .map_err(|error| StateError::damaged(file, error))
    }

    /// Whether the session holds a token for this call. `ruleset` is the digest of the session's policy, which decides where there is
    /// none.
    pub(super) fn check(
        &self,
        home: &Home,
        call: &Call,
        given: &GivenArguments<'_>,
        ruleset: Sha256Digest,
        now: Millis,
    ) -> Checked {
        self.try_check(home, call, given, now)
            .unwrap_or_else(|denial| Checked::without_token(denial, ruleset))
    }

    fn try_check(
        &self,
        home: &Home,
        call: &Call,
        given: &GivenArguments<'_>,
        now: Millis,
    ) -> Result<Checked, Denial> {
        // Break it: let a tool without a token through; `hook_gate::tokens::a_tool_without_a_token_is_refused` fails.
        let text = self.0.get(&call.tool).ok_or_else(|| {
            let tool = crate::attest::text::shown(&call.tool);
            Denial::new(
                Stage::Tool,
                format!("the session holds no capability token for the tool {tool}, which is outside intent scope"),
            )
        })?;
        let unreadable = |error: &dyn std::fmt::Display| {
            Denial::new(Stage::Token, format!("the session's token: {error}"))
        };
        let token = Token::parse(text.as_bytes()).map_err(|error| unreadable(&error))?;
        let key = home.token_key().map_err(|error| unreadable(&error))?;
        let revoked = home
            .revoked_tokens()
            .map_err(|reason| Denial::new(Stage::RevocationList, reason))?;
        let gate = Gate::new(TrustedKeys::new([key.public()]), revoked);
        let asked = |agent| receipts::Call {
            tool: &call.tool,
            agent,
            arguments: &given.judged,
            now,
        };
        let Some(subagent) = &call.subagent else {
            return Ok(gate.check(&token, &[], &asked(None)));
        };
        let child = narrowed(&token, subagent, &key, now)
            .map_err(|reason| Denial::new(Stage::Agent, reason))?;
        let agent = child.claims().agent.as_str().to_owned();
        Ok(gate.check(&child, &[token], &asked(Some(&agent))))
    }
}

/// The token as it is for one sub-agent: whatever it calls itself, its name is one of ours.
fn narrowed(
    token: &Token,
    subagent: &str,
    key: &Arc<PemKey>,
    now: Millis,
) -> Result<Token, String> {
    let name = Sha256Digest::of(subagent.as_bytes()).to_string();
    let agent = format!("{AGENT}.{}", name.get(..16).unwrap_or_default());
    let agent = AgentId::parse(&agent).map_err(|error| error.to_string())?;
    let issuer = Issuer::new(ISSUER, Arc::clone(key)).map_err(|error| error.to_string())?;
    let narrowing = Narrowing {
        agent: Some(agent),
        ..Narrowing::default()
    };
    let trusted = TrustedKeys::new([key.public()]);
    issuer
        .attenuate(token, &trusted, &narrowing, now)
        .map_err(|error| error.to_string())
}

impl Home {
    /// The tokens that count no longer: `revoked-tokens` beside the sessions, a name a line.
    pub(super) fn revoked_tokens(&self) -> Result<Revocations, String> {
        let file = self.revocation_file();
        if !file.exists() {
            return Ok(Revocations::default());
        }
        let bytes =
            read_private(&file, MAXIMUM_TOKENS as u64).map_err(|error| error.to_string())?;
        let text = String::from_utf8(bytes).map_err(|_| "the list is not text".to_owned())?;
        Revocations::parse(&text).map_err(|error| error.to_string())
    }
}
