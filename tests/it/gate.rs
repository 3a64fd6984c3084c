//! Tests of gate.
