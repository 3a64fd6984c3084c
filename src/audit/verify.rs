//! The check of a ledger as it is stored.

use std::collections::BTreeMap;

use super::evidence;
use super::fit::misfit;
use super::report::{Report, Rule};
use super::{LedgerRow, LogPlace, StoredLedger};
use crate::attest::chain::Verdict;
use crate::attest::{Event, TrustHistory, verify_chain};
use crate::incident::Stage;
use crate::log::TreeHash;

/// Verifies one incident's ledger as it is stored: the chain of its envelopes, every column of every row, the record of
/// its end, that the log has these events and no other of the incident, that the incident's stage rests on what is signed, and that the evidence that events name is there. Keeps
/// nothing, caches nothing, never panics.
pub fn verify(trust: &TrustHistory, ledger: &StoredLedger) -> Report {
    let mut report = Report::from(verify_chain(
        trust,
        &ledger.expectation(),
        ledger.envelopes(),
    ));
    for (position, row) in ledger.rows.iter().enumerate() {
        check_row(&mut report, ledger, position, row);
    }
    check_record(&mut report, ledger);
    check_places(&mut report, ledger);
    check_drafts(&mut report, ledger);
    check_stage(&mut report, ledger);
    evidence::check(&mut report, trust, &ledger.evidence);
    report
}

/// Re-derives the row. Without this, columns that people search and pages show could say what nobody signed.
fn check_row(report: &mut Report, ledger: &StoredLedger, position: usize, row: &LedgerRow) {
    match LedgerRow::derive(&row.envelope) {
        Ok(derived) => {
            for difference in derived.differences(row) {
                report.fail_row(
                    position,
                    Rule::Column,
                    difference.expected,
                    difference.found,
                );
            }
        }
        // The chain has refused such an envelope by a rule of its own; what can be known of the columns is still checked.
        Err(error) => {
            let sound = report
                .events
                .get(position)
                .is_none_or(|event| event.verdict == Verdict::Valid);
            if sound {
                let expected = "an envelope that makes a row".to_owned();
                report.fail_row(position, Rule::Column, expected, error.to_string());
            }
            let placed = LedgerRow {
                incident: ledger.incident.to_string(),
                seq: i64::try_from(position).unwrap_or(i64::MAX),
                ..row.clone()
            };
            for difference in placed.differences(row) {
                report.fail_row(
                    position,
                    Rule::Column,
                    difference.expected,
                    difference.found,
                );
            }
        }
    }
}

/// Count and head stand and fall together. That they are the rows' the chain's rule `head` says when there is a head.
fn check_record(report: &mut Report, ledger: &StoredLedger) {
    let (rows, recorded) = (ledger.rows.len() as u64, ledger.chain.next_seq);
    if (recorded == 0) != ledger.chain.head.is_none() {
        let head = if ledger.chain.head.is_some() {
            "a head"
        } else {
            "no head"
        };
        report.fail_whole(
            Verdict::Invalid,
            Rule::Record,
            "a head exactly when something is recorded as appended".to_owned(),
            format!("{recorded} appended and {head}"),
        );
    }
    if ledger.chain.head.is_none() && rows != recorded {
        report.fail_whole(
            Verdict::Invalid,
            Rule::Record,
            format!("{recorded} rows"),
            format!("{rows} rows"),
        );
    }
}

/// The log has a leaf for each row, with its bytes, and none for a row that is not there.
fn check_places(report: &mut Report, ledger: &StoredLedger) {
    let mut places: BTreeMap<i64, &LogPlace> = BTreeMap::new();
    let mut gone: Option<&LogPlace> = None;
    for place in &ledger.places {
        if let Some(twice) = places.insert(place.seq, place) {
            gone.get_or_insert(twice);
        }
    }
    for (position, row) in ledger.rows.iter().enumerate() {
        let Some(place) = places.remove(&row.seq) else {
            let expected = "a leaf of the log with this event".to_owned();
            let verdict = Verdict::CannotVerify;
            report.fail_event(position, verdict, Rule::Log, expected, "none".to_owned());
            continue;
        };
        let hash = TreeHash::of_leaf(&row.envelope);
        if place.hash.as_deref() != Some(hash.as_bytes()) {
            let expected = format!("the event that is leaf {} of the log", place.position);
            report.fail_row(position, Rule::Log, expected, "another one".to_owned());
        }
    }
    // Break it: leave this out; rows that were cut off the end together with everything that counts them are not missed
    // (`audit::rows::events_that_the_log_has_and_the_ledger_has_not_show`).
    if let Some(place) = places.into_values().next().or(gone) {
        let expected = format!(
            "as many events as the log has of the incident, {}",
            ledger.places.len()
        );
        let LogPlace { seq, position, .. } = place;
        let found = format!(
            "{} rows; event {seq}, leaf {position} of the log, is gone",
            ledger.rows.len()
        );
        report.fail_whole(Verdict::Invalid, Rule::Log, expected, found);
    }
}

/// While work goes on, a draft may wait for its signature.
fn check_drafts(report: &mut Report, ledger: &StoredLedger) {
    let (appended, drafted) = (ledger.chain.next_seq, ledger.drafted);
    if appended > drafted {
        report.fail_whole(
            Verdict::Invalid,
            Rule::Drafts,
            format!("at most the {drafted} events that were drafted"),
            format!("{appended} signed"),
        );
    } else if appended < drafted && ledger.stage.is_final() {
        // An incident is resolved only once everything is signed; others end first and are signed then.
        // After a merge only gaps are drafted: they wait for their signatures like what others end with.
        let merged = report
            .events
            .iter()
            .any(|event| matches!(&event.event, Some(Event::Execution(one)) if one.by_us));
        let verdict = if ledger.stage == Stage::Resolved && !merged {
            Verdict::Invalid
        } else {
            Verdict::CannotVerify
        };
        report.fail_whole(
            verdict,
            Rule::Drafts,
            format!("{drafted} signed events, as many as were drafted"),
            format!("{appended} signed"),
        );
    }
}

/// Says nothing about events that are not authentic: what stands in them is nobody's word.
fn check_stage(report: &mut Report, ledger: &StoredLedger) {
    let events: Option<Vec<_>> = report
        .events
        .iter()
        .map(|event| Some((event.digest?, event.event.clone()?)))
        .collect();
    let Some(events) = events else { return };
    let complete = ledger.chain.next_seq == ledger.drafted;
    if let Some(expected) = misfit(ledger.stage, &events, complete) {
        let found = events.last().map_or_else(
            || "no events".to_owned(),
            |(_, event): &(_, Event)| {
                format!(
                    "{} events, the last one: {}",
                    events.len(),
                    event.predicate_type()
                )
            },
        );
        let expected = format!("stage {}: {expected}", ledger.stage);
        report.fail_whole(Verdict::Invalid, Rule::Stage, expected, found);
    }
}
