//! Tests of change.
