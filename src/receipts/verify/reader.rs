//! One line: envelope, JWS, signature, payload.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{EnvelopeFault, Fault, Receipt, payload};
use crate::attest::json::{self, Json};
use crate::attest::keys::PublicKey;
use crate::attest::text::shown;
use crate::receipts::canonical::read_canonical;
use crate::receipts::intent::Intent;
use crate::receipts::key::{PemKeyId, TrustedKeys};
use crate::receipts::name::TokenId;
use crate::receipts::receipt::{MAX_JWS, MAX_PAYLOAD, ReceiptHash, header};
use crate::receipts::token::Token;

/// The longest line that is read, in bytes: that of the longest JWS, with some white space.
pub const MAX_LINE: usize = MAX_JWS + 1_024;

/// What receipts are held against.
#[derive(Debug, Clone)]
pub struct Reader {
    /// The encoded header that a key's receipts have, of which there is one.
    keys: Vec<(String, PemKeyId, PublicKey)>,
    /// The intents of tokens that are at hand.
    tokens: BTreeMap<TokenId, Option<Arc<Intent>>>,
}

impl Reader {
    /// Receipts signed by one of these keys. Where tokens are at hand, an intent in a receipt must be its token's.
    pub fn new<'a>(keys: &TrustedKeys, tokens: impl IntoIterator<Item = &'a Token>) -> Self {
        let keys = keys
            .iter()
            .map(|(id, key)| (header(id.as_str()), id.clone(), key.clone()));
        let tokens = tokens.into_iter();
        Self {
            keys: keys.collect(),
            tokens: tokens
                .map(|token| (token.id().clone(), token.claims().intent.clone()))
                .collect(),
        }
    }

    /// Reads a line of a chain file, without its line break.
    pub fn read(&self, line: &[u8]) -> Result<Receipt, Fault> {
        if line.len() > MAX_LINE {
            return Err(Fault::LongLine);
        }
        let envelope = json::read(line, MAX_LINE)
            .map_err(|error| Fault::Envelope(EnvelopeFault::Json(error)))?;
        let members = match &envelope {
            Json::Members(members) if members.len() == 2 => members,
            _ => return Err(Fault::Envelope(EnvelopeFault::Members)),
        };
        let (Some(Json::Text(stated)), Some(Json::Text(jws))) =
            (members.get("receipt_hash"), members.get("jws"))
        else {
            return Err(Fault::Envelope(EnvelopeFault::Members));
        };
        let hash = ReceiptHash::of(jws);
        // Break it: leave the comparison out; `receipts::tampering::a_line_with_another_name_is_no_receipt` fails.
        if stated.parse() != Ok(hash) {
            return Err(Fault::Hash);
        }
        self.read_jws(jws, hash)
    }

    fn read_jws(&self, jws: &str, hash: ReceiptHash) -> Result<Receipt, Fault> {
        if jws.len() > MAX_JWS {
            return Err(Fault::LongJws { length: jws.len() });
        }
        let (signed, signature) = jws.rsplit_once('.').ok_or(Fault::Parts)?;
        let (stated, encoded) = signed.split_once('.').ok_or(Fault::Parts)?;
        let known = self.keys.iter().find(|(header, ..)| header == stated);
        let (_, id, key) = known.ok_or_else(|| unknown(stated))?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok();
        let signature: Option<[u8; 64]> = signature.and_then(|bytes| bytes.try_into().ok());
        // Break it: leave the verification out; `receipts::tampering::every_changed_byte_of_a_chain_is_found` fails.
        if !signature.is_some_and(|signature| key.verifies(signed.as_bytes(), &signature)) {
            return Err(Fault::Signature);
        }
        let payload = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| Fault::Parts)?;
        if payload.len() > MAX_PAYLOAD {
            let length = payload.len();
            return Err(Fault::LongPayload { length });
        }
        let json = read_canonical(&payload, MAX_PAYLOAD)?;
        payload::read(&json, id, hash, &self.tokens)
    }
}

/// Why a header is none of those that are known: of another key, or of another kind.
fn unknown(stated: &str) -> Fault {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(stated) else {
        return Fault::Parts;
    };
    let Ok(json) = json::read(&bytes, MAX_JWS) else {
        return Fault::Header;
    };
    match json.text_member("kid") {
        Some(kid) if header(kid) == stated => Fault::UnknownKey { key: shown(kid) },
        _ => Fault::Header,
    }
}
