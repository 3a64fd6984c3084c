//! Incidents as they happen: most are merged after an approval, some are denied, some are handed to a person before or after a merge.

use caretaker::attest::predicate::{Answer, Verdict};
use caretaker::attest::trust_root::SideKey;
use caretaker::attest::{List, SecretKey, TrustRoot};
use caretaker::id::IncidentId;

use crate::Tried;
use crate::ledger::{Ledger, NOW, label, root_document, root_key};

/// The key that signs checkpoints.
pub(crate) fn log_key() -> SecretKey {
    SecretKey::from_seed(&[77; 32])
}

/// The organisation's trust root, with that key.
pub(crate) fn trust_root() -> Tried<TrustRoot> {
    let mut document = root_document();
    let key = SideKey::from_public(label("log"), log_key().public());
    document.side_keys = Some(List::first_of([key]));
    Ok(TrustRoot::sign(&document, &[&root_key(0)])?)
}

/// A ledger without events under that trust root, to be cloned: making one signs its evidence.
pub(crate) fn nothing_yet() -> Tried<Ledger> {
    let mut ledger = Ledger::new();
    ledger.trust = trust_root()?.into();
    Ok(ledger)
}

/// The envelopes of the incident with this number: 2 to 5 of them.
pub(crate) fn envelopes(nothing_yet: &Ledger, number: u64) -> Vec<Vec<u8>> {
    let mut ledger = numbered(nothing_yet, number);
    ledger.propose(|_| ());
    if number.is_multiple_of(10) {
        ledger.decide(|decision| {
            decision.verdict = Verdict::Deny;
            decision.terminal = true;
        });
        return ledger.envelopes;
    }
    ledger.decide(|_| ());
    if number % 10 == 2 {
        // Nothing ends its chain.
        ledger.escalate(|_| ());
        return ledger.envelopes;
    }
    ledger.answer(|_| ());
    ledger.execute(|_| ());
    if number % 10 == 1 {
        ledger.escalate(|_| ());
    }
    ledger.envelopes
}

/// An incident of about as many events: proposals that are rejected, then one that is merged.
pub(crate) fn long(nothing_yet: &Ledger, events: usize) -> Ledger {
    let mut ledger = numbered(nothing_yet, 1);
    while ledger.envelopes.len() + 7 <= events {
        ledger.propose(|_| ());
        ledger.decide(|_| ());
        ledger.answer(|approval| approval.answer = Answer::Reject);
    }
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger.execute(|_| ());
    ledger
}

fn numbered(nothing_yet: &Ledger, number: u64) -> Ledger {
    let mut ledger = nothing_yet.clone();
    let mut entropy = [0; 10];
    entropy[..8].copy_from_slice(&number.to_be_bytes());
    ledger.incident = IncidentId::new(NOW, entropy);
    ledger
}
