//! The few text encodings that HTTP and GitHub's answers need.

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding and without line breaks (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for position in 0..4 {
            if position > chunk.len() {
                text.push('=');
            } else {
                let index = group >> (18 - 6 * position) & 63;
                text.push(char::from(BASE64[index as usize]));
            }
        }
    }
    text
}

/// Base64 in lines of 60 characters, each ended by a line feed: the form of GitHub's blobs.
pub(crate) fn base64_lines(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(45) {
        text.push_str(&base64(line));
        text.push('\n');
    }
    text
}

/// The bytes of a base64 text; `None` where a character, the length or the padding is wrong.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = BASE64.iter().position(|known| *known == digit)?;
        held = (held << 6 | u32::try_from(value).ok()?) & 0xfff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// Base64 with the alphabet of URLs and without padding (RFC 4648, section 5).
pub(crate) fn base64url(bytes: &[u8]) -> String {
    base64(bytes)
        .trim_end_matches('=')
        .replace('+', "-")
        .replace('/', "_")
}

/// The bytes of such a text.
pub(crate) fn from_base64url(text: &str) -> Option<Vec<u8>> {
    if text.contains(['+', '/', '=']) {
        return None;
    }
    let mut padded = text.replace('-', "+").replace('_', "/");
    while !padded.len().is_multiple_of(4) {
        padded.push('=');
    }
    from_base64(&padded)
}

/// Percent-decoded text; bytes that are not UTF-8 become U+FFFD, so that such a name matches nothing. In a query a plus
/// sign means a space.
pub(crate) fn percent_decoded(text: &str, plus_is_space: bool) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut position = 0;
    while let Some(byte) = bytes.get(position) {
        let hex = text
            .get(position + 1..position + 3)
            .filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
        match (
            byte,
            hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()),
        ) {
            (b'%', Some(value)) => {
                decoded.push(value);
                position += 2;
            }
            (b'+', _) if plus_is_space => decoded.push(b' '),
            _ => decoded.push(*byte),
        }
        position += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// A path made fit for a URL: everything but unreserved characters and slashes is percent-encoded.
pub(crate) fn percent_encoded_path(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push(char::from(b"0123456789ABCDEF"[usize::from(byte >> 4)]));
            text.push(char::from(b"0123456789ABCDEF"[usize::from(byte & 15)]));
        }
    }
    text
}

/// Text made fit for HTML content and quoted attributes.
pub(crate) fn html_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
