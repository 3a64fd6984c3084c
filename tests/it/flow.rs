//! Tests of flow.
