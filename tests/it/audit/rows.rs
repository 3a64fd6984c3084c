//! Rows of the table, and the record of where they end.

use caretaker::attest::chain::{Rule as ChainRule, Verdict};
use caretaker::attest::{Role, keys::SecretKey};
use caretaker::audit::{LedgerRow, Rule, StoredLedger};
use caretaker::change::Sha256Digest;
use caretaker::id::IncidentId;
use caretaker::incident::Stage;
use proptest::prelude::*;

use super::super::attest::ledger::{Ledger, NOW, forge, payload_of, seed};
use super::{assert_failed, assert_valid, checked, resolved, stored};

/// The columns, `envelope` among them.
const COLUMNS: usize = 10;

/// Replaces one character or byte of a column (`at` wraps around), or adds to its number; false where that changes
/// nothing.
fn bend(row: &mut LedgerRow, column: usize, at: usize, put: u8) -> bool {
    let text = match column {
        0 => &mut row.incident,
        1 => {
            row.seq = row.seq.wrapping_add(i64::from(put) + 1);
            return true;
        }
        2 => {
            let at = at % row.envelope.len();
            let differs = row.envelope[at] != put;
            row.envelope[at] = put;
            return differs;
        }
        3 => &mut row.kind,
        4 => &mut row.role,
        5 => &mut row.keyid,
        6 => &mut row.event_id,
        7 => {
            if row.prev.is_none() {
                row.prev = Some(String::new());
                return true;
            }
            row.prev.as_mut().unwrap()
        }
        8 => &mut row.pae,
        _ => {
            row.occurred_at = row.occurred_at.wrapping_sub(i64::from(put) + 1);
            return true;
        }
    };
    let mut characters: Vec<char> = text.chars().collect();
    let at = at % characters.len();
    let differs = characters[at] != char::from(put);
    characters[at] = char::from(put);
    *text = characters.into_iter().collect();
    differs
}

#[test]
fn an_untouched_ledger_is_valid() {
    let (ledger, stored) = resolved();
    assert_valid(&ledger, &stored);
}

#[test]
fn a_row_says_what_its_envelope_says() {
    let (ledger, stored) = resolved();
    let row = &stored.rows[2];
    assert_eq!(row.incident, ledger.incident.as_str());
    assert_eq!((row.seq, row.occurred_at), (2, NOW.0));
    assert_eq!(
        (row.kind.as_str(), row.role.as_str()),
        ("approval", "approver")
    );
    let approver = SecretKey::from_seed(&seed(Role::Approver));
    assert_eq!(row.keyid, approver.public().keyid().to_string());
    assert_eq!(row.prev.as_ref(), Some(&stored.rows[1].pae));
    assert_eq!(row.pae, ledger.approval.unwrap().sha256.to_string());
    assert_eq!(stored.rows[0].prev, None);
}

#[test]
fn what_is_no_event_makes_no_row() {
    let deep = vec![b'['; 70_000];
    for bytes in [b"".as_slice(), b"{}", b"\xff\xfe", &deep] {
        assert!(LedgerRow::derive(bytes).is_err());
    }
    let strange = forge("text/plain", b"hello", &seed(Role::Proposer));
    assert!(LedgerRow::derive(&strange).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // Break: leave a column out of `LedgerRow::columns`, or drop the loop over `check_row` in `verify`.
    #[test]
    fn any_edit_of_any_column_of_any_row_shows_at_that_row(row in 0_usize..4, column in 0..COLUMNS, at in any::<usize>(), put in any::<u8>()) {
        let (ledger, mut stored) = resolved();
        prop_assume!(bend(&mut stored.rows[row], column, at, put));
        let report = checked(&ledger, &stored);
        prop_assert_eq!(report.verdict, Verdict::Invalid);
        prop_assert!(report.failures.iter().any(|failure| failure.seq == row as u64));
        prop_assert_eq!(report.events[row].verdict, Verdict::Invalid);
        prop_assert!(report.events[row].reason.is_some());
        prop_assert!(report.events[..row].iter().all(|event| event.verdict == Verdict::Valid));
    }

    #[test]
    fn no_bytes_make_verification_panic_or_valid(envelopes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4), drafted in any::<u64>(), next_seq in any::<u64>()) {
        let (ledger, mut stored) = resolved();
        let row = stored.rows[0].clone();
        stored.rows = envelopes.into_iter().map(|envelope| LedgerRow { envelope, ..row.clone() }).collect();
        (stored.drafted, stored.chain.next_seq) = (drafted, next_seq);
        prop_assert_ne!(checked(&ledger, &stored).verdict, Verdict::Valid);
    }
}

/// Every column once, in the middle, as somebody with an SQL prompt would.
#[test]
fn no_column_counts_for_nothing() {
    for row in 0..4 {
        for column in 0..COLUMNS {
            let (ledger, mut stored) = resolved();
            // In the middle of an envelope is base64, so that what is read is another payload.
            let at = if column == 2 {
                stored.rows[row].envelope.len() / 2
            } else {
                3
            };
            assert!(bend(&mut stored.rows[row], column, at, b'~'));
            let report = checked(&ledger, &stored);
            assert_eq!(
                report.verdict,
                Verdict::Invalid,
                "row {row} column {column}"
            );
        }
    }
}

#[test]
fn a_column_that_is_null_or_filled_against_its_envelope_shows() {
    let (ledger, mut stored) = resolved();
    stored.rows[2].prev = None;
    let words = assert_failed(&ledger, &stored, Verdict::Invalid, (2, Rule::Column));
    assert!(words.ends_with("found no prev"), "{words}");
}

#[test]
fn foreign_text_in_a_column_cannot_move_a_cursor() {
    let (ledger, mut stored) = resolved();
    stored.rows[1].kind = format!("\u{1b}[2J\u{202e}{}", "x".repeat(10_000_000));
    let words = assert_failed(&ledger, &stored, Verdict::Invalid, (1, Rule::Column));
    assert!(
        !words.contains(['\u{1b}', '\u{202e}']) && words.len() < 1_000,
        "{words}"
    );
}

#[test]
fn any_deleted_row_shows() {
    for row in 0..4 {
        let (ledger, mut stored) = resolved();
        stored.rows.remove(row);
        let report = checked(&ledger, &stored);
        assert_eq!(report.verdict, Verdict::Invalid, "row {row}");
        // Break: leave `head` out of `StoredLedger::expectation`; the last row can then be deleted.
        let head = Rule::Chain(ChainRule::Head);
        assert!(
            report
                .failures
                .iter()
                .any(|failure| (failure.seq, failure.rule) == (3, head))
        );
    }
}

#[test]
fn all_rows_deleted_are_missed() {
    let (ledger, mut stored) = resolved();
    stored.rows.clear();
    assert_failed(
        &ledger,
        &stored,
        Verdict::Invalid,
        (0, Rule::Chain(ChainRule::Head)),
    );
}

/// Whoever can change the record of the end too is still held by what was drafted and by the stage.
#[test]
fn an_end_cut_off_together_with_its_record_shows() {
    let (ledger, mut stored) = resolved();
    stored.rows.pop();
    stored.chain.next_seq = 3;
    stored.chain.head = stored.rows[2].pae.parse().ok();
    assert_failed(&ledger, &stored, Verdict::Invalid, (3, Rule::Drafts));
    // Break: drop `check_stage` in `verify`.
    stored.drafted = 3;
    assert_failed(&ledger, &stored, Verdict::Invalid, (3, Rule::Stage));
}

// The line to break is named in `audit::verify`.
#[test]
fn events_that_the_log_has_and_the_ledger_has_not_show() {
    let (mut ledger, _) = resolved();
    ledger.admit_gap();
    let whole = stored(&ledger, Stage::Resolved);
    let mut cut = whole.clone();
    cut.rows.pop();
    cut.chain.next_seq = 4;
    cut.chain.head = cut.rows[3].pae.parse().ok();
    cut.drafted = 4;
    let words = assert_failed(&ledger, &cut, Verdict::Invalid, (4, Rule::Log));
    assert!(
        words.contains("event 4, leaf 104 of the log, is gone"),
        "{words}"
    );
    assert_eq!(
        checked(&ledger, &cut).failures.len(),
        1,
        "nothing else tells"
    );
    cut.places.pop();
    assert_valid(&ledger, &cut);
    // One event cannot stand for another.
    let mut twice = whole.clone();
    twice.places.push(whole.places[4].clone());
    assert_failed(&ledger, &twice, Verdict::Invalid, (5, Rule::Log));
    let mut swapped = whole.clone();
    swapped.places[1].hash.clone_from(&whole.places[2].hash);
    assert_failed(&ledger, &swapped, Verdict::Invalid, (1, Rule::Log));
    let mut unlogged = whole;
    unlogged.places.remove(2);
    assert_failed(&ledger, &unlogged, Verdict::CannotVerify, (2, Rule::Log));
}

#[test]
fn swapped_or_repeated_rows_show() {
    for (a, b) in [(0, 1), (1, 2), (2, 3), (0, 3)] {
        let (ledger, mut stored) = resolved();
        stored.rows.swap(a, b);
        let report = checked(&ledger, &stored);
        assert_eq!(report.verdict, Verdict::Invalid, "{a} and {b}");
        assert_ne!(report.events[a].verdict, Verdict::Valid);
    }
    let (ledger, mut stored) = resolved();
    stored.rows.insert(2, stored.rows[1].clone());
    assert_failed(
        &ledger,
        &stored,
        Verdict::Invalid,
        (2, Rule::Chain(ChainRule::Seq)),
    );
}

#[test]
fn envelopes_swapped_under_untouched_columns_show() {
    let (ledger, mut stored) = resolved();
    let other = stored.rows[2].envelope.clone();
    stored.rows[2].envelope = std::mem::replace(&mut stored.rows[1].envelope, other);
    assert_failed(&ledger, &stored, Verdict::Invalid, (1, Rule::Column));
    assert_failed(&ledger, &stored, Verdict::Invalid, (2, Rule::Column));
}

#[test]
fn an_envelope_that_names_another_role_key_is_refused_though_its_signature_verifies() {
    let (ledger, mut stored) = resolved();
    let payload = payload_of(&stored.rows[3].envelope);
    let signed = forge(
        caretaker::attest::dsse::IN_TOTO,
        &payload,
        &seed(Role::Executor),
    );
    assert_eq!(signed, stored.rows[3].envelope);
    let keyid = |role| {
        SecretKey::from_seed(&seed(role))
            .public()
            .keyid()
            .to_string()
    };
    let other = String::from_utf8(signed)
        .unwrap()
        .replace(&keyid(Role::Executor), &keyid(Role::Proposer));
    stored.rows[3] = LedgerRow::derive(other.as_bytes()).unwrap();
    assert_failed(
        &ledger,
        &stored,
        Verdict::Invalid,
        (3, Rule::Chain(ChainRule::Signature)),
    );
}

#[test]
fn a_changed_record_of_the_end_shows() {
    type Bend = fn(&mut StoredLedger);
    let head = Rule::Chain(ChainRule::Head);
    let cases: [(Bend, Rule); 5] = [
        (|stored| stored.chain.next_seq = 3, head),
        (|stored| stored.chain.next_seq = 5, head),
        (
            |stored| stored.chain.head = Some(Sha256Digest::of(b"elsewhere")),
            head,
        ),
        // Break: drop the body of `check_record`.
        (|stored| stored.chain.head = None, Rule::Record),
        (
            |stored| (stored.chain.next_seq, stored.chain.head) = (0, None),
            Rule::Record,
        ),
    ];
    for (bend, rule) in cases {
        let (ledger, mut stored) = resolved();
        bend(&mut stored);
        assert_failed(&ledger, &stored, Verdict::Invalid, (4, rule));
    }
}

#[test]
fn a_ledger_under_another_incident_or_project_shows() {
    let (ledger, mut stored) = resolved();
    stored.incident = IncidentId::new(NOW, [8; 10]);
    assert_failed(
        &ledger,
        &stored,
        Verdict::Invalid,
        (0, Rule::Chain(ChainRule::Incident)),
    );
    let (ledger, mut stored) = resolved();
    stored.project.as_mut().unwrap().repository_id = super::super::attest::ledger::label("4712");
    assert_failed(
        &ledger,
        &stored,
        Verdict::Invalid,
        (0, Rule::Chain(ChainRule::Project)),
    );
}

#[test]
fn more_signed_than_drafted_shows() {
    let (ledger, mut stored) = resolved();
    stored.drafted = 3;
    assert_failed(&ledger, &stored, Verdict::Invalid, (4, Rule::Drafts));
}

#[test]
fn one_incident_tampered_with_leaves_the_others_alone() {
    let (ledger, mut broken) = resolved();
    broken.rows[0].occurred_at += 1;
    assert_eq!(checked(&ledger, &broken).verdict, Verdict::Invalid);
    let mut other = Ledger::new();
    other.incident = IncidentId::new(NOW, [9; 10]);
    other.propose(|_| ());
    other.decide(|_| ());
    assert_valid(&other, &stored(&other, Stage::Gated));
}
