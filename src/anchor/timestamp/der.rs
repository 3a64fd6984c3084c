//! A reader of DER (ITU-T X.690), one element after another, without recursion: whoever reads says which element has to come.
//!
//! Only definite lengths in their shortest form are read, and tags of one octet, which is all that these formats have.

use super::TimestampError;
use crate::clock::Millis;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag `[number]`, primitive.
pub(super) const fn primitive(number: u8) -> u8 {
    0x80 | number
}

/// The tag `[number]`, constructed.
pub(super) const fn constructed(number: u8) -> u8 {
    0xa0 | number
}

/// One element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// With tag and length.
    pub(super) whole: &'a [u8],
}

/// What is still to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// What is being read, for errors.
    part: &'static str,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(rest: &'a [u8], part: &'static str) -> Self {
        Self { rest, part }
    }

    const fn malformed(&self) -> TimestampError {
        TimestampError::Malformed { part: self.part }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next element, whatever it is.
    pub(super) fn any(&mut self) -> Result<Element<'a>, TimestampError> {
        let (element, rest) = split(self.rest).ok_or_else(|| self.malformed())?;
        self.rest = rest;
        Ok(element)
    }

    /// The next element, which has this tag.
    pub(super) fn element(&mut self, tag: u8) -> Result<Element<'a>, TimestampError> {
        let next = self.any()?;
        if next.tag == tag {
            Ok(next)
        } else {
            Err(self.malformed())
        }
    }

    /// The content of the next element, which has this tag.
    pub(super) fn take(&mut self, tag: u8) -> Result<&'a [u8], TimestampError> {
        Ok(self.element(tag)?.content)
    }

    /// Whether the next element has this tag.
    pub(super) fn next_is(&self, tag: u8) -> bool {
        self.rest.first() == Some(&tag)
    }

    /// The content of the next element, if it has this tag; else it stays the next one.
    pub(super) fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, TimestampError> {
        if self.next_is(tag) {
            self.take(tag).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A reader of the next element's content.
    pub(super) fn inside(&mut self, tag: u8, part: &'static str) -> Result<Self, TimestampError> {
        Ok(Self::new(self.take(tag)?, part))
    }

    /// An integer in its shortest form: its octets.
    pub(super) fn integer(&mut self) -> Result<&'a [u8], TimestampError> {
        let octets = self.take(INTEGER)?;
        match octets {
            [] | [0, 0..=0x7f, ..] | [0xff, 0x80..=0xff, ..] => Err(self.malformed()),
            octets => Ok(octets),
        }
    }

    /// An integer from 0 to 2^31-1.
    pub(super) fn small(&mut self) -> Result<u32, TimestampError> {
        let octets = self.integer()?;
        self.small_of(octets)
    }

    /// The number that octets of an integer are, from 0 to 2^31-1.
    pub(super) fn small_of(&self, octets: &[u8]) -> Result<u32, TimestampError> {
        let negative = octets.first().is_none_or(|first| *first >= 0x80);
        if negative || octets.len() > 4 {
            return Err(self.malformed());
        }
        Ok(octets
            .iter()
            .fold(0, |number, octet| (number << 8) | u32::from(*octet)))
    }

    /// A Boolean whose default is `false`: there and `true`, or not there.
    pub(super) fn flag(&mut self) -> Result<bool, TimestampError> {
        match self.optional(BOOLEAN)? {
            None => Ok(false),
            Some([0xff]) => Ok(true),
            Some(_) => Err(self.malformed()),
        }
    }

    /// The octets of an object identifier behind an algorithm whose parameters are absent or `NULL`.
    pub(super) fn algorithm(&mut self, part: &'static str) -> Result<&'a [u8], TimestampError> {
        let mut algorithm = self.inside(SEQUENCE, part)?;
        let oid = algorithm.take(OID)?;
        match algorithm.optional(NULL)? {
            None | Some([]) => {}
            Some(_) => return Err(algorithm.malformed()),
        }
        algorithm.end()?;
        Ok(oid)
    }

    /// A moment, rounded up to a whole millisecond: `YYYYMMDDhhmmss`, perhaps a fraction without zeros at its end, `Z` (RFC
    /// 3161, 2.4.2).
    pub(super) fn moment(&mut self) -> Result<Millis, TimestampError> {
        let text = self.take(GENERALIZED_TIME)?;
        moment(text).ok_or_else(|| self.malformed())
    }

    /// There is nothing more.
    // Break it: answer yes always; whatever somebody hangs on to a token then travels with it
    // (`anchor::tokens::whatever_is_not_a_timestamp_is_refused_in_words`).
    pub(super) fn end(self) -> Result<(), TimestampError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed())
        }
    }
}

fn split(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    if tag & 0x1f == 0x1f {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        // No length at all is BER; more than three octets is longer than anything that is read here.
        let octets = usize::from(first & 0x7f);
        let (length, rest) = rest.split_at_checked(octets)?;
        if !(1..=3).contains(&octets) {
            return None;
        }
        let length = length
            .iter()
            .fold(0_usize, |sum, octet| (sum << 8) | usize::from(*octet));
        let shortest = match octets {
            1 => 0x80,
            2 => 0x100,
            _ => 0x1_0000,
        };
        if length < shortest {
            return None;
        }
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    let whole = bytes.get(..bytes.len() - rest.len())?;
    let element = Element {
        tag,
        content,
        whole,
    };
    Some((element, rest))
}

fn moment(text: &[u8]) -> Option<Millis> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (whole, fraction) = match text.split_once('.') {
        None => (text, ""),
        Some((_, fraction)) if fraction.is_empty() || fraction.ends_with('0') => return None,
        Some(parts) => parts,
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() != 14 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let two = |at: usize| whole.get(at..at + 2)?.parse::<i8>().ok();
    let date = jiff::civil::Date::new(whole.get(..4)?.parse().ok()?, two(4)?, two(6)?).ok()?;
    let time = jiff::civil::Time::new(two(8)?, two(10)?, two(12)?, 0).ok()?;
    let moment = jiff::tz::Offset::UTC.to_timestamp(date.to_datetime(time));
    let mut millis: i64 = 0;
    for place in 0..3 {
        let digit = fraction.as_bytes().get(place).map_or(0, |byte| byte - b'0');
        millis = millis * 10 + i64::from(digit);
    }
    // What is said to have existed before a moment did so before any later one.
    if fraction.len() > 3 {
        millis += 1;
    }
    Some(Millis(moment.ok()?.as_millisecond()).plus_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::{Millis, Reader, moment, split};

    #[test]
    fn moments_have_one_spelling_and_are_rounded_up() {
        let second = Some(Millis(1_800_000_000_000));
        assert_eq!(moment(b"20270115080000Z"), second);
        assert_eq!(
            moment(b"20270115080000.25Z"),
            Some(Millis(1_800_000_000_250))
        );
        assert_eq!(
            moment(b"20270115080000.2501Z"),
            Some(Millis(1_800_000_000_251))
        );
        for wrong in [
            "20270115080000",
            "20270115080000.Z",
            "20270115080000.0Z",
            "20270115080000,5Z",
            "20270115080000+0000",
            "202701150800Z",
            "20271315080000Z",
            "270115080000Z",
            "",
        ] {
            assert_eq!(moment(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn lengths_have_one_spelling() {
        let long = [&[0x04, 0x81, 0x80][..], &[0; 128]].concat();
        assert_eq!(split(&long).unwrap().0.content, &[0; 128]);
        let wrong: &[&[u8]] = &[
            &[],
            &[0x04],
            &[0x04, 1],
            &[0x04, 0x80, 0, 0],
            &[0x04, 0x81, 1, 0],
            &[0x04, 0x84, 0, 0, 0, 1, 0],
            &[0x1f, 1, 0],
        ];
        for wrong in wrong {
            assert!(split(wrong).is_none(), "{wrong:?}");
        }
        for wrong in [&[2, 0][..], &[2, 2, 0, 1], &[2, 2, 0xff, 0x80]] {
            assert!(Reader::new(wrong, "it").integer().is_err(), "{wrong:?}");
        }
        assert_eq!(Reader::new(&[2, 2, 1, 0], "it").small().unwrap(), 256);
        assert!(Reader::new(&[2, 1, 0x80], "it").small().is_err());
    }
}
