//! Percent-encoding for URL paths and queries, as RFC 3986 describes it.

mod percent;
mod query;

pub use percent::{decode, encode, DecodeError};
pub use query::parse_query;
