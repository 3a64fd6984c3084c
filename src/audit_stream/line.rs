//! One line of the stream.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Head;
use crate::attest::{PublicKey, SecretKey};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::events::Event;
use crate::log::VerifierKey;

/// The longest line, in bytes without its line feed.
pub const MAX_LINE: usize = 64 << 10;
/// What is put before a line for signing, so that the signature can stand for nothing else.
const DOMAIN: &[u8] = b"caretaker-audit-stream-v1\n";
/// What stands between what is signed and the signature.
const BEFORE_SIGNATURE: &str = ",\"sig\":\"";
/// A signature in base64.
const SIGNATURE_LENGTH: usize = 88;

/// Everything of a line but its signature.
#[derive(Serialize)]
struct Unsigned<'a> {
    event: &'a str,
    ts: String,
    task_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    fields: &'a serde_json::Map<String, Value>,
    seq: u64,
    prev_hash: Sha256Digest,
    key: String,
}

/// What verification needs of a line, and what it may have beside. A member that nobody knows is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read so that every member has its type")]
struct Read<'a> {
    event: String,
    ts: String,
    task_id: String,
    #[serde(default)]
    correlation_id: Option<String>,
    #[serde(borrow)]
    fields: &'a RawValue,
    seq: u64,
    prev_hash: Sha256Digest,
    key: String,
    sig: String,
}

/// A line as it was read: its place, what it says to come before it, and its own hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) seq: u64,
    pub(super) before: Sha256Digest,
    pub(super) hash: Sha256Digest,
}

/// The line of an event after `head`, without its line feed.
pub(super) fn write(
    event: &Event,
    at: Millis,
    head: &Head,
    secret: &SecretKey,
    key: &VerifierKey,
) -> Result<String, String> {
    let unsigned = Unsigned {
        event: event.event,
        ts: at.to_string(),
        task_id: &event.task_id,
        correlation_id: event.correlation_id.as_deref(),
        fields: &event.fields,
        seq: head.events,
        prev_hash: head.hash,
        key: key.hash().to_string(),
    };
    let mut line = serde_json::to_string(&unsigned).map_err(|error| error.to_string())?;
    // The closing brace comes after the signature.
    line.pop();
    let signature = STANDARD.encode(secret.sign(&message(&line)));
    line.push_str(BEFORE_SIGNATURE);
    line.push_str(&signature);
    line.push_str("\"}");
    if line.len() > MAX_LINE {
        return Err(format!(
            "its line would have {} bytes, at most {MAX_LINE} are written",
            line.len()
        ));
    }
    Ok(line)
}

/// Reads a line and verifies its signature.
///
/// # Errors
/// It is not a line of this stream: why.
pub(super) fn read(line: &[u8], key: &VerifierKey) -> Result<Place, String> {
    if line.len() > MAX_LINE {
        return Err(format!("it is longer than {MAX_LINE} bytes"));
    }
    let text = str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    let read: Read<'_> = serde_json::from_str(text)
        .map_err(|error| format!("it is not an event of this stream: {error}"))?;
    let hash = key.hash().to_string();
    if read.key != hash {
        return Err(format!(
            "it names the key {:?}, not {hash}",
            shortened(&read.key)
        ));
    }
    // Break it: take a line without a signature, or leave the verification out
    // (`audit_stream::verify::unsigned_and_altered_lines_never_pass`).
    let signed = signed_part(text).ok_or("its signature is not its last member")?;
    let signature = STANDARD
        .decode(&read.sig)
        .ok()
        .and_then(|bytes| <[u8; 64]>::try_from(bytes).ok())
        .ok_or("its signature is not 64 bytes in base64")?;
    if !verifies(key.public(), signed, &signature) {
        return Err("its signature does not verify".to_owned());
    }
    Ok(Place {
        seq: read.seq,
        before: read.prev_hash,
        hash: Sha256Digest::of(line),
    })
}

/// What the signature at the end of a line is over.
fn signed_part(text: &str) -> Option<&str> {
    let rest = text.strip_suffix("\"}")?;
    let (signed, signature) = rest.split_at_checked(rest.len().checked_sub(SIGNATURE_LENGTH)?)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let signed = signed.strip_suffix(BEFORE_SIGNATURE)?;
    signature.bytes().all(plain).then_some(signed)
}

fn verifies(public: &PublicKey, signed: &str, signature: &[u8; 64]) -> bool {
    public.verifies(&message(signed), signature)
}

fn message(signed: &str) -> Vec<u8> {
    let mut message = Vec::with_capacity(DOMAIN.len() + signed.len());
    message.extend_from_slice(DOMAIN);
    message.extend_from_slice(signed.as_bytes());
    message
}

fn shortened(text: &str) -> String {
    text.chars().take(32).collect()
}
