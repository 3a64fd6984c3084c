//! Encoding and decoding of single components.

/// Why a text could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// A percent sign at this byte is not followed by two hexadecimal digits.
    BadEscape(usize),
    /// The decoded bytes are not UTF-8.
    NotUtf8,
}

/// Encodes every byte that is not unreserved.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Decodes every escape; upper-case and lower-case digits mean the same.
pub fn decode(text: &str) -> Result<String, DecodeError> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while position < bytes.len() {
        if bytes[position] != b'%' {
            decoded.push(bytes[position]);
            position += 1;
            continue;
        }
        let high = bytes.get(position + 1).copied().and_then(hex_value);
        let low = bytes.get(position + 2).copied().and_then(hex_value);
        let (Some(high), Some(low)) = (high, low) else {
            return Err(DecodeError::BadEscape(position));
        };
        decoded.push(high << 4 | low);
        position += 3;
    }
    String::from_utf8(decoded).map_err(|_| DecodeError::NotUtf8)
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        b'a'..=b'e' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreserved_characters_stay() {
        assert_eq!(encode("a-Z_0.9~"), "a-Z_0.9~");
    }

    #[test]
    fn everything_else_is_escaped() {
        assert_eq!(encode("a b/é"), "a%20b%2F%C3%A9");
    }

    #[test]
    fn upper_case_digits_decode() {
        assert_eq!(decode("a%20b%2F%C3%A9"), Ok("a b/é".to_string()));
    }

    #[test]
    fn lower_case_digits_decode() {
        assert_eq!(decode("a%20b%2fc"), Ok("a b/c".to_string()));
    }

    #[test]
    fn a_lone_percent_sign_is_refused() {
        assert_eq!(decode("100%"), Err(DecodeError::BadEscape(3)));
    }
}
