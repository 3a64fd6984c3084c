//! The limit: nothing but strict verification of signatures over the very messages of a log, on all cores.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::attest::Role;
use caretaker::attest::dsse::{IN_TOTO, pae};
use caretaker::log::{TILE_WIDTH, read_entries};
use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::Tried;
use crate::ledger::{key, payload_of};

/// How long each way is measured.
const WHILE: Duration = Duration::from_secs(5);

/// Verifications a second, on all cores together.
#[derive(Serialize, Deserialize)]
pub(crate) struct Limit {
    /// Cores.
    pub(crate) cores: usize,
    /// `verify_strict` of the library.
    pub(crate) strict: f64,
    /// `verify` of the library, which decompresses one point less. Alone it is not strict: it lets points of small order pass.
    pub(crate) plain: f64,
    /// Bytes of a stored envelope.
    pub(crate) envelope_bytes: usize,
    /// Bytes of the statement in it.
    pub(crate) payload_bytes: usize,
}

struct Signed {
    key: VerifyingKey,
    message: Vec<u8>,
    signature: Signature,
}

/// Measures over the first leaves of the log in `folder`.
pub(crate) fn measured(folder: &Path) -> Tried<Limit> {
    let mut signed = Vec::new();
    let (mut envelopes, mut payloads) = (0, 0);
    for tile in 0..4 {
        let bytes = std::fs::read(folder.join(format!("tile/entries/{tile:03}")))?;
        for entry in read_entries(&bytes, TILE_WIDTH)? {
            if let Some(one) = read(entry)? {
                envelopes += entry.len();
                payloads += payload_of(entry).len();
                signed.push(one);
            }
        }
    }
    let cores = std::thread::available_parallelism()?.get();
    let strict = |one: &Signed| one.key.verify_strict(&one.message, &one.signature).is_ok();
    let plain = |one: &Signed| one.key.verify(&one.message, &one.signature).is_ok();
    Ok(Limit {
        cores,
        strict: rate(cores, &signed, strict)?,
        plain: rate(cores, &signed, plain)?,
        envelope_bytes: envelopes / signed.len(),
        payload_bytes: payloads / signed.len(),
    })
}

/// A statement of the log, with the key that signed it.
fn read(entry: &[u8]) -> Tried<Option<Signed>> {
    let json: serde_json::Value = serde_json::from_slice(entry)?;
    if json["payloadType"] != IN_TOTO {
        return Ok(None);
    }
    let hint = json["signatures"][0]["keyid"].as_str().unwrap_or_default();
    let mut roles = Role::ALL.into_iter().map(|role| key(role).public());
    let public = roles.find(|public| public.keyid().as_str() == hint);
    let public = public.ok_or("a signature by nobody's key")?;
    let signature = json["signatures"][0]["sig"].as_str().unwrap_or_default();
    Ok(Some(Signed {
        key: VerifyingKey::from_bytes(public.as_bytes())?,
        message: pae(IN_TOTO, &payload_of(entry)),
        signature: Signature::from_slice(&STANDARD.decode(signature)?)?,
    }))
}

fn rate(cores: usize, signed: &[Signed], verifies: impl Fn(&Signed) -> bool + Sync) -> Tried<f64> {
    let begin = Instant::now();
    let counts = std::thread::scope(|scope| {
        let one = || {
            let mut count = 0_u32;
            while begin.elapsed() < WHILE {
                for one in signed {
                    count += u32::from(verifies(one));
                }
            }
            (f64::from(count), begin.elapsed().as_secs_f64())
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(one)).collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.collect::<Result<Vec<_>, _>>()
    });
    let counts = counts.map_err(|_| "a thread ended early")?;
    Ok(counts
        .into_iter()
        .map(|(count, seconds)| count / seconds)
        .sum())
}
