//! What checkpoints are shown to.

mod witness;
