//! The local forge, from outside: over HTTP and with a real git client.

mod bench;
mod connector;
mod description;
mod faults;
mod git;
mod merging;
mod plants;
mod properties;
mod pulls;
mod quirks;
mod refusals;
mod runs;
mod schema;
mod speed;
