//! What an authority signs: `TSTInfo` (RFC 3161, 2.4.2).

use super::TimestampError;
use super::algorithm::{SHA_256, dotted};
use super::der::{INTEGER, OCTET_STRING, OID, Reader, SEQUENCE, constructed, primitive};
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// What is said, before it is known by whom.
#[derive(Debug)]
pub(super) struct Info<'a> {
    pub(super) policy: String,
    pub(super) imprint: Sha256Digest,
    pub(super) at: Millis,
    pub(super) accuracy_millis: Option<u64>,
    pub(super) nonce: Option<&'a [u8]>,
}

impl<'a> Info<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, TimestampError> {
        let part = "what the authority signed";
        let mut all = Reader::new(bytes, part);
        let mut info = all.inside(SEQUENCE, part)?;
        all.end()?;
        if info.small()? != 1 {
            return Err(TimestampError::Malformed { part });
        }
        let policy = dotted(info.take(OID)?);
        let imprint = imprint(info.inside(SEQUENCE, "the hash in the timestamp")?)?;
        // The serial number.
        info.integer()?;
        let at = info.moment()?;
        let accuracy = info.optional(SEQUENCE)?;
        let accuracy_millis = accuracy.map(accuracy_of).transpose()?;
        // Whether its timestamps can be ordered: nothing here asks for it.
        info.flag()?;
        let nonce = info.next_is(INTEGER).then(|| info.integer()).transpose()?;
        // Its name, a hint: who it is says the certificate.
        info.optional(constructed(0))?;
        if let Some(extensions) = info.optional(constructed(1))? {
            no_critical(Reader::new(extensions, "the extensions of the timestamp"))?;
        }
        info.end()?;
        Ok(Self {
            policy,
            imprint,
            at,
            accuracy_millis,
            nonce,
        })
    }
}

fn imprint(mut imprint: Reader<'_>) -> Result<Sha256Digest, TimestampError> {
    let oid = imprint.algorithm("the hash in the timestamp")?;
    // Break it: drop this; a digest of another algorithm that happens to be as long is then taken for ours
    // (`anchor::attacks::weak_or_foreign_algorithms_are_refused`).
    if oid != SHA_256 {
        return Err(TimestampError::Algorithm {
            part: "the hash in the timestamp",
            found: dotted(oid),
        });
    }
    let hash = imprint.take(OCTET_STRING)?;
    imprint.end()?;
    let hash = hash.try_into().map_err(|_| TimestampError::Malformed {
        part: "the hash in the timestamp",
    })?;
    Ok(Sha256Digest::from_bytes(hash))
}

/// Seconds, milliseconds, microseconds; milliseconds, rounded up.
fn accuracy_of(accuracy: &[u8]) -> Result<u64, TimestampError> {
    let part = "the accuracy";
    let mut accuracy = Reader::new(accuracy, part);
    let seconds = accuracy.next_is(INTEGER).then(|| accuracy.small());
    let seconds = seconds.transpose()?.unwrap_or(0);
    let mut below_a_thousand = |number: u8| {
        let octets = accuracy.optional(primitive(number))?;
        let value = octets.map_or(Ok(0), |octets| accuracy.small_of(octets))?;
        if value < 1000 {
            Ok(u64::from(value))
        } else {
            Err(TimestampError::Malformed { part })
        }
    };
    let (millis, micros) = (below_a_thousand(0)?, below_a_thousand(1)?);
    accuracy.end()?;
    Ok(u64::from(seconds) * 1000 + millis + u64::from(micros > 0))
}

/// What is critical has to be understood, and no extension is.
fn no_critical(mut extensions: Reader<'_>) -> Result<(), TimestampError> {
    while !extensions.is_empty() {
        let mut extension = extensions.inside(SEQUENCE, "an extension of the timestamp")?;
        let oid = extension.take(OID)?;
        // Break it: pass over it (`anchor::attacks::what_has_to_be_understood_is_not_passed_over`).
        if extension.flag()? {
            return Err(TimestampError::Extension { oid: dotted(oid) });
        }
        extension.take(OCTET_STRING)?;
        extension.end()?;
    }
    Ok(())
}
