//! The log: its tree, files, checkpoints, proofs and leaves, as an auditor who trusts nobody would take them.

mod checkpoints;
mod hostile;
mod keeping;
mod leaves;
mod merkle;
mod notes;
mod proofs;
mod scene;
mod tiles;
mod witness_dialogue;
