//! Signed statements: envelopes, keys, trust roots and chains, as a stranger who means no good would meet them.

mod chains;
mod envelopes;
mod exact;
pub(crate) mod examples;
mod exports;
mod interop;
pub(crate) mod ledger;
mod notary;
mod order;
mod predicates;
mod schemas;
mod sealed;
mod strict;
mod trust;
mod vectors;
