//! A witness: run by an auditor, it cosigns what extends the last checkpoint that it cosigned, and nothing else.

mod dialogue;
mod folder;
mod hostile;
mod protocol;
pub(crate) mod scene;
mod story;
