//! Each role's key in a process of its own, and none in the one that faces the network.

use std::path::PathBuf;

use tokio::process::Command;

use super::inbox::{hidden_fields, look, press};
use super::place::{CODER, SECRETS, World};
use super::process::Process;

/// The roles, and what opens the key of each.
const ROLES: [(&str, &str); 4] = [
    ("proposer", SECRETS[0]),
    ("policy", SECRETS[1]),
    ("approver", SECRETS[2]),
    ("executor", SECRETS[3]),
];

impl World {
    /// Moves each role's key into a home of its own, and names the sockets where their signers will answer.
    fn take_apart(&self) {
        let configured = std::fs::read_to_string(self.place.path("caretaker.yaml")).unwrap();
        let mut apart = configured.clone();
        for (role, secret) in ROLES {
            let keys = self.place.path(&format!("signers/{role}/keys"));
            std::fs::create_dir_all(&keys).unwrap();
            let key = format!("{role}.key");
            std::fs::rename(
                self.place.path(&format!("state/keys/{key}")),
                keys.join(key),
            )
            .unwrap();
            let trust = "trust-root-1.json";
            std::fs::copy(
                self.place.path(&format!("state/keys/{trust}")),
                keys.join(trust),
            )
            .unwrap();
            self.place.write(&format!("signers/{role}/secret"), secret);
            let own =
                format!("keys: {{dir: keys, roles: {{{role}: {{secret: 'file:secret'}}}}}}\n");
            self.place
                .write(&format!("signers/{role}/caretaker.yaml"), &own);
            let line = format!("    {role}: {{secret: ");
            let (before, after) = apart.split_once(&line).unwrap();
            let (_, after) = after.split_once('\n').unwrap();
            apart = format!("{before}    {role}: {{signer: {{socket: {role}.sock}}}}\n{after}");
        }
        self.place.write("caretaker.yaml", &apart);
        for secret in ["policy.secret", "executor.secret"] {
            std::fs::remove_file(self.place.path(secret)).unwrap();
        }
    }

    fn socket(&self, role: &str) -> PathBuf {
        self.place.path(&format!("{role}.sock"))
    }

    /// The process that signs for one role, and has nothing but that key.
    async fn signer(&self, role: &str) -> Process {
        let home = self.place.path(&format!("signers/{role}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
        command
            .args(["--config", "caretaker.yaml", "signer", "--role", role])
            .arg("--socket")
            .arg(self.socket(role))
            .current_dir(&home)
            .env_clear()
            .env("CARETAKER_HOME", &home);
        let (process, line) = Process::start(command, &home.join("log")).await;
        let said = format!("caretaker: the {role}'s signer (SHA256:");
        assert!(line.starts_with(&said), "{line}");
        process
    }

    /// `serve` without any secret of a role in its environment.
    async fn serve_apart(&self) -> (Process, String) {
        let mut command = self.place.command(&["serve"]);
        command
            .env_remove("CARETAKER_PROPOSER_SECRET")
            .env_remove("CARETAKER_APPROVER_SECRET");
        self.place.start(command).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_sign_an_incident_to_its_merge_for_one_that_has_no_key() {
    let mut world = World::new(CODER).await;
    world.take_apart();
    let proposer = world.signer("proposer").await;
    let policy = world.signer("policy").await;
    let approver = world.signer("approver").await;
    let executor = world.signer("executor").await;
    let (serving, pages) = world.serve_apart().await;
    let asked = world.inbox.wait_for("approval-requested", &serving).await;
    let incident = asked["incident"].as_str().unwrap();
    let link = asked["approval_url"].as_str().unwrap();

    // While the approver's signer is gone the answer is kept, and nothing is merged.
    approver.kill().await;
    let (_, page) = look(&world.browser, link).await;
    let answered = press(&world.browser, link, hidden_fields(&page), "approve").await;
    assert_eq!(answered, 303);
    let pulls = world.forge_says("/pulls?state=open").await;
    assert_eq!(pulls.as_array().unwrap().len(), 1, "{pulls}");
    assert!(world.socket("approver").exists());
    let approver = world.signer("approver").await;
    world.inbox.wait_for("incident-resolved", &serving).await;

    let document = world.incident(&pages, incident, "resolved").await;
    let events = world.verified(incident).await;
    assert_eq!(
        events,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    let merge_commit = &document["execution"]["merge_commit"];
    world.exactly_one_is_merged(merge_commit).await;
    // Each remembers what it signed, and the worker has nothing of the kind.
    for (role, _) in ROLES {
        let memory = world.place.path(&format!("signers/{role}/signed/{role}"));
        let lines = std::fs::read_to_string(memory).unwrap();
        assert_eq!(lines.lines().count(), 1, "{role}: {lines}");
    }
    assert!(!world.place.path("home/signed").exists());
    let log = serving.log();
    for secret in SECRETS {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    assert_eq!(serving.terminate().await, Some(0));
    for process in [proposer, policy, approver, executor] {
        assert_eq!(process.terminate().await, Some(0));
    }
    assert_eq!(world.forge.terminate().await, Some(0));
}
