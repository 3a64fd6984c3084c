//! When a certificate ends: the one field of it that is read. A reader of DER that goes only as far as that field; TLS itself
//! has judged the certificate before.

use jiff::civil::Date;
use jiff::tz::Offset;

use crate::clock::Millis;

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The version, `[0] EXPLICIT`; absent in certificates of version 1.
const VERSION: u8 = 0xa0;

/// The end of validity of a certificate in DER (RFC 5280, 4.1); none when it cannot be read.
pub fn valid_until(certificate: &[u8]) -> Option<Millis> {
    let (signed, _) = expected(SEQUENCE, certificate)?;
    let (body, _) = expected(SEQUENCE, signed)?;
    let mut rest = match element(body)? {
        (VERSION, _, rest) => rest,
        _ => body,
    };
    // Serial number, algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        rest = expected(tag, rest)?.1;
    }
    let (validity, _) = expected(SEQUENCE, rest)?;
    let (_, _, end) = element(validity)?;
    let (tag, text, _) = element(end)?;
    moment(tag, std::str::from_utf8(text).ok()?)
}

/// Tag, content and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let octets = usize::from(first & 0x7f);
        // More than four octets of length is no certificate; none at all is BER.
        let (length, rest) = rest.split_at_checked(octets)?;
        if !(1..=4).contains(&octets) {
            return None;
        }
        let length = length.iter().fold(0_usize, |sum, &octet| {
            sum.saturating_mul(256).saturating_add(usize::from(octet))
        });
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn expected(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match element(bytes)? {
        (found, content, rest) if found == tag => Some((content, rest)),
        _ => None,
    }
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, the two forms that certificates have.
fn moment(tag: u8, text: &str) -> Option<Millis> {
    let digits = text.strip_suffix('Z')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let (year, rest) = digits.split_at(2);
            let year: i16 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, rest) = digits.split_at(4);
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let two = |at: usize| rest.get(at..at + 2)?.parse::<i8>().ok();
    let date = Date::new(year, two(0)?, two(2)?).ok()?;
    let time = jiff::civil::Time::new(two(4)?, two(6)?, two(8)?, 0).ok()?;
    let moment = Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?;
    Some(Millis(moment.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::{GENERALIZED_TIME, Millis, UTC_TIME, element, moment, valid_until};

    #[test]
    fn both_forms_of_time_are_read_and_nothing_else_is() {
        let utc = moment(UTC_TIME, "270115080000Z");
        assert_eq!(utc, Some(Millis(1_800_000_000_000)));
        assert_eq!(moment(GENERALIZED_TIME, "20270115080000Z"), utc);
        assert_eq!(
            moment(UTC_TIME, "500101000000Z").map(|it| it.0 < 0),
            Some(true)
        );
        for text in [
            "",
            "Z",
            "2701150800Z",
            "271315080000Z",
            "270115080000+0000",
            "27011508000éZ",
            "-70115080000Z",
        ] {
            assert_eq!(moment(UTC_TIME, text), None, "{text}");
        }
        assert_eq!(moment(0x04, "270115080000Z"), None);
    }

    #[test]
    fn lengths_that_lie_are_no_elements() {
        assert_eq!(
            element(&[0x30, 2, 1, 2, 9]),
            Some((0x30, &[1, 2][..], &[9][..]))
        );
        assert_eq!(
            element(&[0x30, 0x81, 1, 7]),
            Some((0x30, &[7][..], &[][..]))
        );
        for lie in [
            &[][..],
            &[0x30],
            &[0x30, 5, 1],
            &[0x30, 0x80, 0, 0],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x30, 0x85, 0, 0, 0, 0, 1, 7],
            &[0x30, 0x88, 0, 0],
        ] {
            assert_eq!(element(lie), None, "{lie:?}");
            assert_eq!(valid_until(lie), None);
        }
    }
}
