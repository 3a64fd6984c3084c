//! From a document to a token.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use super::{CitedProof, Claims, MAX_TOKEN, Token};
use crate::attest::json::{self, Json, JsonError};
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::receipts::canonical::to_canonical;
use crate::receipts::constraints::{ConstraintError, Constraints};
use crate::receipts::intent::{Intent, IntentError};
use crate::receipts::key::{PemError, PemKeyId};
use crate::receipts::name::{AgentId, NameError, TokenId, ToolName};

/// Why a document is no token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TokenError {
    /// Not JSON as it is read here.
    #[error("the token: {0}")]
    Json(#[from] JsonError),
    /// Not an object.
    #[error("the token is not a JSON object")]
    Object,
    /// A member that this version does not know, and therefore would not enforce.
    #[error("the token has the member `{found}`, which this version does not know")]
    Unknown {
        /// The name found, made printable.
        found: String,
    },
    /// A member that is missing or of another kind.
    #[error("the token's {member} must be {expected}")]
    Member {
        /// Its name.
        member: &'static str,
        /// What it is, in words.
        expected: &'static str,
    },
    /// A name.
    #[error("the token: {0}")]
    Name(#[from] NameError),
    /// The key's name.
    #[error("the token: {0}")]
    Key(#[from] PemError),
    /// The constraints.
    #[error("the token's constraints: {0}")]
    Constraints(#[from] ConstraintError),
    /// The intent.
    #[error("the token: {0}")]
    Intent(#[from] IntentError),
    /// Lists in another order than the signed one.
    #[error("the token's {member} is not in normal form, so that it is not what was signed")]
    NotNormal {
        /// Constraints or intent.
        member: &'static str,
    },
}

const KNOWN: [&str; 17] = [
    "agent_id",
    "constraints",
    "expires_at",
    "grammar_hash",
    "intent",
    "issued_at",
    "issuer",
    "key_id",
    "not_before",
    "parent_id",
    "policy_hash",
    "policy_proof_hash",
    "pq_key_id",
    "pq_signature",
    "signature",
    "token_id",
    "tool",
];

impl Token {
    /// Reads a token. White space and the order of members are free; everything else has one form.
    pub fn parse(bytes: &[u8]) -> Result<Self, TokenError> {
        let json = json::read(bytes, MAX_TOKEN)?;
        let Json::Members(members) = &json else {
            return Err(TokenError::Object);
        };
        // Break it: pass over unknown members; `receipts::hostile::a_member_that_nobody_knows_is_refused` fails.
        if let Some(found) = members.keys().find(|name| !KNOWN.contains(&name.as_ref())) {
            return Err(TokenError::Unknown {
                found: shown(found),
            });
        }
        let read = Members(members);
        let claims = read.claims()?;
        let signature = read.text("signature")?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok();
        let body = to_canonical(&claims.to_json());
        Ok(Self {
            id: TokenId::parse(read.text("token_id")?)?,
            signature: signature.and_then(|bytes| bytes.try_into().ok()),
            hybrid: read.optional("pq_key_id")?.is_some()
                || read.optional("pq_signature")?.is_some(),
            digest: Sha256Digest::of(&body),
            claims,
            body,
        })
    }
}

struct Members<'a, 'b>(&'b BTreeMap<Cow<'a, str>, Json<'a>>);

impl Members<'_, '_> {
    fn claims(&self) -> Result<Claims, TokenError> {
        let parent = self.optional("parent_id")?;
        let issuer = self.text("issuer")?;
        if issuer.is_empty() {
            return Err(TokenError::Member {
                member: "issuer",
                expected: "a string that is not empty",
            });
        }
        Ok(Claims {
            agent: AgentId::parse(self.text("agent_id")?)?,
            tool: ToolName::parse(self.text("tool")?)?,
            constraints: self.constraints()?,
            intent: self.intent()?.map(Arc::new),
            issuer: issuer.to_owned(),
            key: PemKeyId::parse(self.text("key_id")?)?,
            issued_at: self.seconds("issued_at")?,
            not_before: self.seconds("not_before")?,
            expires_at: self.seconds("expires_at")?,
            parent: parent.map(TokenId::parse).transpose()?,
            proof: CitedProof {
                policy_proof_hash: self.optional("policy_proof_hash")?.map(str::to_owned),
                grammar_hash: self.optional("grammar_hash")?.map(str::to_owned),
                policy_hash: self.optional("policy_hash")?.map(str::to_owned),
            },
        })
    }

    fn text(&self, member: &'static str) -> Result<&str, TokenError> {
        match self.0.get(member) {
            Some(Json::Text(text)) => Ok(text),
            _ => Err(TokenError::Member {
                member,
                expected: "a string",
            }),
        }
    }

    /// A string, or null, which is the same as absent.
    fn optional(&self, member: &'static str) -> Result<Option<&str>, TokenError> {
        match self.0.get(member) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(_) => Err(TokenError::Member {
                member,
                expected: "a string or null",
            }),
        }
    }

    fn seconds(&self, member: &'static str) -> Result<i64, TokenError> {
        match self.0.get(member) {
            Some(Json::Integer(seconds)) => Ok(*seconds),
            _ => Err(TokenError::Member {
                member,
                expected: "a number of seconds",
            }),
        }
    }

    fn constraints(&self) -> Result<Constraints, TokenError> {
        let member = "constraints";
        let Some(json) = self.0.get(member) else {
            return Err(TokenError::Member {
                member,
                expected: "an object, possibly empty",
            });
        };
        let constraints = Constraints::from_json(json)?;
        if constraints.to_json() == *json {
            Ok(constraints)
        } else {
            Err(TokenError::NotNormal { member })
        }
    }

    fn intent(&self) -> Result<Option<Intent>, TokenError> {
        let Some(json) = self.0.get("intent") else {
            return Ok(None);
        };
        let intent = Intent::from_json(json)?;
        if intent.to_json() == *json {
            Ok(Some(intent))
        } else {
            Err(TokenError::NotNormal { member: "intent" })
        }
    }
}
