//! The forms of a path that rules are matched against.
//!
//! Git stores bytes; file systems do not keep them apart: some ignore case, some normalise Unicode, some drop invisible
//! characters, trailing dots and spaces, some take `\` for a separator. A rule that only compared bytes could be walked around
//! with `SRC/Auth/x`, so every rule also sees the path as such a file system would.

use unicode_normalization::UnicodeNormalization as _;

/// Stands for one character outside ASCII, so that `?` and `[!a]` (which the matcher applies to bytes) meet it as one.
const ONE_CHARACTER: u8 = 0x7f;

/// The case-folded, composed form of a path without invisible characters; bytes that are not UTF-8 stay as they are.
pub fn folded(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes.to_ascii_lowercase();
    }
    let mut form = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        form.extend(folded_text(chunk.valid()).into_bytes());
        form.extend(chunk.invalid());
    }
    form
}

/// Upper case first, so that letters with several lower-case forms (`s` and `ſ`, `σ` and `ς`) and `ß` meet.
pub(super) fn folded_text(text: &str) -> String {
    text.chars()
        .filter(|character| !is_invisible(*character))
        .nfd()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfc()
        .collect()
}

/// Characters that show as nothing and that at least one file system drops from names, or that turn the direction of text.
pub(super) const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The folded path as a file system sees it that takes `\` for a separator and drops dots and spaces at the end of a name.
pub(super) fn portable(folded: &[u8]) -> Vec<u8> {
    let mut form = Vec::with_capacity(folded.len());
    for name in folded
        .split(|byte| matches!(byte, b'/' | b'\\'))
        .filter(|name| !name.is_empty())
    {
        let end = name.iter().rposition(|byte| !matches!(byte, b'.' | b' '));
        let kept = end.and_then(|end| name.get(..=end)).unwrap_or(name);
        if !form.is_empty() {
            form.push(b'/');
        }
        form.extend(kept);
    }
    form
}

/// The path with every character outside ASCII replaced by one byte.
fn thinned(form: &[u8]) -> Vec<u8> {
    let mut thin = Vec::with_capacity(form.len());
    for chunk in form.utf8_chunks() {
        thin.extend(chunk.valid().chars().map(|character| {
            u8::try_from(character).map_or(ONE_CHARACTER, |byte| {
                if byte.is_ascii() { byte } else { ONE_CHARACTER }
            })
        }));
        thin.extend(chunk.invalid().iter().map(|_| ONE_CHARACTER));
    }
    thin
}

/// The distinct forms of a path that folded globs are matched against; the raw bytes are matched separately.
pub(super) fn forms(path: &[u8]) -> Vec<Vec<u8>> {
    let folded = folded(path);
    let mut forms = vec![portable(&folded)];
    forms.push(folded);
    if !path.is_ascii() {
        forms.extend(forms.clone().iter().map(|form| thinned(form)));
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}
