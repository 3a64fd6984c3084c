//! Typed identifiers.
