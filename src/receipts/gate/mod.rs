//! The gate of a token: whether a call may be made. First denial wins and names its stage.

mod disclose;
mod remember;

use std::fmt;

use super::arguments::{ArgumentError, Arguments};
use super::key::TrustedKeys;
use super::name::{AgentId, TokenId};
use super::outcome::{Decision, InForce, Outcome};
use super::revocation::Revocations;
use super::token::Token;
use crate::attest::text::shown;
use crate::attest::{Label, Text};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use remember::Remembered;

pub use disclose::MAX_DISCLOSURE;

/// How many ancestors a token may have.
pub const MAX_ANCESTORS: usize = 16;

/// Where a call was denied, in the order in which the gate asks. The last three are for whoever reads tokens and writes receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The key that signed the token is not trusted.
    Key,
    /// The token's signature is not that key's.
    Signature,
    /// The token has a second signature, of an algorithm that is not verified here.
    Hybrid,
    /// The token's name is not that of its body.
    TokenId,
    /// The token or its parent was revoked.
    Revoked,
    /// It is before or after the token's time.
    Time,
    /// The token is for another tool.
    Tool,
    /// The token is for another agent.
    Agent,
    /// The arguments cannot be judged.
    Arguments,
    /// The arguments break a constraint of the token.
    Constraints,
    /// The call is not what was approved.
    Intent,
    /// An ancestor is missing, not to be believed, or narrower than what came from it.
    Chain,
    /// There is no token that could be read.
    Token,
    /// The list of revoked tokens cannot be read.
    RevocationList,
    /// The receipt cannot be written.
    Receipt,
}

impl Stage {
    /// The word in receipts and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Hybrid => "hybrid",
            Self::TokenId => "token-id",
            Self::Revoked => "revoked",
            Self::Time => "time",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Arguments => "arguments",
            Self::Constraints => "constraints",
            Self::Intent => "intent",
            Self::Chain => "chain",
            Self::Token => "token",
            Self::RevocationList => "revocation-list",
            Self::Receipt => "receipt",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// Why a call may not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Where.
    pub stage: Stage,
    /// Why, for people. It repeats no argument of the call.
    pub reason: String,
}

impl Denial {
    /// A denial.
    pub fn new(stage: Stage, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { stage, reason }
    }
}

/// A call that wants to be made.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Who calls, where the caller is known to the gate.
    pub agent: Option<&'a str>,
    /// With what.
    pub arguments: &'a Result<Arguments<'a>, ArgumentError>,
    /// When.
    pub now: Millis,
}

/// What the gate says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Why not; `None` allows.
    pub denial: Option<Denial>,
    /// The token, once its signature held.
    pub token: Option<TokenId>,
    /// The intent that was in force, and what is disclosed of the call.
    pub intent: Option<InForce>,
    agent: String,
    ruleset: Sha256Digest,
}

impl Checked {
    /// A denial where there is no token to speak of; `ruleset` is the digest of what decided instead.
    pub const fn without_token(denial: Denial, ruleset: Sha256Digest) -> Self {
        Self {
            denial: Some(denial),
            token: None,
            intent: None,
            agent: String::new(),
            ruleset,
        }
    }

    /// The decision.
    pub const fn decision(&self) -> Decision {
        match self.denial {
            None => Decision::Allow,
            Some(_) => Decision::Deny,
        }
    }

    /// The digest of the rules that were asked: of the token's signed body, where there is one.
    pub const fn ruleset(&self) -> Sha256Digest {
        self.ruleset
    }

    /// What a receipt says about it; `input` is the digest of the call's arguments.
    pub fn outcome(&self, call: &Call<'_>, input: Sha256Digest) -> Outcome {
        let reason = self.denial.as_ref().map_or("ok", |denial| &denial.reason);
        Outcome {
            decision: self.decision(),
            stage: self
                .denial
                .as_ref()
                .map(|denial| Label::fixed(denial.stage.word())),
            reason: Text::clipped(reason),
            tool: call.tool.to_owned(),
            agent: call.agent.unwrap_or(&self.agent).to_owned(),
            input,
            ruleset: self.ruleset,
            token: self.token.clone(),
            intent: self.intent.clone(),
            alignment: None,
        }
    }
}

/// Decides about calls under tokens. It is as good as the keys and the list it was given.
#[derive(Debug)]
pub struct Gate {
    keys: TrustedKeys,
    revoked: Revocations,
    remembered: Remembered,
}

impl Gate {
    /// A gate that trusts these keys. There is no root above them.
    pub fn new(keys: TrustedKeys, revoked: Revocations) -> Self {
        Self {
            keys,
            revoked,
            remembered: Remembered::default(),
        }
    }

    /// Puts another list of revoked tokens in force.
    pub fn set_revocations(&mut self, revoked: Revocations) {
        self.revoked = revoked;
    }

    /// Whether `call` may be made under `token`, whose ancestors are among `chain`.
    pub fn check(&self, token: &Token, chain: &[Token], call: &Call<'_>) -> Checked {
        let mut checked = Checked {
            denial: None,
            token: None,
            intent: None,
            agent: token.claims().agent.as_str().to_owned(),
            ruleset: *token.digest(),
        };
        checked.denial = self.authentic(token).err().or_else(|| {
            checked.token = Some(token.id().clone());
            self.judge(token, chain, call).err()
        });
        if let (Some(_), Some(intent)) = (&checked.token, &token.claims().intent) {
            let nothing = Arguments::default();
            let arguments = call.arguments.as_ref().unwrap_or(&nothing);
            let (disclosed, whole) = disclose::disclosed(intent, arguments);
            // Break it: allow what is not disclosed whole; `receipts::gate::what_cannot_be_disclosed_whole_is_denied` fails.
            if !whole && checked.denial.is_none() {
                let reason = format!(
                    "outside intent scope: the arguments that the intent constrains have more than {MAX_DISCLOSURE} bytes, which is more than a receipt discloses"
                );
                checked.denial = Some(Denial::new(Stage::Intent, reason));
            }
            checked.intent = Some(InForce {
                intent: intent.clone(),
                disclosed,
            });
        }
        checked
    }

    /// Everything after who signed the token, in order.
    fn judge(&self, token: &Token, chain: &[Token], call: &Call<'_>) -> Result<(), Denial> {
        self.in_force(token)?;
        let claims = token.claims();
        let now = call.now.0.div_euclid(1_000);
        if now < claims.not_before {
            return denied(Stage::Time, "token not yet valid");
        }
        if now >= claims.expires_at {
            return denied(Stage::Time, "token expired");
        }
        right_tool(token, call.tool)?;
        if let Some(agent) = call.agent {
            right_agent(token, agent)?;
        }
        let arguments = call
            .arguments
            .as_ref()
            .map_err(|error| Denial::new(Stage::Arguments, error.to_string()))?;
        claims.constraints.check(arguments).map_err(|violation| {
            let reason = format!("constraint violated: {violation}");
            Denial::new(Stage::Constraints, reason)
        })?;
        // Break it: leave the stage out; `receipts::fixtures::recipient_allowlist` fails.
        right_intent(token, arguments)?;
        self.ancestors(token, chain)
    }

    /// That a trusted key signed exactly this token.
    fn authentic(&self, token: &Token) -> Result<(), Denial> {
        let key = &token.claims().key;
        let Some(public) = self.keys.find(key.as_str()) else {
            let reason = format!("the key {key} that signed the token is not trusted");
            return denied(Stage::Key, reason);
        };
        if !self.remembered.verifies(token, public) {
            return denied(
                Stage::Signature,
                "bad signature: it is not the key's over this token",
            );
        }
        if token.is_hybrid() {
            let reason =
                "the token has a second, post-quantum signature, which cannot be verified here";
            return denied(Stage::Hybrid, reason);
        }
        if !token.id_matches() {
            return denied(Stage::TokenId, "token_id does not match body");
        }
        Ok(())
    }

    /// That neither the token nor its parent was revoked. Ancestors further up are looked at with the chain.
    fn in_force(&self, token: &Token) -> Result<(), Denial> {
        if self.revoked.contains(token.id()) {
            return denied(Stage::Revoked, format!("token {} is revoked", token.id()));
        }
        match &token.claims().parent {
            Some(parent) if self.revoked.contains(parent) => {
                denied(Stage::Revoked, format!("parent token {parent} is revoked"))
            }
            _ => Ok(()),
        }
    }

    /// That every token this one was narrowed from is there, to be believed, in force and wider.
    fn ancestors(&self, token: &Token, chain: &[Token]) -> Result<(), Denial> {
        let refused = |reason: String| denied(Stage::Chain, reason);
        let mut current = token;
        let mut depth = 0;
        while let Some(id) = &current.claims().parent {
            // Break it: allow what has no parent at hand; `receipts::gate::a_token_without_its_chain_is_denied` fails.
            let Some(parent) = chain.iter().find(|ancestor| ancestor.id() == id) else {
                return refused(format!("the parent {id} is not there to be checked"));
            };
            depth += 1;
            if depth > MAX_ANCESTORS {
                return refused(format!("more than {MAX_ANCESTORS} ancestors"));
            }
            if let Err(denial) = self.authentic(parent) {
                return refused(format!("ancestor {id}: {}", denial.reason));
            }
            if self.revoked.contains(id) {
                return refused(format!("ancestor token {id} is revoked"));
            }
            // Break it: leave this out; `receipts::attenuation::a_wider_child_is_denied_again_at_the_gate` fails.
            if let Err(wider) = current.claims().narrows(parent.claims()) {
                return refused(format!("invalid attenuation of {id}: {wider}"));
            }
            current = parent;
        }
        Ok(())
    }
}

fn denied<T>(stage: Stage, reason: impl Into<String>) -> Result<T, Denial> {
    Err(Denial::new(stage, reason))
}

fn right_tool(token: &Token, called: &str) -> Result<(), Denial> {
    let claims = token.claims();
    if claims.tool.as_str() == called {
        return Ok(());
    }
    let intent = claims.intent.as_ref();
    // Who approved one thing reads at once that another was called.
    let scope = match intent {
        Some(intent) if !intent.covers(called) => ", which is outside intent scope",
        _ => "",
    };
    let reason = format!(
        "token bound to tool {}, called {}{scope}",
        claims.tool,
        shown(called)
    );
    denied(Stage::Tool, reason)
}

fn right_agent(token: &Token, agent: &str) -> Result<(), Denial> {
    let own = &token.claims().agent;
    match AgentId::parse(agent) {
        Err(error) => denied(Stage::Agent, error.to_string()),
        Ok(agent) if agent.is_within(own) => Ok(()),
        Ok(agent) => denied(
            Stage::Agent,
            format!("the token is for {own} and those below it, not for {agent}"),
        ),
    }
}

fn right_intent(token: &Token, arguments: &Arguments<'_>) -> Result<(), Denial> {
    let claims = token.claims();
    let Some(intent) = &claims.intent else {
        return Ok(());
    };
    if !intent.covers(claims.tool.as_str()) {
        let reason = format!("tool {} outside intent scope", claims.tool);
        return denied(Stage::Intent, reason);
    }
    let constraints = intent.constraints();
    match constraints.map_or(Ok(()), |constraints| constraints.check(arguments)) {
        Ok(()) => Ok(()),
        Err(violation) => {
            let reason = format!("arguments outside intent scope: {violation}");
            denied(Stage::Intent, reason)
        }
    }
}
