//! Tests of attest.
