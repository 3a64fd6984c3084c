//! What a call touches, before and after the file system was asked where it is.

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// It is read.
    Read,
    /// It is created, changed or removed.
    Write,
}

/// A text that whoever runs the call may take for a path, a pattern of paths or an address of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The text; a relative path counts from the client's folder.
    pub text: String,
    /// Whether what lies below is read, too.
    pub search: bool,
    /// Whether wildcards in it may be expanded.
    pub pattern: bool,
}

/// One path that a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// As the call spells it, for messages.
    pub given: String,
    /// Where it is looked for: the same, behind the folders that a shell command entered before.
    pub path: String,
    /// Whether `path` counts from the worktree's top and not from the client's folder.
    pub from_top: bool,
    /// What is done to it.
    pub access: Access,
    /// Whether it is removed or moved with everything below it.
    pub whole: bool,
}

impl Touch {
    /// A path as given, counted from the client's folder.
    pub fn new(given: impl Into<String>, access: Access) -> Self {
        let given = given.into();
        Self {
            path: given.clone(),
            given,
            from_top: false,
            access,
            whole: false,
        }
    }
}

/// Where a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the worktree.
    Inside {
        /// Relative to the worktree's top, links resolved as far as they exist, without `.` and `..`; empty for the top itself.
        path: Vec<u8>,
        /// The same without resolving links: what the call calls it.
        spelled: Vec<u8>,
    },
    /// Elsewhere.
    Outside,
    /// In the gate's own state, which a gated session may not even read.
    GateState,
    /// Nowhere: no file can have this name, or looking failed.
    Nowhere(String),
}

/// What lies below a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Below {
    /// Nothing that decides about the session.
    Harmless,
    /// Something of that kind; its path below the folder.
    Protected(String),
    /// More than is looked through.
    TooMuch,
}

/// Whoever can look where paths are. Looking follows links; it changes nothing.
pub trait Places {
    /// Where a touched path is; relative ones count from `folder`, or from the worktree's top.
    fn place(&self, folder: Option<&str>, touch: &Touch) -> Place;

    /// Whether a mention may lead into the gate's own state, in any way that a client may read it.
    fn reaches_state(&self, folder: Option<&str>, mention: &Mention) -> bool;

    /// What is found below a folder that is removed or moved as a whole.
    fn below(&self, folder: Option<&str>, touch: &Touch) -> Below;

    /// Whether the worktree's file system takes names that differ in case for the same.
    fn folds(&self) -> bool;
}
