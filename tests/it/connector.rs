//! Tests of connector.
