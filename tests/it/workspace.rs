//! Tests of workspace.
