//! Scenario and property tests: one binary, one module a subject.
mod change;
mod gate;
mod attest;
mod sandbox;
mod workspace;
mod store;
mod forge;
mod connector;
mod web;
mod cli;
mod agent;
mod config;
mod flow;
mod architecture;

#[path = "../support/mod.rs"]
mod support;
