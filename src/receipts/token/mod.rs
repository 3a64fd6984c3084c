//! A capability token: who may call which tool, with what arguments, until when, and what for.
//!
//! What is signed is the canonical JSON of its claims. Without an intent these are the published `cap:v1`, byte for byte; with one
//! there is the member `intent` more.

mod issue;
mod narrow;
mod read;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use issue::{Grant, IssueError, Issuer, MAX_TTL, Narrowing};
pub use narrow::WiderToken;
pub use read::TokenError;

use super::canonical::{integer, named, owned, text, to_canonical};
use super::constraints::Constraints;
use super::intent::Intent;
use super::key::{PemKey, PemKeyId};
use super::name::{AgentId, TokenId, ToolName};
use crate::attest::json::Json;
use crate::attest::keys::PublicKey;
use crate::change::Sha256Digest;

/// The longest token, in bytes.
pub const MAX_TOKEN: usize = 64 * 1024;

/// What a token says. Times are seconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who may call; also those below it.
    pub agent: AgentId,
    /// The one tool.
    pub tool: ToolName,
    /// What arguments must be like.
    pub constraints: Constraints,
    /// What it is for.
    pub intent: Option<Arc<Intent>>,
    /// Who issued it, in words of their own.
    pub issuer: String,
    /// The key that signed.
    pub key: PemKeyId,
    /// When it was issued.
    pub issued_at: i64,
    /// From when on it is valid.
    pub not_before: i64,
    /// From when on it is not valid any more.
    pub expires_at: i64,
    /// The token that this one was narrowed from.
    pub parent: Option<TokenId>,
    /// What the published format can cite of a proof of the policy. It is carried and signed; nothing here asks for proofs.
    pub proof: CitedProof,
}

/// References to a proof that the constraints mean what they should.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CitedProof {
    /// Of the proof.
    pub policy_proof_hash: Option<String>,
    /// Of the grammar it is over.
    pub grammar_hash: Option<String>,
    /// Of the policy it is over.
    pub policy_hash: Option<String>,
}

impl Claims {
    /// The document that is signed.
    fn to_json(&self) -> Json<'_> {
        let optional =
            |value: Option<&'_ String>| value.map_or(Json::Null, |value| owned(value.clone()));
        let mut out = named([
            ("agent_id", text(self.agent.as_str())),
            ("constraints", self.constraints.to_json()),
            ("expires_at", integer(self.expires_at)),
            ("grammar_hash", optional(self.proof.grammar_hash.as_ref())),
            ("issued_at", integer(self.issued_at)),
            ("issuer", text(&self.issuer)),
            ("key_id", text(self.key.as_str())),
            ("not_before", integer(self.not_before)),
            (
                "parent_id",
                self.parent
                    .as_ref()
                    .map_or(Json::Null, |parent| text(parent.as_str())),
            ),
            ("policy_hash", optional(self.proof.policy_hash.as_ref())),
            (
                "policy_proof_hash",
                optional(self.proof.policy_proof_hash.as_ref()),
            ),
            ("tool", text(self.tool.as_str())),
        ]);
        // Break it: write the member always; `receipts::identity::a_token_without_an_intent_has_no_other_bytes_than_v1` fails.
        if let Some(intent) = &self.intent {
            out.insert("intent".into(), intent.to_json());
        }
        Json::Members(out)
    }
}

/// A token as it was read or made. Reading one says nothing about whether it may be believed: that is the gate's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    claims: Claims,
    /// As stated; the gate compares it with the body.
    id: TokenId,
    /// `None` when it is not 64 bytes of base64url.
    signature: Option<[u8; 64]>,
    /// Whether it states a second signature, of another algorithm.
    hybrid: bool,
    body: Vec<u8>,
    digest: Sha256Digest,
}

impl Token {
    /// Signs claims, which name this key.
    fn sign(claims: Claims, key: &PemKey) -> Self {
        let body = to_canonical(&claims.to_json());
        let digest = Sha256Digest::of(&body);
        Self {
            id: TokenId::of(&digest),
            signature: Some(key.sign(&body)),
            hybrid: false,
            claims,
            body,
            digest,
        }
    }

    /// What it says.
    pub const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Its name, as stated.
    pub const fn id(&self) -> &TokenId {
        &self.id
    }

    /// What is signed.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The digest of what is signed.
    pub const fn digest(&self) -> &Sha256Digest {
        &self.digest
    }

    /// Whether the stated name is that of the body.
    pub fn id_matches(&self) -> bool {
        TokenId::of(&self.digest) == self.id
    }

    /// Whether `key` signed it.
    pub fn verifies(&self, key: &PublicKey) -> bool {
        // Break it: take every signature; `receipts::tampering::every_changed_byte_of_a_token_is_denied` fails.
        self.signature
            .is_some_and(|signature| key.verifies(&self.body, &signature))
    }

    pub(super) const fn signature(&self) -> Option<&[u8; 64]> {
        self.signature.as_ref()
    }

    pub(super) const fn is_hybrid(&self) -> bool {
        self.hybrid
    }

    /// The token as it is handed on: one line of canonical JSON, without a line break.
    pub fn to_text(&self) -> String {
        let Json::Members(mut members) = self.claims.to_json() else {
            return String::new();
        };
        members.insert("token_id".into(), text(self.id.as_str()));
        let signature = self
            .signature
            .map(|signature| URL_SAFE_NO_PAD.encode(signature));
        members.insert("signature".into(), owned(signature.unwrap_or_default()));
        String::from_utf8(to_canonical(&Json::Members(members))).unwrap_or_default()
    }
}
