//! The merge protocol against a real forge: what is compared, what is asked, and what is proven to have landed.
//!
//! Most stories go without a worker: the connector reads, the kernel judges, the forge's git does. Those about what the worker
//! makes of an answer are told through a whole worker.

mod answers;
mod base;
mod bench;
mod contents;
pub(crate) mod installation;
mod listing;
mod people;
mod refusals;
