//! What of a call's arguments a receipt shows: the values that the intent constrains, so that a stranger can judge them again, and
//! nothing else.

use std::collections::BTreeMap;

use crate::attest::json::Json;
use crate::receipts::arguments::Arguments;
use crate::receipts::canonical::to_canonical;
use crate::receipts::intent::Intent;

/// The most that is disclosed of a call, in bytes of canonical JSON.
pub const MAX_DISCLOSURE: usize = 8 * 1024;

/// The constrained fields that the call has, and whether all of them fit; of those that do not, none is shown.
pub(super) fn disclosed(intent: &Intent, arguments: &Arguments<'_>) -> (Json<'static>, bool) {
    let Some(constraints) = intent.constraints() else {
        return (Json::Members(BTreeMap::new()), true);
    };
    // Break it: disclose all arguments; `receipts::gate::a_receipt_discloses_only_what_the_intent_constrains` fails.
    let found = arguments.among(constraints.fields());
    let mut left = MAX_DISCLOSURE;
    let mut whole = true;
    let Json::Members(members) = found else {
        return (found, false);
    };
    let shown = members.into_iter().filter(|(name, value)| {
        let length = name.len() + to_canonical(value).len();
        let fits = length <= left;
        left = left.saturating_sub(if fits { length } else { 0 });
        whole &= fits;
        fits
    });
    (Json::Members(shown.collect()), whole)
}
