//! Statements by name, so that a test can prepare each of them on both databases.

/// One statement of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// Its name in the source.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// Declares statements as constants and lists all of them as `STATEMENTS`.
macro_rules! statements {
    ($($(#[$doc:meta])* $visibility:vis $name:ident = $text:literal;)*) => {
        $($(#[$doc])* $visibility const $name: &str = $text;)*

        /// Every statement of this module.
        pub(in crate::store) const STATEMENTS: &[$crate::store::Statement] =
            &[$($crate::store::Statement { name: stringify!($name), text: $text }),*];
    };
}
pub(super) use statements;
