//! The configuration's word for a boundary.

use std::fmt;
use std::str::FromStr;

use super::SandboxError;

/// Which boundary the configuration asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Bubblewrap where it works, else Landlock alone, else an error.
    #[default]
    Auto,
    /// Bubblewrap, with Landlock inside where the kernel has it.
    Bubblewrap,
    /// Landlock and seccomp alone, on the machine's own file system. Needs Linux 6.2, and 6.12 when caretaker runs as root.
    ///
    /// It cannot keep a program from learning whether a file exists, from changing mode, owner, times or extended attributes
    /// of this user's files, or from filling the disk beneath the temporary directory. It has no network of its own to give,
    /// and only the first process of a run sees its own `/proc/self`.
    Landlock,
    /// No boundary. The program can do whatever the user can; only its limits and its environment are kept.
    None,
}

impl Mode {
    /// The word as written in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

impl FromStr for Mode {
    type Err = SandboxError;

    fn from_str(word: &str) -> Result<Self, SandboxError> {
        [Self::Auto, Self::Bubblewrap, Self::Landlock, Self::None]
            .into_iter()
            .find(|mode| mode.as_str() == word)
            .ok_or_else(|| SandboxError::UnknownMode {
                word: word.to_owned(),
            })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
