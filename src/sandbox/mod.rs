//! Runs untrusted programs with nothing they could harm.
