//! Checkpoints (C2SP tlog-checkpoint): a log's word for its size and root, and the words of witnesses for it.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::encoding::from_decimal;
use super::key::{KeyName, SignatureType, VerifierKey};
use super::note::{NoteError, NoteSignature, SignedNote};
use super::tree::{TreeError, TreeHash, TreeHead};
use crate::attest::keys::SecretKey;
use crate::attest::text::shown;
use crate::clock::Millis;

/// The longest text of a checkpoint that is made or signed here, in bytes: what leaves room for signature lines.
const MAX_TEXT: usize = 16_384;

/// Why a text is not a checkpoint, or a checkpoint cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// Not the text of a checkpoint.
    #[error("not a checkpoint: {part} was expected, found {found}")]
    Text {
        /// The line that is wrong.
        part: &'static str,
        /// What was found, made printable.
        found: String,
    },
    /// The size or the root cannot be.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The note is not one, or does not verify.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// A log signs its own checkpoints only.
    #[error(
        "the log {signer} does not sign a checkpoint of {origin}; name the log's key like the log"
    )]
    ForeignOrigin {
        /// Whose key it is.
        signer: KeyName,
        /// The checkpoint's log.
        origin: KeyName,
    },
}

/// What a checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: KeyName,
    head: TreeHead,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// The checkpoint of a log at a size. Without extension lines: no witness vouches for them.
    pub const fn new(origin: KeyName, head: TreeHead) -> Self {
        Self {
            origin,
            head,
            extensions: Vec::new(),
        }
    }

    /// The log.
    pub fn origin(&self) -> &KeyName {
        &self.origin
    }

    /// Size and root.
    pub const fn head(&self) -> TreeHead {
        self.head
    }

    /// Lines after the root, of no meaning here.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

/// Reads the text, each line of which ends in a line feed.
impl FromStr for Checkpoint {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        let wrong = |part, found: &str| CheckpointError::Text {
            part,
            found: shown(found),
        };
        if text.len() > MAX_TEXT {
            return Err(wrong("a text of at most 16384 bytes", "a longer one"));
        }
        let text = text
            .strip_suffix('\n')
            .ok_or_else(|| wrong("a line feed at the end", text))?;
        if let Some(control) = text.chars().find(|c| *c < ' ' && *c != '\n') {
            return Err(wrong("no control character", &control.to_string()));
        }
        let mut lines = text.split('\n');
        let mut line = || lines.next().unwrap_or_default();
        let (origin, size, root) = (line(), line(), line());
        let origin = KeyName::new(origin).map_err(|_| wrong("the name of a log", origin))?;
        let size = from_decimal(size).ok_or_else(|| wrong("the decimal number of leaves", size))?;
        let root: TreeHash = root.parse().map_err(|_| wrong("base64 of a root", root))?;
        let extensions: Vec<String> = lines.map(str::to_owned).collect();
        if extensions.iter().any(String::is_empty) {
            return Err(wrong("no empty extension line", ""));
        }
        Ok(Self {
            origin,
            head: TreeHead::new(size, root)?,
            extensions,
        })
    }
}

/// The text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, root) = (self.head.size(), self.head.root());
        write!(formatter, "{}\n{size}\n{root}\n", self.origin)?;
        self.extensions
            .iter()
            .try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

/// A checkpoint with its signature lines. What it says is to be believed only as [`super::TrustedCheckpoint`], which
/// [`super::LogPolicy::verify`] makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    note: SignedNote,
    checkpoint: Checkpoint,
}

impl SignedCheckpoint {
    /// Reads the note and its text. At most 64 KiB and 100 signature lines.
    pub fn parse(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let note = SignedNote::parse(bytes)?;
        let checkpoint = note.text().parse()?;
        Ok(Self { note, checkpoint })
    }

    /// What it says, unverified.
    pub const fn claimed(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Text and signature lines, unverified.
    pub const fn note(&self) -> &SignedNote {
        &self.note
    }

    /// Adds a cosignature as a witness answered it (a line without its line feed). A second one of the same key takes the
    /// place of the first. Verify before publishing: a bad line of a witness that others know makes them refuse the note.
    pub fn add(&mut self, signature: NoteSignature) -> Result<(), CheckpointError> {
        Ok(self.note.add(signature)?)
    }
}

/// The note as it is stored and served.
impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.note, formatter)
    }
}

/// Signs a log's checkpoints: the log key with the log's name.
#[derive(Debug)]
pub struct LogSigner<K = SecretKey> {
    origin: KeyName,
    secret: K,
}

impl<K: Borrow<SecretKey>> LogSigner<K> {
    /// The signer of the log `origin`.
    pub const fn new(origin: KeyName, secret: K) -> Self {
        Self { origin, secret }
    }

    /// What verifiers are given.
    pub fn verifier(&self) -> VerifierKey {
        VerifierKey::new(
            self.origin.clone(),
            SignatureType::Log,
            self.secret.borrow().public(),
        )
    }

    /// Signs a checkpoint of this log. That it extends all earlier ones is for the caller to know: sign only what a
    /// transaction has committed.
    pub fn sign(&self, checkpoint: Checkpoint) -> Result<SignedCheckpoint, CheckpointError> {
        if checkpoint.origin != self.origin {
            return Err(CheckpointError::ForeignOrigin {
                signer: self.origin.clone(),
                origin: checkpoint.origin,
            });
        }
        let text = checkpoint.to_string();
        let signature = NoteSignature::of_log(&self.origin, self.secret.borrow(), &text);
        Ok(SignedCheckpoint {
            note: SignedNote::signed(text, signature),
            checkpoint,
        })
    }
}

/// Signs what a witness has seen of a log (C2SP tlog-cosignature, `cosignature/v1`).
#[derive(Debug)]
pub struct WitnessSigner {
    name: KeyName,
    secret: SecretKey,
}

impl WitnessSigner {
    /// The signer of the witness `name`. Its key must not be used for anything else.
    pub const fn new(name: KeyName, secret: SecretKey) -> Self {
        Self { name, secret }
    }

    /// What verifiers are given.
    pub fn verifier(&self) -> VerifierKey {
        VerifierKey::new(
            self.name.clone(),
            SignatureType::Witness,
            self.secret.public(),
        )
    }

    /// States that at `at` this was the largest tree seen of its log, and that it extends all earlier ones. The type makes
    /// sure that the log's own signature was verified; consistency and remembering are for the caller.
    pub fn cosign(
        &self,
        seen: &super::TrustedCheckpoint,
        at: Millis,
    ) -> Result<NoteSignature, CheckpointError> {
        let text = seen.checkpoint().to_string();
        let signature = NoteSignature::of_witness(&self.name, &self.secret, &text, at)?;
        Ok(signature)
    }
}
