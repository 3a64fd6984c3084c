//! The local forge, from outside: over HTTP and with a real git client.

mod apps;
pub(crate) mod bench;
mod connector;
mod contents;
mod description;
mod faults;
mod git;
mod guards;
mod hooks;
mod limits;
mod merging;
mod plants;
mod profiles;
mod properties;
mod pulls;
mod quirks;
mod refusals;
mod runs;
mod schema;
mod speed;
mod tokens;
