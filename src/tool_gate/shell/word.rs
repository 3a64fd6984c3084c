//! One word of a command.

/// A word, as far as it stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own that another program of the table asks for"
)]
pub(super) struct Word {
    /// Its text without quotes; with parts missing when it is not `fixed`.
    pub(super) text: String,
    /// The same with patterns, variables and tildes as they are spelled, `$` for everything else that is computed; what is quoted
    /// of a pattern stands behind a backslash.
    pub(super) pattern: String,
    /// Whether nothing in it is expanded: no variable, substitution, pattern, brace or tilde.
    pub(super) fixed: bool,
    /// Whether any of it was quoted, so that it is no reserved word.
    pub(super) quoted: bool,
    /// Whether its first character stands there, so that it cannot turn into an option.
    pub(super) begins: bool,
    /// Whether something in it is expanded without quotes, so that it may turn into several words.
    pub(super) splits: bool,
}

impl Word {
    /// A word that no shell expands.
    pub(super) fn literal(text: String) -> Self {
        Self {
            begins: !text.is_empty(),
            pattern: text.clone(),
            text,
            fixed: true,
            quoted: true,
            splits: false,
        }
    }

    /// Its text, if all of it stands there.
    pub(super) fn text(&self) -> Option<&str> {
        self.fixed.then_some(self.text.as_str())
    }

    /// Whether it is an option, or may turn into one.
    pub(super) fn may_be_option(&self) -> bool {
        // Break it: leave the first test out; `tool_gate::shell::a_word_that_splits_may_hide_an_option` fails.
        if self.splits {
            true
        } else if self.begins {
            self.text.starts_with('-')
        } else {
            !self.fixed
        }
    }
}
