//! The answer of an authority: `TimeStampResp` (RFC 3161, 2.4.2), a status and perhaps a token.

use super::der::{BIT_STRING, Reader, SEQUENCE, UTF8_STRING};
use super::{MAX_RESPONSE, TimestampError};
use crate::attest::text::shown;

/// Why an authority gives no timestamp, where it says so (RFC 3161, PKIFailureInfo): number of the bit, words, and whether it
/// may be otherwise later.
const FAILURES: &[(usize, &str, bool)] = &[
    (0, "it does not know the hash algorithm", false),
    (2, "it does not serve such requests", false),
    (5, "it cannot read the request", false),
    (14, "its source of time is not available", true),
    (15, "it does not know the policy", false),
    (16, "it does not know the extension", false),
    (17, "it cannot give what was asked beside the time", false),
    (25, "its system failed", true),
];

/// The token of an answer that grants one.
///
/// # Errors
/// Too long, not of that form, or no timestamp was given.
pub(super) fn token(response: &[u8]) -> Result<&[u8], TimestampError> {
    if response.len() > MAX_RESPONSE {
        return Err(TimestampError::TooLong {
            length: response.len(),
        });
    }
    let mut all = Reader::new(response, "the answer");
    let mut answer = all.inside(SEQUENCE, "the answer")?;
    all.end()?;
    let mut status = answer.inside(SEQUENCE, "the status")?;
    let number = status.small()?;
    // Break it: pass over it (`anchor::tokens::a_refusal_is_told_in_the_authoritys_words`).
    if number > 1 {
        return Err(rejected(number, status)?);
    }
    let token = answer.element(SEQUENCE)?.whole;
    answer.end()?;
    Ok(token)
}

fn rejected(status: u32, mut rest: Reader<'_>) -> Result<TimestampError, TimestampError> {
    let mut words = Vec::new();
    if let Some(texts) = rest.optional(SEQUENCE)? {
        let mut texts = Reader::new(texts, "the status");
        while !texts.is_empty() {
            words.push(String::from_utf8_lossy(texts.take(UTF8_STRING)?).into_owned());
        }
    }
    let mut passing = status == 3;
    if let Some([_, bits @ ..]) = rest.optional(BIT_STRING)? {
        let said = |bit: usize| {
            let octet = bits.get(bit / 8).copied().unwrap_or_default();
            octet & (0x80 >> (bit % 8)) != 0
        };
        for (_, meaning, passes) in FAILURES.iter().filter(|(bit, _, _)| said(*bit)) {
            words.push((*meaning).to_owned());
            passing |= *passes;
        }
    }
    Ok(TimestampError::Rejected {
        status,
        words: shown(&words.join("; ")),
        passing,
    })
}
