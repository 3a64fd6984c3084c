//! Scenario and property tests: one binary, one module a subject.
#![allow(
    clippy::format_collect,
    clippy::type_complexity,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed; skipped data is said on standard error"
)]

mod agent;
mod alignment;
mod anchor;
mod app;
mod architecture;
mod attest;
mod audit;
mod audit_stream;
mod authority;
mod change;
mod cli;
mod commands;
mod config;
mod conformance;
mod connector;
mod demo;
mod embedder;
mod faults;
mod forge;
mod fuzz;
mod gate;
mod git_command;
mod health;
mod hook_gate;
mod hooks;
mod incident;
mod intent;
mod keys;
mod log;
mod notify;
mod offline;
mod onboard;
mod receipts;
pub(crate) mod reconcile;
mod sandbox;
mod serve;
mod store;
mod tool_gate;
mod twin;
mod watch;
mod web;
mod witness;
mod worker;
mod workspace;

#[path = "../support/mod.rs"]
mod support;
