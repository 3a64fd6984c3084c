//! caretaker: a control layer between what a coding agent intends and what gets merged.
//!
//! Five stages, one folder each: [`gate`], [`approve`], [`attest`], [`execute`], [`reconcile`]. Beneath them two
//! substrates: [`audit`] and [`provenance`]. [`incident::next`] decides, the worker acts, and only the worker takes steps.
//! `ARCHITECTURE.md` holds the layer table that a test enforces.

// Layer 0
pub mod change;
pub mod clock;
pub mod id;

// Layer 1: the pure kernel
pub mod approve;
pub mod attest;
pub mod execute;
pub mod gate;
pub mod intent;
pub mod log;
pub mod provenance;
pub mod receipts;
pub mod reconcile;
pub mod tool_gate;

// Layer 2
pub mod audit;
pub mod incident;

// Layer 3: ports
#[cfg(feature = "full")]
pub mod agent;
#[cfg(feature = "full")]
pub mod connector;
#[cfg(feature = "full")]
pub mod embedder;
#[cfg(feature = "full")]
pub mod events;
#[cfg(feature = "full")]
pub mod https;

// Layer 4: adapters
#[cfg(feature = "full")]
pub mod anchor;
#[cfg(feature = "full")]
pub mod audit_stream;
#[cfg(feature = "full")]
pub mod config;
#[cfg(feature = "full")]
pub mod hook;
#[cfg(feature = "full")]
pub mod notify;
#[cfg(feature = "full")]
pub mod probe;
#[cfg(feature = "full")]
pub mod sandbox;
#[cfg(feature = "full")]
pub mod store;
#[cfg(feature = "full")]
pub mod workspace;

// Layer 5: application
#[cfg(feature = "full")]
pub mod alignment;
#[cfg(feature = "full")]
pub mod approvals;
#[cfg(feature = "full")]
pub mod hook_gate;
#[cfg(feature = "full")]
pub mod onboard;
#[cfg(feature = "full")]
pub mod signer;
#[cfg(feature = "full")]
pub mod watch;
#[cfg(feature = "full")]
pub mod witness;
#[cfg(feature = "full")]
pub mod worker;

// Layer 6: surfaces
#[cfg(feature = "full")]
pub mod cli;
#[cfg(feature = "full")]
pub mod forge;
#[cfg(feature = "full")]
pub mod telemetry;
pub mod verifier;
#[cfg(feature = "full")]
pub mod web;
