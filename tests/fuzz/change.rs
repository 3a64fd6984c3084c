//! Random changes that know what documents are made of: bytes, words, numbers, lines, brackets, lengths.

use std::ops::Range;

/// A seeded source of chance (SplitMix64): the same seed gives the same run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.number() % end).unwrap_or(0)
    }

    /// One of these; none of none.
    pub(crate) fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// A part of something of this length, more often a short one.
    fn part(&mut self, length: usize) -> Range<usize> {
        let start = self.below(length + 1);
        let most = if self.below(3) == 0 { length } else { 16 };
        let end = start + self.below(most + 1);
        start..end.min(length)
    }
}

/// No part is repeated beyond this, in bytes.
const LONGEST: usize = 400_000;
const BYTES: &[u8] = b"\0\x01\x1b\x7f\x80\xc0\xe2\xf0\xff\"'\\{}[]:,/.-+= \t\r\n0123456789aAfFxXuU";
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "00",
    "1",
    "-1",
    "1.0",
    "1e5",
    "255",
    "256",
    "257",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740991",
    "9007199254740992",
    "-9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999",
    "",
];
const WORDS: &[&str] = &[
    "null",
    "true",
    "false",
    "\"\"",
    "{}",
    "[]",
    "\\u0000",
    "\\ud800",
    "\\u0061",
    "\u{202e}",
    "\u{1b}[2J",
    "e\u{301}",
    "\u{2014} ",
    "../",
    "//",
    "sha256:",
    "SHA256:",
    "==",
    "\r\n",
    "\n\n",
    "&a ",
    "*a",
    "<<: ",
    "!!binary ",
    "---\n",
    "**",
    "{a,b}",
];

/// One of these documents with a few changes, at most so long.
pub(crate) fn changed(random: &mut Random, documents: &[Vec<u8>], longest: usize) -> Vec<u8> {
    let mut bytes = random.one_of(documents).cloned().unwrap_or_default();
    let other = random.one_of(documents).cloned().unwrap_or_default();
    for _ in 0..=random.below(4) {
        change(random, &mut bytes, &other);
        bytes.truncate(longest);
    }
    bytes
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    let length = bytes.len();
    let (part, place) = (random.part(length), random.below(length + 1));
    match random.below(17) {
        0 => {
            let (place, bit) = (random.below(length), random.below(8));
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << bit;
            }
        }
        1 => {
            let new = random.one_of(BYTES).copied().unwrap_or(0);
            if let Some(byte) = bytes.get_mut(place) {
                *byte = new;
            }
        }
        2 => put(
            bytes,
            place..place,
            &[random.one_of(BYTES).copied().unwrap_or(0)],
        ),
        3 => put(bytes, part, b""),
        4 => bytes.truncate(place),
        5 => {
            let copy = bytes.get(part).unwrap_or_default().to_vec();
            put(bytes, place..place, &copy);
        }
        6 => {
            let foreign = random.part(other.len());
            put(bytes, part, other.get(foreign).unwrap_or_default());
        }
        7 | 8 => {
            let found = runs(bytes, u8::is_ascii_digit);
            let number = random.one_of(NUMBERS).copied().unwrap_or_default();
            let run = random.one_of(&found).cloned().unwrap_or(part);
            put(bytes, run, number.as_bytes());
        }
        9 => {
            let word = random.one_of(WORDS).copied().unwrap_or_default();
            put(bytes, place..place, word.as_bytes());
        }
        10 => swap_words(random, bytes),
        11 | 12 => change_lines(random, bytes),
        13 => nest(random, bytes, part),
        14 => {
            let again = bytes.get(part.clone()).unwrap_or_default();
            let times = (1 << random.below(12)).min(1 + LONGEST / again.len().max(1));
            let again = again.repeat(times);
            put(bytes, part, &again);
        }
        15 => bytes.extend_from_slice(other),
        _ => {
            let shift = random.below(3);
            let field = place..(place + (1 << shift)).min(length);
            let value = random.number().to_le_bytes();
            let width = field.len();
            put(bytes, field, value.get(..width).unwrap_or_default());
        }
    }
}

fn put(bytes: &mut Vec<u8>, part: Range<usize>, new: &[u8]) {
    let length = bytes.len();
    let part = part.start.min(length)..part.end.min(length);
    drop(bytes.splice(part, new.iter().copied()));
}

/// Neighbouring bytes of a kind.
fn runs(bytes: &[u8], is: impl Fn(&u8) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (place, _) in bytes.iter().enumerate().filter(|(_, byte)| is(byte)) {
        match found.last_mut().filter(|last| last.end == place) {
            Some(last) => last.end = place + 1,
            None => found.push(place..place + 1),
        }
    }
    found
}

/// Puts one quoted word, or one word, in another's place.
fn swap_words(random: &mut Random, bytes: &mut Vec<u8>) {
    let found = runs(bytes, |byte| {
        byte.is_ascii_alphanumeric() || b"_-:/+=".contains(byte)
    });
    let (Some(from), Some(to)) = (
        random.one_of(&found).cloned(),
        random.one_of(&found).cloned(),
    ) else {
        return;
    };
    let word = bytes.get(from).unwrap_or_default().to_vec();
    put(bytes, to, &word);
}

fn change_lines(random: &mut Random, bytes: &mut Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let (one, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(4) {
        0 => drop(lines.remove(one)),
        1 => lines.swap(one, other),
        2 => {
            let copy = lines.get(one).cloned().unwrap_or_default();
            lines.insert(other, copy);
        }
        _ => {
            let copy = lines.get(one).cloned().unwrap_or_default();
            lines.extend(vec![copy; 1 << random.below(8)]);
        }
    }
    *bytes = lines.join(&b'\n');
}

/// Brackets around a part, few or very many.
fn nest(random: &mut Random, bytes: &mut Vec<u8>, part: Range<usize>) {
    let depth = 1 << random.below(15);
    let (open, close): (&[u8], &[u8]) = match random.below(3) {
        0 => (b"[", b"]"),
        1 => (b"{\"a\":", b"}"),
        _ => (b"- ", b""),
    };
    put(bytes, part.end..part.end, &close.repeat(depth));
    put(bytes, part.start..part.start, &open.repeat(depth));
}
