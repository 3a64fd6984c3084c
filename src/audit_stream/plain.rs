//! Ordinary files alone: a pipe or a device in a file's place would be waited for without end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
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

/// Writes over an ordinary file of ours with at least as many bytes, in one write of a few bytes, which is whole or not done for
/// whoever dies meanwhile. False, and nothing written, where there is no file yet or a longer one: it is to be replaced then.
/// Replacing a file each time costs every hook a millisecond where the file system gives the old one's blocks back at once.
///
/// # Errors
/// It cannot be opened or written, or is no ordinary file.
pub fn write_over(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let opened = open_plain_with(path, OpenOptions::new().write(true), OFlags::NOFOLLOW);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    // Break it: write over a longer one; `audit_stream::writer::the_end_is_said_anew_when_it_is_shorter` fails.
    if file.metadata()?.len() > bytes.len() as u64 {
        return Ok(false);
    }
    file.write_all_at(bytes, 0)?;
    Ok(true)
}
