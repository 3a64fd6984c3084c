//! The assertion with which an App signs in: a JSON web token signed with RS256.

use rustls::pki_types::alg_id::RSA_PKCS1_SHA256;
use serde_json::Value;

use super::super::encoding::{from_base64, from_base64url};
use super::super::state::{App, Shared};
use super::Refusal;
use std::sync::Arc;

/// How far an issue time may lie ahead of the forge's clock, in seconds.
const AHEAD: u64 = 60;
/// How long an assertion may live, in seconds.
const LIFE: u64 = 600;

/// Whether a credential is an assertion and no token.
pub(crate) fn is_assertion(text: &str) -> bool {
    text.split('.').count() == 3 && !text.starts_with("gh")
}

/// The App that signed this, or GitHub's words why it is not believed.
pub(crate) fn signer(shared: &Shared, text: &str) -> Result<Arc<App>, Refusal> {
    let undecodable = || Refusal::new(401, "A JSON web token could not be decoded");
    let (signed, signature) = text.rsplit_once('.').ok_or_else(undecodable)?;
    let (header, claims) = signed.split_once('.').ok_or_else(undecodable)?;
    let json =
        |part: &str| -> Option<Value> { serde_json::from_slice(&from_base64url(part)?).ok() };
    let (header, claims) = (
        json(header).ok_or_else(undecodable)?,
        json(claims).ok_or_else(undecodable)?,
    );
    let issuer = match &claims["iss"] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(undecodable()),
    };
    let app = shared
        .apps
        .issuer(&issuer)
        .ok_or_else(|| Refusal::new(404, "Integration not found"))?;
    // Break it: believe any algorithm, and `forge::apps::an_assertion_must_be_the_apps_own` fails.
    let believed = header["alg"] == "RS256"
        && from_base64url(signature)
            .is_some_and(|signature| verifies(&app, signed.as_bytes(), &signature));
    if !believed {
        return Err(undecodable());
    }
    timely(&claims, (shared.now)())?;
    Ok(app)
}

/// Whether the times of an assertion allow it now.
fn timely(claims: &Value, now: u64) -> Result<(), Refusal> {
    let refused = |message: &str| Err(Refusal::new(401, message));
    let Some(issued) = claims["iat"].as_u64().filter(|at| *at <= now + AHEAD) else {
        return refused(
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        );
    };
    match claims["exp"].as_u64() {
        Some(end) if end > issued + LIFE || end > now + LIFE => {
            refused("'Expiration time' claim ('exp') is too far in the future")
        }
        Some(end) if end > now => Ok(()),
        _ => refused(
            "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
        ),
    }
}

fn verifies(app: &App, message: &[u8], signature: &[u8]) -> bool {
    let Some(key) = public_key(&app.public_key_pem) else {
        return false;
    };
    let known = rustls::crypto::ring::default_provider().signature_verification_algorithms;
    known
        .all
        .iter()
        .filter(|algorithm| algorithm.signature_alg_id() == RSA_PKCS1_SHA256)
        .any(|algorithm| algorithm.verify_signature(&key, message, signature).is_ok())
}

/// The `RSAPublicKey` in a PEM text (RFC 8017, A.1.1), also where it is wrapped (RFC 5280, 4.1).
fn public_key(pem: &str) -> Option<Vec<u8>> {
    let wrapped = pem.contains("-----BEGIN PUBLIC KEY-----");
    if !wrapped && !pem.contains("-----BEGIN RSA PUBLIC KEY-----") {
        return None;
    }
    let digits: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let bytes = from_base64(&digits)?;
    if !wrapped {
        return Some(bytes);
    }
    let (0x30, outer, _) = element(&bytes)? else {
        return None;
    };
    let (0x30, _, rest) = element(outer)? else {
        return None;
    };
    match element(rest)? {
        // The first byte of a bit string counts the unused bits.
        (0x03, [0, key @ ..], _) => Some(key.to_vec()),
        _ => None,
    }
}

/// The first element of DER: its tag, its content, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length = digits.iter().try_fold(0_usize, |length, digit| {
            length.checked_mul(256)?.checked_add(usize::from(*digit))
        })?;
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}
