//! Tests of forge.
