//! Tests of web.
