//! Time as the forge tells it: whole seconds since 1970, given by a closure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives the present time in whole seconds since 1970-01-01 UTC.
pub type Now = Arc<dyn Fn() -> u64 + Send + Sync>;

/// 2026-01-05 08:00:00 UTC, where the forge's own time starts and the date of every first commit.
pub(crate) const START: u64 = 1_767_600_000;

/// A time that moves on one second whenever somebody looks: everything that happens has a time of its own, and the
/// same acts give the same times.
pub(crate) fn counting() -> Now {
    let seconds = AtomicU64::new(START);
    Arc::new(move || seconds.fetch_add(1, Ordering::Relaxed))
}

/// RFC 3339 in UTC with whole seconds, as GitHub writes times.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a count of days since 1970-01-01 (proleptic Gregorian; years begin in March inside, so that
/// the leap day comes last).
fn civil_date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
