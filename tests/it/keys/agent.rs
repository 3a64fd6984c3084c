//! A role's key in an ssh-agent, asked for real.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use caretaker::attest::{Role, SignError, authenticate};
use caretaker::clock::{Clock as _, SystemClock};

use super::Home;
use super::command::caretaker;
use super::succession::drafted;

/// An agent that ends with the test.
struct Agent {
    socket: PathBuf,
    process: String,
}

impl Agent {
    /// Starts one; none where the machine has no OpenSSH.
    fn start(home: &Home) -> Option<Self> {
        let socket = home.folder.path().join("agent.sock");
        // It answers by the time its parent has ended.
        let output = Command::new("ssh-agent")
            .arg("-a")
            .arg(&socket)
            .output()
            .ok()?;
        let said = String::from_utf8(output.stdout).unwrap();
        let process = said.split("SSH_AGENT_PID=").nth(1)?.split(';').next()?;
        Some(Self {
            socket,
            process: process.to_owned(),
        })
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
    let Some(agent) = Agent::start(&home) else {
        // No OpenSSH on this machine: there is nothing to ask.
        return;
    };
    let make = [
        "-q", "-t", "ed25519", "-N", "", "-C", "executor", "-f", "executor",
    ];
    agent.run("ssh-keygen", &make, &home);
    let public = std::fs::read_to_string(home.folder.path().join("executor.pub")).unwrap();
    home.variables.push((
        "CARETAKER_KEYS__ROLES__EXECUTOR__SIGNER__AGENT".to_owned(),
        agent.socket.display().to_string(),
    ));
    let rotate = ["keys", "rotate", "executor", "--public", public.trim()];
    let rotated = caretaker(&home, &rotate);
    assert_eq!(rotated.status.code(), Some(0), "{rotated:?}");
    let now = SystemClock.now();
    // It is listed, and the agent does not have it yet.
    let refused = home.open_at(now).unwrap_err().to_string();
    insta::assert_snapshot!(home.tidy(&refused), @"");

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
    insta::assert_snapshot!(home.tidy(&refused), @"");
}
