//! When a workflow's file says that it runs: `on.schedule` with POSIX cron expressions, in UTC.
//!
//! Source: the workflow syntax of GitHub Actions (`on.schedule`) and crontab(5). Five fields; when both the day of the month and
//! the day of the week are restricted, either one suffices.

use serde_json::Value;

use crate::clock::Millis;
use crate::config::{PollSchedule, yaml_value};

/// How many schedules of one file are read.
const SCHEDULES: usize = 50;

/// The cron expressions of a workflow's file; none when it has no schedule or cannot be read.
pub(super) fn schedules(file: &[u8]) -> Vec<String> {
    let Some(document) = yaml_value(file) else {
        return Vec::new();
    };
    let schedule = document.get("on").and_then(|on| on.get("schedule"));
    let list = schedule.and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|entry| entry.get("cron")?.as_str())
        .filter(|cron| cron.len() <= 100 && next_after(cron, Millis(0)).is_some())
        .take(SCHEDULES)
        .map(str::to_owned)
        .collect()
}

/// The first moment after `after` that a cron expression names; none for one that is none or never comes.
pub(super) fn next_after(cron: &str, after: Millis) -> Option<Millis> {
    let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
    let [minute, hour, day, month, weekday] = *fields.as_slice() else {
        return None;
    };
    let weekday = weekdays(weekday)?;
    let next = |day: &str, weekday: &str| {
        let schedule: PollSchedule = format!("0 {minute} {hour} {day} {month} {weekday}")
            .parse()
            .ok()?;
        schedule.next_after(after)
    };
    if day.starts_with('*') || weekday == "*" {
        return next(day, &weekday);
    }
    let either = [next(day, "*"), next("*", &weekday)];
    either.into_iter().flatten().min()
}

/// POSIX counts days of the week from Sunday, 0 (and 7); here they are named, since others count otherwise.
fn weekdays(field: &str) -> Option<String> {
    const NAMES: [&str; 8] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];
    if field == "*" {
        return Some("*".to_owned());
    }
    let named = |text: &str| {
        if text
            .chars()
            .all(|character| character.is_ascii_alphabetic())
        {
            return Some(text.to_ascii_uppercase());
        }
        let number: usize = text.parse().ok()?;
        NAMES.get(number).map(|name| (*name).to_owned())
    };
    let number_of = |name: &str| NAMES.iter().position(|known| *known == name);
    let mut days: Vec<&str> = Vec::new();
    for part in field.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse::<usize>().ok().filter(|step| *step > 0)?),
            None => (part, 1),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number_of(&named(first)?)?, {
                let last_name = named(last)?;
                // Sunday at the end of a range is day 7.
                if last_name == "SUN" {
                    7
                } else {
                    number_of(&last_name)?
                }
            }),
            None if range == "*" => (0, 6),
            None => {
                let only = number_of(&named(range)?)?;
                (only, if step > 1 { 6 } else { only })
            }
        };
        days.extend(
            (first..=last)
                .step_by(step)
                .filter_map(|day| NAMES.get(day).copied()),
        );
    }
    (!days.is_empty()).then(|| days.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Millis {
        let timestamp: jiff::Timestamp = text.parse().unwrap();
        Millis(timestamp.as_millisecond())
    }

    #[test]
    fn posix_expressions_name_their_next_moment() {
        // 2026-11-30 is a Monday.
        let now = moment("2026-11-30T12:00:00Z");
        let cases = [
            ("*/15 * * * *", "2026-11-30T12:15:00Z"),
            ("30 5 * * *", "2026-12-01T05:30:00Z"),
            ("0 0 * * 0", "2026-12-06T00:00:00Z"),
            ("0 0 * * 7", "2026-12-06T00:00:00Z"),
            ("0 0 * * sun", "2026-12-06T00:00:00Z"),
            ("0 0 * * 1-5", "2026-12-01T00:00:00Z"),
            ("0 0 * * 5-7", "2026-12-04T00:00:00Z"),
            ("0 0 * * 2/2", "2026-12-01T00:00:00Z"),
            ("0 0 13 * 5", "2026-12-04T00:00:00Z"),
            ("0 0 2 * 5", "2026-12-02T00:00:00Z"),
            ("0 12 29 2 *", "2028-02-29T12:00:00Z"),
        ];
        for (cron, expected) in cases {
            assert_eq!(next_after(cron, now), Some(moment(expected)), "{cron}");
        }
        for nonsense in [
            "",
            "* * * *",
            "* * * * * *",
            "61 * * * *",
            "0 0 * * 8",
            "0 0 30 2 *",
            "@daily",
            "a b c d e",
        ] {
            assert_eq!(next_after(nonsense, now), None, "{nonsense}");
        }
    }

    #[test]
    fn schedules_are_found_in_files_and_nowhere_else() {
        let file = b"name: x\non:\n  push:\n  schedule:\n    - cron: '0 5 * * *'\n    - cron: 'nonsense'\n    - {}\n";
        assert_eq!(schedules(file), ["0 5 * * *"]);
        for file in [
            &b"on: push\n"[..],
            b"on: [push]\n",
            b"[",
            b"\xff\xfe",
            b"",
            b"on: {schedule: 5}\n",
            b"on: {schedule: [1]}\n",
        ] {
            assert!(schedules(file).is_empty());
        }
    }
}
