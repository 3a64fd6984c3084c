//! Ordinary files alone: a pipe or a device in a file's place would be waited for without end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file as `options` say, without waiting for whoever is at a pipe's other end.
///
/// # Errors
/// It cannot be opened, or is no ordinary file.
pub fn open_plain_with(path: &Path, options: &mut OpenOptions, more: OFlags) -> io::Result<File> {
    // Break it: leave NONBLOCK out; `hook_gate::state::a_pipe_in_a_files_place_is_not_waited_for` does not end.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let file = options
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other(
            "it is no ordinary file; put an ordinary file there",
        ));
    }
    Ok(file)
}

/// Opens an ordinary file for reading, following links.
///
/// # Errors
/// It cannot be opened, or is no ordinary file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    open_plain_with(path, OpenOptions::new().read(true), OFlags::empty())
}
