//! Who is let in.

pub mod token;
