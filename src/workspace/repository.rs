//! Repositories as stores of objects: opening them, and reading exactly what an id names.

use std::io::{self, ErrorKind::AlreadyExists, ErrorKind::DirectoryNotEmpty};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use git2::{
    ErrorCode, ObjectType, Odb, OdbLookupFlags, Repository, RepositoryInitOptions,
    RepositoryOpenFlags,
};

use crate::change::{Mode, ObjectFormat, Oid, RepoPath, Side};

use super::WorkspaceError;
use super::tree::{Node, parse};

/// Largest tree or commit object that is read, in bytes.
pub(super) const OBJECT_BYTES: usize = 32 << 20;

/// A repository whose objects are read by id. Replacement objects, grafts, filters, attributes and configuration have no part
/// in what is read: an id stands for the bytes it is the hash of.
///
/// It may be moved to another thread but not shared between threads; opening one anew is cheap.
pub struct RepositoryReader {
    pub(super) inner: Repository,
    path: PathBuf,
}

impl std::fmt::Debug for RepositoryReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RepositoryReader").field(&self.path).finish()
    }
}

/// A bare repository that only caretaker writes: fixes are built and compared here, never in a directory that an agent wrote.
#[derive(Debug)]
pub struct TrustedRepository {
    reader: RepositoryReader,
}

impl std::ops::Deref for TrustedRepository {
    type Target = RepositoryReader;

    fn deref(&self) -> &RepositoryReader {
        &self.reader
    }
}

impl TrustedRepository {
    /// Opens the bare repository at `path`, or makes an empty one (readable by its owner only, without hooks or templates)
    /// when there is nothing or an empty directory.
    ///
    /// # Errors
    /// Something else lies at `path`, or it cannot be created.
    pub fn open_or_create(path: &Path) -> Result<Self, WorkspaceError> {
        let vacant = match std::fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(WorkspaceError::io("opening the repository", path)(error)),
        };
        if vacant {
            create(path)?;
        }
        let flags = RepositoryOpenFlags::NO_SEARCH
            | RepositoryOpenFlags::BARE
            | RepositoryOpenFlags::NO_DOTGIT;
        let reader = RepositoryReader::open(path, flags)?;
        if path.join(".git").exists() {
            return Err(WorkspaceError::Open {
                path: path.to_owned(),
                reason: "it holds a working tree; name a directory of caretaker's own".to_owned(),
            });
        }
        Ok(Self { reader })
    }
}

/// Makes the repository whole or not at all: a process that is killed here must not leave half a one, which nobody could open
/// or make any more.
fn create(path: &Path) -> Result<(), WorkspaceError> {
    let refused = |error: io::Error| WorkspaceError::io("creating the repository", path)(error);
    let folder = path.parent().filter(|parent| *parent != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(refused)?;
    let place = tempfile::Builder::new()
        .prefix(".unfinished-")
        .tempdir_in(folder)
        .map_err(refused)?;
    let made = place.path().join("repository");
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&made)
        .map_err(refused)?;
    let mut options = RepositoryInitOptions::new();
    options
        .bare(true)
        .no_reinit(true)
        .external_template(false)
        .initial_head("main");
    // What a fact in the database names must survive a power failure too.
    Repository::init_opts(&made, &options)
        .and_then(|made| made.config()?.set_bool("core.fsyncObjectFiles", true))
        .map_err(WorkspaceError::git(format!(
            "creating the bare repository {}",
            path.display()
        )))?;
    // Break it: make the repository at `path` itself; of many that make it at once, some then open half a one
    // (`workspace::repository::of_many_that_make_one_repository_at_once_each_opens_a_whole_one`).
    match std::fs::rename(&made, path) {
        // Another process was faster.
        Err(error) if matches!(error.kind(), DirectoryNotEmpty | AlreadyExists) => Ok(()),
        other => other.map_err(refused),
    }
}

/// Opens any repository, bare or with a working tree, to read objects and refs from it.
///
/// # Errors
/// No repository there, one of another object format than SHA-1, or one with grafts.
pub fn open_read_only(directory: &Path) -> Result<RepositoryReader, WorkspaceError> {
    RepositoryReader::open(directory, RepositoryOpenFlags::NO_SEARCH)
}

impl RepositoryReader {
    fn open(path: &Path, flags: RepositoryOpenFlags) -> Result<Self, WorkspaceError> {
        let refuse = |reason: String| WorkspaceError::Open {
            path: path.to_owned(),
            reason,
        };
        let none: [&std::ffi::OsStr; 0] = [];
        let inner = Repository::open_ext(path, flags, none).map_err(|error| {
            let words = error.message();
            refuse(
                if words.contains("objectformat") || words.contains("object format") {
                    format!("{words}; only SHA-1 repositories can be read")
                } else if error.code() == ErrorCode::NotFound {
                    "there is no git repository; name its top directory or its .git directory"
                        .to_owned()
                } else {
                    words.to_owned()
                },
            )
        })?;
        let grafts = inner.commondir().join("info").join("grafts");
        if std::fs::metadata(&grafts).is_ok_and(|data| data.len() > 0) {
            return Err(refuse(format!(
                "{} rewrites its history; remove that file",
                grafts.display()
            )));
        }
        Ok(Self {
            inner,
            path: path.to_owned(),
        })
    }

    /// The directory it was opened at.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the repository names its objects: by SHA-1, since the git library reads no other and opening refuses them.
    pub const fn object_format(&self) -> ObjectFormat {
        ObjectFormat::Sha1
    }

    /// Whether the object is in the repository.
    pub fn contains(&self, oid: Oid) -> bool {
        match (raw(oid), self.odb()) {
            (Ok(id), Ok(odb)) => odb.exists_ext(id, OdbLookupFlags::empty()),
            _ => false,
        }
    }

    /// The tree of a commit.
    ///
    /// # Errors
    /// The object is missing or not a commit.
    pub fn commit_tree(&self, commit: Oid) -> Result<Oid, WorkspaceError> {
        self.expect_kind(commit, ObjectType::Commit, "commit")?;
        let found = self
            .inner
            .find_commit(raw(commit)?)
            .map_err(WorkspaceError::git(format!("reading commit {commit}")))?;
        cooked(found.tree_id())
    }

    /// The parents of a commit, first parent first.
    ///
    /// # Errors
    /// The object is missing or not a commit.
    pub fn parents(&self, commit: Oid) -> Result<Vec<Oid>, WorkspaceError> {
        self.expect_kind(commit, ObjectType::Commit, "commit")?;
        let found = self
            .inner
            .find_commit(raw(commit)?)
            .map_err(WorkspaceError::git(format!("reading commit {commit}")))?;
        found.parent_ids().map(cooked).collect()
    }

    /// The tree that a commit or tree id stands for.
    ///
    /// # Errors
    /// The object is missing, or neither commit nor tree.
    pub fn tree_of(&self, treeish: Oid) -> Result<Oid, WorkspaceError> {
        match self.kind_and_size(treeish, "commit or tree")?.0 {
            ObjectType::Tree => Ok(treeish),
            ObjectType::Commit => self.commit_tree(treeish),
            found => Err(wrong_kind(treeish, "commit or tree", found)),
        }
    }

    /// The bytes of a blob, unfiltered.
    ///
    /// # Errors
    /// The object is missing, not a blob, or longer than `cap` bytes (nothing is read then).
    pub fn read_blob(&self, blob: Oid, cap: u64) -> Result<Vec<u8>, WorkspaceError> {
        let size = self.blob_size(blob)?;
        if size > cap {
            return Err(WorkspaceError::TooLarge {
                doing: "reading a file",
                what: format!("blob {blob} of {size} bytes"),
                limit: format!("{cap} bytes"),
                mend: "such a file is not read; leave it out of the change",
            });
        }
        self.read_object(blob, ObjectType::Blob, "blob", usize::MAX)
    }

    /// The size of a blob in bytes.
    ///
    /// # Errors
    /// The object is missing or not a blob.
    pub fn blob_size(&self, blob: Oid) -> Result<u64, WorkspaceError> {
        let size = self.expect_kind(blob, ObjectType::Blob, "blob")?;
        Ok(u64::try_from(size).unwrap_or(u64::MAX))
    }

    /// What is at a path of a commit or tree; `None` when nothing or a directory is.
    ///
    /// # Errors
    /// An object on the way is missing or odd.
    pub fn entry(&self, treeish: Oid, path: &RepoPath) -> Result<Option<Side>, WorkspaceError> {
        let mut tree = self.tree_of(treeish)?;
        let mut components = path.as_bytes().split(|byte| *byte == b'/').peekable();
        while let Some(component) = components.next() {
            let last = components.peek().is_none();
            match self.read_tree(tree)?.get(component) {
                Some(Node::Leaf(side)) if last => return Ok(Some(*side)),
                Some(Node::Tree(below)) if !last => tree = *below,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The bytes of a file at a commit or tree; `None` when there is nothing or a directory.
    ///
    /// # Errors
    /// A symbolic link or submodule is there (links are never followed), the file is longer than `cap` bytes, or an object is
    /// missing.
    pub fn read_file(
        &self,
        treeish: Oid,
        path: &RepoPath,
        cap: u64,
    ) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let Some(side) = self.entry(treeish, path)? else {
            return Ok(None);
        };
        let refuse = |found| {
            Err(WorkspaceError::NotAFile {
                path: path.clone(),
                commit: treeish,
                found,
            })
        };
        match side.mode {
            Mode::Regular | Mode::Executable => self.read_blob(side.oid, cap).map(Some),
            Mode::Symlink => refuse("a symbolic link"),
            Mode::Gitlink => refuse("a submodule"),
            Mode::Absent => Ok(None),
        }
    }

    /// The one best common ancestor of two commits.
    ///
    /// # Errors
    /// There is none, there are several (a criss-cross merge: no single base describes the change), or the history is shallow.
    pub fn merge_base(&self, one: Oid, two: Oid) -> Result<Oid, WorkspaceError> {
        let refuse = |reason: String| Err(WorkspaceError::MergeBase { one, two, reason });
        self.expect_kind(one, ObjectType::Commit, "commit")?;
        self.expect_kind(two, ObjectType::Commit, "commit")?;
        if self.inner.is_shallow() {
            return refuse(
                "the history is shallow, so it cannot be known; git fetch --unshallow".to_owned(),
            );
        }
        let bases = match self.inner.merge_bases(raw(one)?, raw(two)?) {
            Ok(bases) => bases,
            Err(error) if error.code() == ErrorCode::NotFound => {
                return refuse(
                    "their histories are unrelated; name commits of one history".to_owned(),
                );
            }
            Err(error) => return Err(WorkspaceError::git("finding a merge base")(error)),
        };
        match &*bases {
            [base] => cooked(*base),
            several => refuse(format!(
                "there are {} of them (a criss-cross merge); merge the base into the branch first",
                several.len()
            )),
        }
    }

    /// The entries of a tree object, checked.
    pub(super) fn read_tree(
        &self,
        tree: Oid,
    ) -> Result<std::collections::BTreeMap<Vec<u8>, Node>, WorkspaceError> {
        let data = self.read_object(tree, ObjectType::Tree, "tree", OBJECT_BYTES)?;
        parse(tree, &data)
    }

    fn read_object(
        &self,
        oid: Oid,
        kind: ObjectType,
        wanted: &'static str,
        cap: usize,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let size = self.expect_kind(oid, kind, wanted)?;
        if size > cap {
            return Err(WorkspaceError::TooLarge {
                doing: "reading an object",
                what: format!("{wanted} {oid} of {size} bytes"),
                limit: format!("{cap} bytes"),
                mend: "no real project has one; have its author split it",
            });
        }
        let odb = self.odb()?;
        let object = odb
            .read(raw(oid)?)
            .map_err(WorkspaceError::git(format!("reading {wanted} {oid}")))?;
        Ok(object.data().to_vec())
    }

    /// Checks an object's kind and gives its size, without reading its content.
    pub(super) fn expect_kind(
        &self,
        oid: Oid,
        kind: ObjectType,
        wanted: &'static str,
    ) -> Result<usize, WorkspaceError> {
        match self.kind_and_size(oid, wanted)? {
            (found, size) if found == kind => Ok(size),
            (found, _) => Err(wrong_kind(oid, wanted, found)),
        }
    }

    pub(super) fn kind_and_size(
        &self,
        oid: Oid,
        wanted: &'static str,
    ) -> Result<(ObjectType, usize), WorkspaceError> {
        match self.odb()?.read_header(raw(oid)?) {
            Ok((size, kind)) => Ok((kind, size)),
            Err(error) if error.code() == ErrorCode::NotFound => {
                Err(WorkspaceError::Missing { oid, wanted })
            }
            Err(error) => Err(WorkspaceError::git(format!("reading {wanted} {oid}"))(
                error,
            )),
        }
    }

    pub(super) fn odb(&self) -> Result<Odb<'_>, WorkspaceError> {
        self.inner
            .odb()
            .map_err(WorkspaceError::git("opening the object database"))
    }
}

fn wrong_kind(oid: Oid, wanted: &'static str, found: ObjectType) -> WorkspaceError {
    WorkspaceError::Kind {
        oid,
        wanted,
        found: found.str(),
    }
}

/// The git library's form of an id.
pub(super) fn raw(oid: Oid) -> Result<git2::Oid, WorkspaceError> {
    if oid.format() != ObjectFormat::Sha1 {
        return Err(WorkspaceError::Git {
            doing: format!("reading object {oid}"),
            reason: "the repository names its objects by SHA-1 (40 digits)".to_owned(),
        });
    }
    git2::Oid::from_bytes(oid.as_bytes())
        .map_err(WorkspaceError::git(format!("reading object {oid}")))
}

/// Our form of an id.
pub(super) fn cooked(oid: git2::Oid) -> Result<Oid, WorkspaceError> {
    Oid::from_bytes(oid.as_bytes()).map_err(|error| WorkspaceError::Change(error.into()))
}
