//! Moments as people read them at a glance.

use crate::clock::Millis;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A length of time in its largest whole unit: `12 s`, `3 min`, `2 h`, `40 d`.
pub(super) fn length(millis: i64) -> String {
    let millis = millis.max(0);
    let (unit, word) = if millis < MINUTE {
        (SECOND, "s")
    } else if millis < HOUR {
        (MINUTE, "min")
    } else if millis < DAY {
        (HOUR, "h")
    } else {
        (DAY, "d")
    };
    format!("{} {word}", millis / unit)
}

/// `12 s ago`; the clocks of two machines may disagree by a little, so that what comes is `now`.
pub(super) fn ago(at: Millis, now: Millis) -> String {
    match now.0.saturating_sub(at.0) {
        ..SECOND => "now".to_owned(),
        millis => format!("{} ago", length(millis)),
    }
}

#[cfg(test)]
mod tests {
    use super::{ago, length};
    use crate::clock::Millis;

    #[test]
    fn lengths_are_told_in_their_largest_whole_unit() {
        let told: Vec<String> = [
            0,
            999,
            12_000,
            59_999,
            60_000,
            7_200_000,
            86_400_000 * 400,
            -5,
        ]
        .into_iter()
        .map(length)
        .collect();
        assert_eq!(
            told,
            ["0 s", "0 s", "12 s", "59 s", "1 min", "2 h", "400 d", "0 s"]
        );
        assert_eq!(ago(Millis(0), Millis(12_500)), "12 s ago");
        assert_eq!(ago(Millis(9_000), Millis(0)), "now");
    }
}
