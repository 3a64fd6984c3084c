//! What caretaker, the supervisor and the confined process tell each other: one length-prefixed JSON document each.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Limits;

/// Largest document either side accepts, in bytes: room for any argument list Linux itself would take.
const LARGEST_DOCUMENT: u32 = 16 << 20;

/// What separates the program from the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Boundary {
    /// Namespaces set up by bubblewrap, with Landlock inside where the kernel has it.
    Bubblewrap {
        program: PathBuf,
        forbids_namespaces: bool,
        landlock: bool,
    },
    /// Landlock and seccomp on the shared system.
    Landlock,
    /// Resource limits, wall time and a closed environment only.
    Nothing,
}

/// How much of one path the program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Access {
    /// List the names in the directory and those beneath it.
    List,
    /// Read and execute.
    Read,
    /// Everything but creating devices.
    Write,
    /// A directory that seems empty.
    HideFolder,
    /// A file that seems to hold nothing.
    HideFile,
    /// Read and write a device that exists.
    Device,
}

/// One path the program gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) path: PathBuf,
    pub(super) access: Access,
}

impl Grant {
    pub(super) fn new(path: impl Into<PathBuf>, access: Access) -> Self {
        Self {
            path: path.into(),
            access,
        }
    }
}

/// The program itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) argv: Vec<OsString>,
    pub(super) directory: PathBuf,
    pub(super) environment: Vec<(String, String)>,
    pub(super) private_loopback: bool,
    pub(super) limits: WireLimits,
}

/// [`Limits`] without the wall time, which only caretaker's own process keeps.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct WireLimits {
    pub(super) cpu_seconds: u64,
    pub(super) address_space: Option<u64>,
    pub(super) file_size: u64,
    pub(super) open_files: u64,
    pub(super) processes: u64,
    pub(super) temporary: u64,
}

impl From<&Limits> for WireLimits {
    fn from(limits: &Limits) -> Self {
        Self {
            cpu_seconds: limits.cpu_seconds,
            address_space: limits.address_space,
            file_size: limits.file_size,
            open_files: limits.open_files,
            processes: limits.processes,
            temporary: limits.temporary,
        }
    }
}

/// From caretaker to the supervisor, followed by `stdin_length` bytes for the program's standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Launch {
    pub(super) boundary: Boundary,
    pub(super) launcher: PathBuf,
    pub(super) grants: Vec<Grant>,
    pub(super) program: Program,
    pub(super) stdin_length: u64,
    pub(super) temporary_directory: PathBuf,
}

/// Which sockets the program may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Sockets {
    /// None at all, not even local ones: the network is shared with the machine.
    Refused,
    /// Unix sockets only.
    Local,
    /// Unix sockets, and TCP and UDP on the private loopback interface.
    Loopback,
}

/// How the confined process restricts itself.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Restriction {
    /// Inside namespaces of its own.
    Inside { landlock: bool, sockets: Sockets },
    /// On the shared system; these processes and process groups may not be signalled.
    Alone { protected: Vec<i32> },
    /// Only resource limits.
    Limits,
}

/// From the supervisor to the confined process, followed by the program's standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Confinement {
    pub(super) restriction: Restriction,
    pub(super) grants: Vec<Grant>,
    pub(super) program: Program,
    /// The file that says whether the program was reached; see [`super::scratch`].
    pub(super) report: PathBuf,
}

/// From the supervisor to caretaker, once every process of the run is gone.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ending {
    Exited(i32),
    Signalled(i32),
    ProcessLimit,
    /// The boundary failed before the program was reached; `None` when the boundary itself ended without a word.
    SetupFailed(Option<String>),
    /// The boundary stands, the program could not be started in it.
    NotStarted(String),
}

/// Writes one document with its length before it.
pub(super) fn write_document(to: &mut impl Write, document: &impl Serialize) -> io::Result<()> {
    let bytes = encode(document)?;
    to.write_all(&bytes)
}

/// One document with its length before it.
pub(super) fn encode(document: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(document)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|length| *length <= LARGEST_DOCUMENT)
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "the command line and environment are larger than 16 MiB",
            )
        })?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(body);
    Ok(bytes)
}

/// Reads one document and nothing beyond it.
pub(super) fn read_document<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LARGEST_DOCUMENT {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the document announces more than 16 MiB",
        ));
    }
    let mut body = vec![0; length as usize];
    from.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}
