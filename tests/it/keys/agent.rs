//! A role's key in an ssh-agent, asked for real.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use caretaker::attest::{KeyUse, PublicKey, Role, SignError, authenticate};
use caretaker::clock::{Clock as _, SystemClock};
use caretaker::signer::Wish;
use ed25519_dalek::{Signer as _, SigningKey};

use super::command::caretaker;
use super::succession::drafted;
use super::{Home, NOW};

/// Where the executor's key is said to be.
const PLACE: &str = "CARETAKER_KEYS__ROLES__EXECUTOR__SIGNER__AGENT";

/// An agent that ends with the test.
struct Agent {
    socket: PathBuf,
    process: String,
}

impl Agent {
    /// Starts one.
    fn start(home: &Home) -> Self {
        let socket = home.folder.path().join("agent.sock");
        // It answers by the time its parent has ended.
        let output = Command::new("ssh-agent")
            .arg("-a")
            .arg(&socket)
            .output()
            .expect("OpenSSH is not installed; tests/run installs it");
        let said = String::from_utf8(output.stdout).unwrap();
        let (_, process) = said.split_once("SSH_AGENT_PID=").unwrap();
        let (process, _) = process.split_once(';').unwrap();
        Self {
            socket,
            process: process.to_owned(),
        }
    }

    fn run(&self, program: &str, arguments: &[&str], home: &Home) -> String {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(home.folder.path())
            .env("SSH_AUTH_SOCK", &self.socket)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let ended = Command::new("ssh-agent")
            .arg("-k")
            .env("SSH_AGENT_PID", &self.process)
            .output();
        drop(ended);
    }
}

#[test]
fn an_agent_signs_for_a_role_and_its_signatures_verify_as_any_other() {
    let mut home = Home::new();
    assert_eq!(caretaker(&home, &["keys", "init"]).status.code(), Some(0));
    let agent = Agent::start(&home);
    let make = [
        "-q", "-t", "ed25519", "-N", "", "-C", "executor", "-f", "executor",
    ];
    agent.run("ssh-keygen", &make, &home);
    let public = std::fs::read_to_string(home.folder.path().join("executor.pub")).unwrap();
    home.variables
        .push((PLACE.to_owned(), agent.socket.display().to_string()));
    let rotate = ["keys", "rotate", "executor", "--public", public.trim()];
    let rotated = caretaker(&home, &rotate);
    assert_eq!(rotated.status.code(), Some(0), "{rotated:?}");
    let now = SystemClock.now();
    // It is listed, and the agent does not have it yet.
    let refused = home.open_at(now).unwrap_err().to_string();
    insta::assert_snapshot!(home.tidy(&refused), @"asking the agent at …/agent.sock for the executor's key: the agent holds 0 keys, and none that the trust root lists for this role; add it with ssh-add");

    agent.run("ssh-add", &["-q", "executor"], &home);
    std::fs::remove_file(home.file("executor.key")).unwrap();
    let keyring = home.open_at(now).unwrap();
    let signer = keyring.signer(Role::Executor);
    let listed = agent.run("ssh-keygen", &["-l", "-f", "executor.pub"], &home);
    assert!(listed.contains(signer.keyid().as_str()), "{listed}");
    let one = drafted(keyring.trust(), now, "one");
    let envelope = signer.sign_after(&one, &[]).unwrap();
    authenticate(keyring.history(), &envelope).unwrap();
    // It remembers, as every signer does.
    let other = signer.sign(&drafted(keyring.trust(), now, "other"));
    assert!(matches!(other, Err(SignError::Position { .. })));

    agent.run("ssh-add", &["-q", "-D"], &home);
    let refused = signer.sign_after(&one, &[]).unwrap_err().to_string();
    insta::assert_snapshot!(home.tidy(&refused), @"the executor signer cannot be reached: the agent at …/agent.sock: it refuses: the key is not in it, or it is locked");
}

/// The key of an agent that is not one.
fn held() -> SigningKey {
    SigningKey::from_bytes(&[9; 32])
}

/// Bytes with their length before them.
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap();
    [&length.to_be_bytes(), bytes].concat()
}

fn identities(blobs: &[Vec<u8>]) -> Vec<u8> {
    let mut answer = vec![12];
    answer.extend(u32::try_from(blobs.len()).unwrap().to_be_bytes());
    for blob in blobs {
        answer.extend(string(blob));
        answer.extend(string(b"a comment"));
    }
    string(&answer)
}

fn blob(key: &SigningKey) -> Vec<u8> {
    let public = key.verifying_key().to_bytes();
    [string(b"ssh-ed25519"), string(&public)].concat()
}

fn signature(algorithm: &[u8], signature: &[u8]) -> Vec<u8> {
    let blob = [string(algorithm), string(signature)].concat();
    string(&[vec![14], string(&blob)].concat())
}

fn honest(message: &[u8]) -> Vec<u8> {
    signature(b"ssh-ed25519", &held().sign(message).to_bytes())
}

/// Something at an agent's socket that answers what it is told to.
fn pretend(socket: &Path, mut answer: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static) {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut request = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut request).unwrap();
            // Whoever has seen enough does not read the rest.
            drop(stream.write_all(&answer(&request)));
        }
    });
}

/// A home whose executor's key is the one that is held at a socket.
fn by_agent(story: &'static str) -> (Home, PathBuf) {
    let mut home = Home::made(story);
    let socket = home.folder.path().join("agent.sock");
    let place = (PLACE.to_owned(), socket.display().to_string());
    home.variables.push(place);
    let public = PublicKey::from_bytes(&held().verifying_key().to_bytes()).unwrap();
    let adopt = Wish::Adopt(KeyUse::Executor, public);
    home.perform(&adopt, NOW).unwrap();
    (home, socket)
}

#[test]
fn whatever_else_answers_is_no_signature() {
    let wrong: [fn(&[u8]) -> Vec<u8>; 11] = [
        // Another key's signature, and this key's of something else.
        |message| {
            let other = SigningKey::from_bytes(&[8; 32]).sign(message);
            signature(b"ssh-ed25519", &other.to_bytes())
        },
        |_| honest(b"pay the bearer"),
        |message| signature(b"rsa-sha2-256", &held().sign(message).to_bytes()),
        |message| signature(b"ssh-ed25519", &held().sign(message).to_bytes()[1..]),
        // A length that goes beyond, no answer, the refusal, another answer.
        |_| string(&[14, 0xff, 0xff, 0xff, 0xff, 0]),
        |_| string(&[14]),
        |_| string(b""),
        |_| string(&[5]),
        |_| identities(&[blob(&held())]),
        // Four gigabytes, and less than was said.
        |_| vec![0xff; 4],
        |message| honest(message)[..40].to_vec(),
    ];
    let (home, socket) = by_agent("odd answers");
    let mut answers = VecDeque::from(wrong);
    pretend(&socket, move |request| match request.split_first() {
        Some((13, rest)) => {
            let message = &rest[4 + 51 + 4..rest.len() - 4];
            answers.pop_front().unwrap_or(honest)(message)
        }
        _ => identities(&[blob(&SigningKey::from_bytes(&[8; 32])), blob(&held())]),
    });
    let keyring = home.open().unwrap();
    let signer = keyring.signer(Role::Executor);
    let one = drafted(keyring.trust(), NOW, "one");
    let refusals = wrong.map(|_| {
        let refused = signer.sign_after(&one, &[]).unwrap_err();
        home.tidy(&refused.to_string())
    });
    insta::assert_snapshot!(refusals.join("\n"), @r"
    the executor signer fails: 0 of the keys allowed to sign this did, 1 are needed
    the executor signer fails: 0 of the keys allowed to sign this did, 1 are needed
    the executor signer cannot be reached: the agent at …/agent.sock: its answer is not that of an ssh-agent
    the executor signer cannot be reached: the agent at …/agent.sock: its answer is not that of an ssh-agent
    the executor signer cannot be reached: the agent at …/agent.sock: its answer is not that of an ssh-agent
    the executor signer cannot be reached: the agent at …/agent.sock: its answer is not that of an ssh-agent
    the executor signer cannot be reached: the agent at …/agent.sock: its answer is not that of an ssh-agent
    the executor signer cannot be reached: the agent at …/agent.sock: it refuses: the key is not in it, or it is locked
    the executor signer cannot be reached: the agent at …/agent.sock: it refuses: the key is not in it, or it is locked
    the executor signer cannot be reached: the agent at …/agent.sock: its answer is said to have 4294967295 bytes, and at most 262144 are read
    the executor signer cannot be reached: the agent at …/agent.sock: it hung up before its answer was whole
    ");
    // The same bytes still may have the position.
    let envelope = signer.sign_after(&one, &[]).unwrap();
    authenticate(keyring.history(), &envelope).unwrap();
}

#[test]
fn an_agent_that_lists_nonsense_or_other_keys_opens_nothing() {
    let (home, socket) = by_agent("odd keys");
    let lists = [
        identities(&[]),
        identities(&[blob(&SigningKey::from_bytes(&[8; 32])), b"ssh-rsa".to_vec()]),
        string(&[12, 0xff, 0xff, 0xff, 0xff]),
        string(&[12, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]),
        string(&[12]),
        string(&[14, 0, 0, 0, 0]),
        vec![0xff; 4],
    ];
    let mut answers = VecDeque::from(lists.clone());
    pretend(&socket, move |_| answers.pop_front().unwrap_or_default());
    let refusals = lists.map(|_| home.refusal());
    insta::assert_snapshot!(refusals.join("\n"), @r"
    asking the agent at …/agent.sock for the executor's key: the agent holds 0 keys, and none that the trust root lists for this role; add it with ssh-add
    asking the agent at …/agent.sock for the executor's key: the agent holds 2 keys, and none that the trust root lists for this role; add it with ssh-add
    asking the agent at …/agent.sock for the executor's key: its answer is not that of an ssh-agent
    asking the agent at …/agent.sock for the executor's key: its answer is not that of an ssh-agent
    asking the agent at …/agent.sock for the executor's key: its answer is not that of an ssh-agent
    asking the agent at …/agent.sock for the executor's key: it refuses: the key is not in it, or it is locked
    asking the agent at …/agent.sock for the executor's key: its answer is said to have 4294967295 bytes, and at most 262144 are read
    ");
}
