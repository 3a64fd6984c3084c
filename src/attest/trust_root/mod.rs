//! Trust.
