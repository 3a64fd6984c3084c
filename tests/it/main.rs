//! Scenario and property tests: one binary, one module a subject.
mod agent;
mod architecture;
mod attest;
mod change;
mod cli;
mod config;
mod connector;
mod flow;
mod forge;
mod gate;
mod sandbox;
mod store;
mod web;
mod workspace;

#[path = "../support/mod.rs"]
mod support;
