//! Time as a parameter.
