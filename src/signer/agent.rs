//! A role's key in an ssh-agent: the agent holds it, this process asks for each signature.
//!
//! Of the agent's protocol (draft-ietf-sshm-ssh-agent) two requests are spoken: which keys there are, and a signature of bytes. For
//! an Ed25519 key that is the plain signature of exactly these bytes, so what verifies is what any other signer makes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::exchange::exchange;
use crate::attest::PublicKey;
use crate::attest::signer::RawKey;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const ALGORITHM: &[u8] = b"ssh-ed25519";
/// The longest answer that is read, in bytes: what OpenSSH's agent sends at most.
const LONGEST: u32 = 256 * 1024;
/// How long an agent may take; one that asks a person to touch a key takes a while.
const DEADLINE: Duration = Duration::from_secs(30);

/// A key in an agent.
#[derive(Debug)]
pub(super) struct AgentKey {
    socket: PathBuf,
    public: PublicKey,
}

impl AgentKey {
    /// The first of the agent's keys that is wanted.
    pub(super) fn find(socket: &Path, wanted: &[&PublicKey]) -> io::Result<Self> {
        let held = identities(socket)?;
        let public = wanted
            .iter()
            .find(|public| held.iter().any(|blob| *blob == blob_of(public)));
        public
            .map(|public| Self {
                socket: socket.to_owned(),
                public: (*public).clone(),
            })
            .ok_or_else(|| {
                io::Error::other(format!(
                    "the agent holds {} keys, and none that the trust root lists for this role; add it with ssh-add",
                    held.len()
                ))
            })
    }
}

impl RawKey for AgentKey {
    fn public(&self) -> PublicKey {
        self.public.clone()
    }

    fn sign_raw(&self, message: &[u8]) -> Result<[u8; 64], String> {
        let asked = signature(&self.socket, &self.public, message);
        asked.map_err(|error| format!("the agent at {}: {error}", self.socket.display()))
    }
}

/// The wire form of a public key (RFC 8709, section 4).
fn blob_of(public: &PublicKey) -> Vec<u8> {
    let mut blob = Vec::new();
    put(&mut blob, ALGORITHM);
    put(&mut blob, public.as_bytes());
    blob
}

fn identities(socket: &Path) -> io::Result<Vec<Vec<u8>>> {
    let answer = exchange(socket, &[REQUEST_IDENTITIES], LONGEST, DEADLINE)?;
    let mut rest = of_kind(&answer, IDENTITIES_ANSWER)?;
    let count = number(&mut rest)?;
    let mut blobs = Vec::new();
    for _ in 0..count {
        blobs.push(string(&mut rest)?.to_vec());
        string(&mut rest)?;
    }
    Ok(blobs)
}

fn signature(socket: &Path, public: &PublicKey, message: &[u8]) -> io::Result<[u8; 64]> {
    let mut request = vec![SIGN_REQUEST];
    put(&mut request, &blob_of(public));
    put(&mut request, message);
    request.extend([0; 4]);
    let answer = exchange(socket, &request, LONGEST, DEADLINE)?;
    let mut rest = of_kind(&answer, SIGN_RESPONSE)?;
    let mut signature = string(&mut rest)?;
    if string(&mut signature)? != ALGORITHM {
        return Err(malformed());
    }
    let made = string(&mut signature)?.try_into();
    // Whose signature it is, the notary sees, which verifies it before it leaves.
    made.map_err(|_| malformed())
}

fn of_kind(answer: &[u8], kind: u8) -> io::Result<&[u8]> {
    match answer.split_first() {
        Some((found, rest)) if *found == kind => Ok(rest),
        Some(_) => Err(io::Error::other(
            "it refuses: the key is not in it, or it is locked",
        )),
        None => Err(malformed()),
    }
}

fn malformed() -> io::Error {
    io::Error::other("its answer is not that of an ssh-agent")
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(bytes);
}

fn number(rest: &mut &[u8]) -> io::Result<u32> {
    let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(malformed)?;
    *rest = tail;
    Ok(u32::from_be_bytes(*head))
}

fn string<'a>(rest: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let length = usize::try_from(number(rest)?).map_err(|_| malformed())?;
    let (head, tail) = rest.split_at_checked(length).ok_or_else(malformed)?;
    *rest = tail;
    Ok(head)
}
