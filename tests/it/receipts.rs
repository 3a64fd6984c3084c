//! Capability tokens and receipts: what is signed, what is allowed, and what a stranger can check afterwards.

mod attenuation;
mod canonical;
mod commands;
mod constraints;
mod desk;
mod fixtures;
mod forging;
mod gate;
mod hostile;
mod identity;
mod keys;
mod minting;
mod peers;
mod properties;
mod tampering;
mod writing;
