//! Each role's key in a process of its own, and none in the one that faces the network.

use std::path::PathBuf;

use tokio::process::Command;

use super::inbox::{hidden_fields, look, press};
use super::place::{CODER, SECRETS, World};
use super::process::{Ended, Process};

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

    /// The same as a user of its own, in whose folders nobody else may look.
    async fn signer_as(&self, role: &str, user: u32) -> Process {
        let home = self.place.path(&format!("signers/{role}"));
        let sockets = self.place.path(&format!("sockets/{role}"));
        std::fs::create_dir_all(&sockets).unwrap();
        let program = self.place.path("caretaker");
        let user = user.to_string();
        let mut chown = Command::new("chown");
        chown.args(["-R", &user]).arg(&home).arg(&sockets);
        assert_eq!(Ended::of(chown).await.code, Some(0));
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
            .args(["--no-new-privs", "--"])
            .arg(program)
            .args(["--config", "caretaker.yaml", "signer", "--role", role])
            .arg("--socket")
            .arg(sockets.join("socket"))
            .args(["--allow-uid", "0"])
            .current_dir(&home)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("CARETAKER_HOME", &home);
        let (process, _) = Process::start(command, &home.join("log")).await;
        process
    }

    /// What a signer answers to a user who connects.
    async fn asked_by(&self, role: &str, user: u32) -> String {
        let ask = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.shutdown(1); print(s.makefile('rb').read())";
        let user = user.to_string();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"])
            .args(["/usr/bin/python3", "-c", ask])
            .arg(self.place.path(&format!("sockets/{role}/socket")));
        Ended::of(command).await.out
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

/// Only root can start processes of several users.
#[tokio::test(flavor = "multi_thread")]
async fn each_signer_is_a_user_of_its_own_and_answers_the_worker_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: signers of different users need root to start them");
        return;
    }
    let mut world = World::new(CODER).await;
    world.take_apart();
    let configured = std::fs::read_to_string(world.place.path("caretaker.yaml")).unwrap();
    let mut apart = configured;
    for (role, _) in ROLES {
        apart = apart.replace(&format!("{role}.sock"), &format!("sockets/{role}/socket"));
    }
    world.place.write("caretaker.yaml", &apart);
    // The signers' users pass through the folder, and may look into nothing else.
    let through = std::fs::Permissions::from_mode(0o711);
    for folder in ["", "signers"] {
        std::fs::set_permissions(world.place.path(folder), through.clone()).unwrap();
    }
    std::fs::copy(
        env!("CARGO_BIN_EXE_caretaker"),
        world.place.path("caretaker"),
    )
    .unwrap();
    let mut signers = Vec::new();
    for (user, (role, _)) in (61_001_u32..).zip(ROLES) {
        signers.push(world.signer_as(role, user).await);
    }
    // Break it: let everybody in (`signer::service::answer_one`).
    for (other, role) in [
        (61_002, "proposer"),
        (61_001, "executor"),
        (65_534, "approver"),
    ] {
        let said = world.asked_by(role, other).await;
        let refusal = format!("user {other} may not use this signer");
        assert!(said.contains(&refusal), "{said}");
    }
    let (serving, pages) = world.serve_apart().await;
    let asked = world.inbox.wait_for("approval-requested", &serving).await;
    let incident = asked["incident"].as_str().unwrap();
    let link = asked["approval_url"].as_str().unwrap();
    let (_, page) = look(&world.browser, link).await;
    let answered = press(&world.browser, link, hidden_fields(&page), "approve").await;
    assert_eq!(answered, 303);
    world.inbox.wait_for("incident-resolved", &serving).await;
    let document = world.incident(&pages, incident, "resolved").await;
    assert_eq!(world.verified(incident).await.len(), 4);
    let merge_commit = &document["execution"]["merge_commit"];
    world.exactly_one_is_merged(merge_commit).await;
    assert_eq!(serving.terminate().await, Some(0));
    for process in signers {
        assert_eq!(process.terminate().await, Some(0));
    }
    assert_eq!(world.forge.terminate().await, Some(0));
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
