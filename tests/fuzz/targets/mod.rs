//! The readers, each with good documents and what has to hold whatever it is given.

mod bundle;
mod gated;
mod intent;
mod outside;
mod receipts;
mod signed;
mod stamped;
mod tree;

use std::fmt::Display;

use super::change::Random;

/// Taken, or refused in these words. What must not be panics.
pub(crate) type Outcome = Result<(), String>;

/// Makes an input from documents that are taken.
pub(crate) type Reshape = fn(&mut Random, &[Vec<u8>]) -> Vec<u8>;

/// Reads an input, and checks what has to hold.
pub(crate) type Read = Box<dyn Fn(&[u8]) -> Outcome>;

/// A reader.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Documents that it takes.
    pub(crate) good: Vec<Vec<u8>>,
    /// No longer inputs than this are tried, in bytes.
    pub(crate) longest: usize,
    /// How inputs are made where changes of bytes alone would never get past the outermost form.
    pub(crate) reshape: Option<Reshape>,
    /// Reads, and checks what has to hold.
    pub(crate) read: Read,
}

impl Target {
    fn new(
        name: &'static str,
        good: Vec<Vec<u8>>,
        read: impl Fn(&[u8]) -> Outcome + 'static,
    ) -> Self {
        Self {
            name,
            good,
            longest: 200_000,
            reshape: None,
            read: Box::new(read),
        }
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Target> {
    let mut targets = signed::targets();
    targets.extend(tree::targets());
    targets.extend(bundle::targets());
    targets.extend(gated::targets());
    targets.extend(outside::targets());
    targets.extend(receipts::targets());
    targets.extend(intent::targets());
    targets.extend(stamped::targets());
    targets
}

fn words(error: impl Display) -> String {
    error.to_string()
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "not text".to_owned())
}
