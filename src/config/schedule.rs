//! When CI runs are looked at: a cron expression with seconds, in UTC.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use cron::{Schedule, TimeUnitSpec as _};
use jiff::civil::Date;
use jiff::tz::Offset;
use serde::{Deserialize, Serialize, de};

use crate::clock::Millis;

/// Why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Not a cron expression with seconds.
    #[error(
        "this is not a schedule; write six fields, seconds first, as in \"*/30 * * * * *\" for every thirty seconds"
    )]
    Form,
    /// Such as the thirtieth of February.
    #[error("this schedule never comes; check its day and month")]
    Never,
    /// Its years lie in the past, or too far ahead.
    #[error(
        "this schedule does not come within eight years; check its year, or leave the year out"
    )]
    Past,
}

/// A schedule: seconds, minutes, hours, day of month, month, day of week (all must fit), and optionally the year; UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollSchedule {
    text: String,
    seconds: BTreeSet<u32>,
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    days: BTreeSet<u32>,
    months: BTreeSet<u32>,
    /// 1 is Sunday.
    weekdays: BTreeSet<u32>,
    /// `None` is every year.
    years: Option<BTreeSet<u32>>,
}

/// How many days ahead a next moment is looked for. Leap days are up to eight years apart.
const DAYS_AHEAD: usize = 8 * 366;

/// From where a schedule is tried when it is read, so that whether a text is a schedule does not depend on when that is:
/// 2024-01-01.
const TRIED_FROM: Millis = Millis(1_704_067_200_000);

impl PollSchedule {
    /// The first moment of the schedule strictly after `now`, if there is one within eight years.
    pub fn next_after(&self, now: Millis) -> Option<Millis> {
        let now = Offset::UTC.to_datetime(jiff::Timestamp::from_millisecond(now.0).ok()?);
        let mut day = now.date();
        let mut earliest = (
            number(now.hour()),
            number(now.minute()),
            number(now.second()) + 1,
        );
        for _ in 0..DAYS_AHEAD {
            if self.includes(day)
                && let Some((hour, minute, second)) = self.time_from(earliest)
            {
                let moment = day.at(small(hour)?, small(minute)?, small(second)?, 0);
                return Some(Millis(
                    Offset::UTC.to_timestamp(moment).ok()?.as_millisecond(),
                ));
            }
            day = day.tomorrow().ok()?;
            earliest = (0, 0, 0);
        }
        None
    }

    /// Whether it comes at all after `now`.
    ///
    /// # Errors
    /// [`ScheduleError::Past`].
    pub fn comes_after(&self, now: Millis) -> Result<(), ScheduleError> {
        let next = self.next_after(now);
        next.map(|_| ()).ok_or(ScheduleError::Past)
    }

    fn includes(&self, day: Date) -> bool {
        let year = u32::try_from(day.year()).unwrap_or(0);
        self.years
            .as_ref()
            .is_none_or(|years| years.contains(&year))
            && self.months.contains(&number(day.month()))
            && self.days.contains(&number(day.day()))
            && self
                .weekdays
                .contains(&number(day.weekday().to_sunday_one_offset()))
    }

    /// The first time of day not before the given one.
    fn time_from(&self, (hour, minute, second): (u32, u32, u32)) -> Option<(u32, u32, u32)> {
        let from = |set: &BTreeSet<u32>, least: u32| set.range(least..).next().copied();
        if self.hours.contains(&hour) {
            if self.minutes.contains(&minute)
                && let Some(found) = from(&self.seconds, second)
            {
                return Some((hour, minute, found));
            }
            if let Some(found) = from(&self.minutes, minute + 1) {
                return Some((hour, found, from(&self.seconds, 0)?));
            }
        }
        let found = from(&self.hours, hour + 1)?;
        Some((found, from(&self.minutes, 0)?, from(&self.seconds, 0)?))
    }
}

fn number(value: i8) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

fn small(value: u32) -> Option<i8> {
    i8::try_from(value).ok()
}

/// Every thirty seconds.
impl Default for PollSchedule {
    fn default() -> Self {
        Self {
            text: "*/30 * * * * *".to_owned(),
            seconds: BTreeSet::from([0, 30]),
            minutes: (0..=59).collect(),
            hours: (0..=23).collect(),
            days: (1..=31).collect(),
            months: (1..=12).collect(),
            weekdays: (1..=7).collect(),
            years: None,
        }
    }
}

impl FromStr for PollSchedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        if text.len() > 200 || !matches!(text.split_whitespace().count(), 6 | 7) {
            return Err(ScheduleError::Form);
        }
        let parsed = Schedule::from_str(text).map_err(|_| ScheduleError::Form)?;
        let years = parsed.years();
        let schedule = Self {
            text: text.to_owned(),
            seconds: parsed.seconds().iter().collect(),
            minutes: parsed.minutes().iter().collect(),
            hours: parsed.hours().iter().collect(),
            days: parsed.days_of_month().iter().collect(),
            months: parsed.months().iter().collect(),
            weekdays: parsed.days_of_week().iter().collect(),
            years: (!years.is_all()).then(|| years.iter().collect()),
        };
        if schedule.years.is_none() && schedule.next_after(TRIED_FROM).is_none() {
            return Err(ScheduleError::Never);
        }
        Ok(schedule)
    }
}

impl fmt::Display for PollSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for PollSchedule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PollSchedule {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
