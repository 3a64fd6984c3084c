//! A question to another process at a Unix socket, and its answer: each with its length in four bytes before it.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Asks, and reads an answer of at most `longest` bytes that is there whole within `patience`, however it is dribbled.
pub(super) fn exchange(
    socket: &Path,
    question: &[u8],
    longest: u32,
    patience: Duration,
) -> io::Result<Vec<u8>> {
    let until = Instant::now() + patience;
    let length = u32::try_from(question.len()).map_err(io::Error::other)?;
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(patience))?;
    // Who refuses at once answers and hangs up while the question is still on its way: what was answered says more than that.
    let asked = stream
        .write_all(&length.to_be_bytes())
        .and_then(|()| stream.write_all(question));
    let mut length = [0; 4];
    match (asked, fill(&mut stream, &mut length, until)) {
        (_, Ok(())) => {}
        (Err(error), Err(_)) | (Ok(()), Err(error)) => return Err(error),
    }
    let length = u32::from_be_bytes(length);
    // Break it: leave this out; `keys::agent::whatever_else_answers_is_no_signature` fails.
    if length > longest {
        return Err(io::Error::other(format!(
            "its answer is said to have {length} bytes, and at most {longest} are read"
        )));
    }
    let mut answer = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    fill(&mut stream, &mut answer, until)?;
    Ok(answer)
}

fn fill(stream: &mut UnixStream, mut rest: &mut [u8], until: Instant) -> io::Result<()> {
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(too_late());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(rest) {
            Ok(0) => return Err(io::Error::other("it hung up before its answer was whole")),
            Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(too_late()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time")
}
