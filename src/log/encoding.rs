//! The spellings that every text format here shares. Each value has one spelling; all others are refused, because two
//! spellings of a signed or hashed thing are two names for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Padded standard base64 (RFC 4648, section 4) without white space and with zero bits in the last character's rest.
pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// The one spelling that [`from_base64`] takes.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A decimal number without sign, leading zeros or anything else.
pub(super) fn from_decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if digits && !leading_zero {
        text.parse().ok()
    } else {
        None
    }
}
