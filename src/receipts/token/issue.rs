//! Making tokens: new ones, and narrower ones from those that are there. What would be wider is refused, never made to fit.

use std::sync::Arc;

use thiserror::Error;

use super::{CitedProof, Claims, Token, WiderToken};
use crate::attest::text::shown;
use crate::clock::Millis;
use crate::receipts::constraints::Constraints;
use crate::receipts::intent::Intent;
use crate::receipts::key::{PemKey, PemKeyId, TrustedKeys};
use crate::receipts::name::{AgentId, TokenId, ToolName};

/// The longest a token may live, in seconds: 366 days.
pub const MAX_TTL: i64 = 366 * 24 * 60 * 60;
/// The longest name of an issuer, in bytes.
const MAX_ISSUER: usize = 500;

/// Why no token is made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IssueError {
    /// No time to live, or too much.
    #[error("a token lives from 1 second to {MAX_TTL} seconds (366 days), not {found} seconds")]
    Ttl {
        /// What was asked for, in seconds.
        found: i64,
    },
    /// The intent does not cover the token's tool.
    #[error(
        "the tool {tool} is outside intent scope: the intent approves {approved}; name the tool there, or another one here"
    )]
    OutsideIntent {
        /// The token's tool.
        tool: ToolName,
        /// The approved ones.
        approved: String,
    },
    /// A name of an issuer that is empty or too long.
    #[error("{found} names no issuer: 1 to {MAX_ISSUER} bytes without NUL were expected")]
    Issuer {
        /// What was found, made printable.
        found: String,
    },
    /// The parent's signature is no trusted key's.
    #[error(
        "the parent {parent} is not signed by a trusted key; name the key that signed it (--trusted-key), or mint anew"
    )]
    ParentUnproven {
        /// The parent.
        parent: TokenId,
    },
    /// The parent states another name than its own, or a second signature.
    #[error("the parent {parent} is no token that can be narrowed: {reason}")]
    Parent {
        /// The parent.
        parent: TokenId,
        /// Why.
        reason: &'static str,
    },
    /// The parent's time is over.
    #[error("the parent {parent} has expired; mint a new token")]
    ParentExpired {
        /// The parent.
        parent: TokenId,
    },
    /// Wider than the parent.
    #[error("attenuation only narrows: {0}")]
    Wider(#[from] WiderToken),
    /// The child could never be used.
    #[error("the child would expire before it becomes valid; give it a longer time to live")]
    NeverValid,
}

/// What a new token is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who may call.
    pub agent: AgentId,
    /// The tool.
    pub tool: ToolName,
    /// What arguments must be like.
    pub constraints: Constraints,
    /// What it is for.
    pub intent: Option<Intent>,
    /// How long it is valid, in seconds from now.
    pub ttl_seconds: i64,
}

/// How a child is to be narrower. What is not said is inherited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Narrowing {
    /// The parent's agent or one below it.
    pub agent: Option<AgentId>,
    /// What arguments must be like besides what the parent says.
    pub constraints: Constraints,
    /// How long it is valid, in seconds from now; no longer than the parent.
    pub ttl_seconds: Option<i64>,
    /// The child's intent as a whole, as narrow as the parent's.
    pub intent: Option<Intent>,
}

/// Who signs tokens.
#[derive(Debug, Clone)]
pub struct Issuer {
    name: String,
    key: Arc<PemKey>,
}

impl Issuer {
    /// An issuer with this name and key.
    pub fn new(name: &str, key: Arc<PemKey>) -> Result<Self, IssueError> {
        if name.is_empty() || name.len() > MAX_ISSUER || name.contains('\0') {
            return Err(IssueError::Issuer { found: shown(name) });
        }
        let name = name.to_owned();
        Ok(Self { name, key })
    }

    /// A new token.
    pub fn mint(&self, grant: &Grant, now: Millis) -> Result<Token, IssueError> {
        let issued_at = now.0.div_euclid(1_000);
        let ttl = living(grant.ttl_seconds)?;
        // Break it: leave this out; `receipts::minting::a_tool_outside_its_own_intent_is_refused` fails.
        covered(&grant.tool, grant.intent.as_ref())?;
        let claims = Claims {
            agent: grant.agent.clone(),
            tool: grant.tool.clone(),
            constraints: grant.constraints.clone(),
            intent: grant.intent.clone().map(Arc::new),
            issuer: self.name.clone(),
            key: self.key.id().clone(),
            issued_at,
            not_before: issued_at,
            expires_at: issued_at.saturating_add(ttl),
            parent: None,
            proof: CitedProof::default(),
        };
        Ok(Token::sign(claims, &self.key))
    }

    /// A narrower token from `parent`, which this issuer's key or one of `trusted` signed.
    pub fn attenuate(
        &self,
        parent: &Token,
        trusted: &TrustedKeys,
        narrowing: &Narrowing,
        now: Millis,
    ) -> Result<Token, IssueError> {
        self.prove(parent, trusted)?;
        let theirs = parent.claims();
        let issued_at = now.0.div_euclid(1_000);
        if theirs.expires_at <= issued_at {
            let parent = parent.id().clone();
            return Err(IssueError::ParentExpired { parent });
        }
        let expires_at = match narrowing.ttl_seconds {
            Some(ttl) => issued_at.saturating_add(living(ttl)?),
            None => theirs.expires_at,
        };
        let intent = narrowing.intent.clone().map(Arc::new);
        let constraints = theirs.constraints.with(&narrowing.constraints);
        let claims = Claims {
            agent: narrowing.agent.as_ref().unwrap_or(&theirs.agent).clone(),
            tool: theirs.tool.clone(),
            constraints: constraints.map_err(WiderToken::Constraint)?,
            // Break it: take the child's own or none; `receipts::attenuation::a_child_inherits_the_intent` fails.
            intent: intent.or_else(|| theirs.intent.clone()),
            issuer: self.name.clone(),
            key: self.key.id().clone(),
            issued_at,
            not_before: issued_at.max(theirs.not_before),
            expires_at,
            parent: Some(parent.id().clone()),
            proof: CitedProof {
                policy_proof_hash: theirs.proof.policy_proof_hash.clone(),
                ..CitedProof::default()
            },
        };
        claims.narrows(theirs)?;
        covered(&claims.tool, claims.intent.as_deref())?;
        if claims.expires_at <= claims.not_before {
            return Err(IssueError::NeverValid);
        }
        Ok(Token::sign(claims, &self.key))
    }

    /// That `parent` is what a trusted key signed.
    fn prove(&self, parent: &Token, trusted: &TrustedKeys) -> Result<(), IssueError> {
        let id = || parent.id().clone();
        let key = &parent.claims().key;
        let signed = if key == self.key.id() {
            parent.verifies(&self.key.public())
        } else {
            let key: Option<_> = trusted.find(PemKeyId::as_str(key));
            key.is_some_and(|key| parent.verifies(key))
        };
        if !signed {
            return Err(IssueError::ParentUnproven { parent: id() });
        }
        let refused = |reason| IssueError::Parent {
            parent: id(),
            reason,
        };
        if !parent.id_matches() {
            return Err(refused("its token_id does not match its body"));
        }
        if parent.is_hybrid() {
            return Err(refused(
                "it has a second signature that cannot be verified here",
            ));
        }
        Ok(())
    }
}

fn living(ttl: i64) -> Result<i64, IssueError> {
    if (1..=MAX_TTL).contains(&ttl) {
        Ok(ttl)
    } else {
        Err(IssueError::Ttl { found: ttl })
    }
}

fn covered(tool: &ToolName, intent: Option<&Intent>) -> Result<(), IssueError> {
    let Some(intent) = intent.filter(|intent| !intent.covers(tool.as_str())) else {
        return Ok(());
    };
    let approved = intent.tools().unwrap_or_default().iter();
    let approved: Vec<&str> = approved.map(ToolName::as_str).take(10).collect();
    Err(IssueError::OutsideIntent {
        tool: tool.clone(),
        approved: approved.join(", "),
    })
}
