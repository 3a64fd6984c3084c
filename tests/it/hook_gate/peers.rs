//! Real clients with our hooks, offline: a scripted model tells them what to do, the gate says whether they may.
//!
//! `tests/run --peers` fetches them and names them in `CARETAKER_PEER_CODEX` and `CARETAKER_PEER_GEMINI`; without these the stories
//! are skipped, loudly. Each runs in a network namespace of its own, where there is nothing but loopback.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use caretaker::hook_gate::{Adapter, Hooks};
use serde_json::{Value, json};

use super::{Desk, policy};
use crate::support::corpus;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    Codex,
    Gemini,
}

impl Client {
    fn program(self) -> Option<String> {
        let name = match self {
            Self::Codex => "CARETAKER_PEER_CODEX",
            Self::Gemini => "CARETAKER_PEER_GEMINI",
        };
        let found = std::env::var(name)
            .ok()
            .filter(|path| Path::new(path).is_file());
        if found.is_none() {
            eprintln!("SKIPPED: {name} names no client; tests/run --peers fetches one");
        }
        found
    }

    const fn adapter(self) -> Adapter {
        match self {
            Self::Codex => Adapter::Codex,
            Self::Gemini => Adapter::Gemini,
        }
    }

    /// A step of the model: a file is written.
    fn writes(self, path: &str) -> Value {
        match self {
            Self::Codex => {
                json!({"tool": "apply_patch", "args": format!("*** Begin Patch\n*** Add File: {path}\n+written\n*** End Patch\n")})
            }
            Self::Gemini => {
                json!({"text": "I write.", "tool": "write_file", "args": {"file_path": path, "content": "written\n"}})
            }
        }
    }

    /// A step of the model: a command is run.
    fn runs(self, command: &str) -> Value {
        match self {
            Self::Codex => json!({"tool": "exec_command", "args": {"cmd": command}}),
            Self::Gemini => {
                json!({"text": "I run.", "tool": "run_shell_command", "args": {"command": command, "description": "x"}})
            }
        }
    }
}

/// One story: what the session may do, what the hooks call, what the model does.
struct Story {
    client: Client,
    desk: Desk,
    /// What stands in the hooks in place of our program.
    hook_program: PathBuf,
    socket: Option<PathBuf>,
    ttl: u64,
    /// What in the rendered configuration is replaced by what.
    replaced: Option<(&'static str, &'static str)>,
    /// Whether the turn does not end by itself; it is cut off then.
    endless: bool,
}

/// What became of it.
struct Told {
    desk: Desk,
    standing: String,
    /// What the model was told in the end.
    fed_back: String,
}

impl Told {
    fn wrote(&self, path: &str) -> bool {
        self.desk.work().join(path).exists()
    }

    fn decisions(&self) -> Vec<String> {
        self.desk
            .receipts()
            .iter()
            .skip(1)
            .map(|gate| {
                format!(
                    "{} {}",
                    gate["tool"].as_str().unwrap(),
                    gate["decision"].as_str().unwrap()
                )
            })
            .collect()
    }
}

impl Story {
    fn of(client: Client) -> Self {
        Self::with(client, &policy())
    }

    fn with(client: Client, policy: &Value) -> Self {
        // Codex refuses a home below /tmp.
        let desk = Desk {
            folder: tempfile::tempdir_in("/var/tmp").unwrap(),
        };
        for name in [
            "work/src",
            "work/docs",
            "home",
            "client/.codex",
            "client/.gemini",
        ] {
            std::fs::create_dir_all(desk.path(name)).unwrap();
        }
        std::fs::write(desk.work().join("README.md"), "hi\n").unwrap();
        let made = Command::new("git")
            .args(["init", "-q"])
            .current_dir(desk.work())
            .status()
            .unwrap();
        assert!(made.success());
        desk.register("S1", policy, &[]).allowed_to_register();
        Self {
            client,
            desk,
            hook_program: super::program().into(),
            socket: None,
            ttl: 600,
            replaced: None,
            endless: false,
        }
    }

    fn configure(&self) {
        let home = self.desk.home();
        let hooks = Hooks {
            program: &self.hook_program,
            session: "S1",
            socket: self.socket.as_deref(),
            home: Some(&home),
            ttl: self.ttl,
        };
        let mut rendered = hooks.render(self.client.adapter());
        if let Some((from, to)) = self.replaced {
            assert!(rendered.contains(from));
            rendered = rendered.replace(from, to);
        }
        match self.client {
            Client::Codex => {
                std::fs::write(self.desk.path("client/.codex/hooks.json"), rendered).unwrap();
                let config = format!(
                    "model = \"fake\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n\
                     [model_providers.fake]\nname = \"fake\"\nbase_url = \"http://127.0.0.1:8123/v1\"\nwire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n\
                     request_max_retries = 1\nstream_max_retries = 1\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
                    self.desk.work().display()
                );
                std::fs::write(self.desk.path("client/.codex/config.toml"), config).unwrap();
            }
            Client::Gemini => {
                let mut settings = json!({
                    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
                    "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
                    "general": {"disableAutoUpdate": true, "enableAutoUpdate": false}, "model": {"name": "gemini-2.5-flash"},
                });
                let hooks: Value = serde_json::from_str(&rendered).unwrap();
                settings["hooks"] = hooks["hooks"].clone();
                std::fs::write(
                    self.desk.path("client/.gemini/settings.json"),
                    settings.to_string(),
                )
                .unwrap();
            }
        }
    }

    /// Runs the client until the model has said everything; `None` when there is no client or no model to script.
    fn tell(self, mut steps: Vec<Value>) -> Option<Told> {
        let program = self.client.program()?;
        let model = corpus("agents/fake_model.py")?;
        self.configure();
        steps.push(json!({"text": "All done."}));
        std::fs::write(self.desk.path("model.py"), model).unwrap();
        std::fs::write(
            self.desk.path("script.json"),
            Value::from(steps).to_string(),
        )
        .unwrap();
        let (run, variables) = match self.client {
            Client::Codex => (
                format!("{program} exec --json --dangerously-bypass-hook-trust -s workspace-write -m gpt-5.5 'fix it'"),
                "FAKE_KEY=dummy".to_owned(),
            ),
            Client::Gemini => (
                format!("node {program} -p 'fix it' --approval-mode yolo --output-format stream-json"),
                "GEMINI_API_KEY=dummy GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8123 GEMINI_CLI_TRUST_WORKSPACE=true".to_owned(),
            ),
        };
        let place = self.desk.folder.path().display();
        let patience = if self.endless { 45 } else { 110 };
        let script = format!(
            "ip link set lo up\npython3 {place}/model.py --port 8123 --script {place}/script.json --log {place}/requests.ndjson & model=$!\n\
             timeout 20 bash -c 'until (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null; do :; done'\n\
             cd {place}/work\ntimeout {patience} env -i HOME={place}/client PATH=/usr/local/bin:/usr/bin:/bin TERM=dumb {variables} {run} \
             >{place}/stream.ndjson 2>{place}/errors.txt </dev/null\nended=$?\nkill $model\nexit $ended\n"
        );
        let ends = if self.endless { 124 } else { 0 };
        let namespace = if rustix::process::getuid().is_root() {
            "-n"
        } else {
            "-rn"
        };
        let ended = Command::new("unshare")
            .args([namespace, "--", "bash", "-c", &script])
            .output()
            .unwrap();
        let errors = std::fs::read_to_string(self.desk.path("errors.txt")).unwrap_or_default();
        assert_eq!(ended.status.code(), Some(ends), "{ended:?} {errors}");
        let stream = self.desk.path("stream.ndjson");
        let proof = self.desk.run(
            &[
                "hook-gate",
                "proof",
                "--session",
                "S1",
                "--adapter",
                self.client.adapter().name(),
                "--stream",
                stream.to_str().unwrap(),
                "--json",
            ],
            b"",
        );
        let proof: Value = serde_json::from_str(&proof.stdout).unwrap();
        let requests = std::fs::read_to_string(self.desk.path("requests.ndjson")).unwrap();
        Some(Told {
            standing: proof["standing"].as_str().unwrap().to_owned(),
            fed_back: requests.lines().last().unwrap_or_default().to_owned(),
            desk: self.desk,
        })
    }
}

/// What holds with every client, story by story.
fn a_write_outside_is_blocked(client: Client) {
    let Some(told) = Story::of(client).tell(vec![client.writes("infra/secret.tf")]) else {
        return;
    };
    assert!(!told.wrote("infra/secret.tf"));
    assert!(
        told.fed_back
            .contains("out-of-scope write refused: infra/secret.tf"),
        "{}",
        told.fed_back
    );
    assert_eq!(told.standing, "gated");
}

fn a_write_inside_is_let_through(client: Client) {
    let Some(told) = Story::of(client).tell(vec![client.writes("src/fix.rs")]) else {
        return;
    };
    assert!(told.wrote("src/fix.rs"));
    assert_eq!(told.standing, "gated");
    assert_eq!(told.decisions().last().unwrap(), "completion ALLOW");
}

fn a_write_by_the_shell_is_blocked(client: Client) {
    let steps = vec![
        client.runs("mkdir -p infra && echo pwned > infra/secret.tf"),
        client.runs("python3 -c 'open(\"infra.tf\",\"w\")'"),
        client.runs("echo fine > src/fine.rs"),
    ];
    let Some(told) = Story::of(client).tell(steps) else {
        return;
    };
    assert!(!told.wrote("infra/secret.tf") && !told.wrote("infra.tf") && told.wrote("src/fine.rs"));
    assert_eq!(told.standing, "gated");
}

fn a_link_is_no_way_out(client: Client) {
    let story = Story::of(client);
    std::fs::create_dir(story.desk.path("outside")).unwrap();
    symlink(
        story.desk.path("outside"),
        story.desk.work().join("src/out"),
    )
    .unwrap();
    let outside = story.desk.path("outside/x.txt");
    let Some(told) = story.tell(vec![client.writes("src/out/x.txt")]) else {
        return;
    };
    assert!(!outside.exists());
    // Gemini looks by itself where the link leads, before it asks anybody.
    let denied = told
        .decisions()
        .iter()
        .any(|decision| decision.ends_with("DENY"));
    assert!(denied || client == Client::Gemini);
    assert_eq!(told.standing, "gated");
}

fn a_turn_is_stopped_once_and_ends_when_the_evidence_is_there(client: Client) {
    let mut policy = policy();
    let once = "test -f ready || { touch ready; exit 1; }";
    policy["path_allowlist"] = json!(["src/", "ready"]);
    policy["producers"][0]["command"] = json!(["sh", "-c", once]);
    let Some(told) = Story::with(client, &policy)
        .tell(vec![client.writes("src/fix.rs"), json!({"text": "Done?"})])
    else {
        return;
    };
    let ends: Vec<String> = told
        .decisions()
        .into_iter()
        .filter(|decision| decision.starts_with("completion"))
        .collect();
    assert_eq!(ends, ["completion DENY", "completion ALLOW"]);
}

/// A script in place of our program.
fn script(story: &Story, text: &str) -> PathBuf {
    let file = story.desk.path("gate.sh");
    std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

/// These clients take a hook that dies for consent. Nothing can be done about that in the hook; the session shows it.
fn a_killed_gate_leaves_an_ungated_session(client: Client) {
    let mut story = Story::of(client);
    story.hook_program = script(&story, "kill -9 $$");
    let Some(told) = story.tell(vec![client.writes("infra/secret.tf")]) else {
        return;
    };
    assert!(
        told.wrote("infra/secret.tf"),
        "the client has learnt to refuse: say so in docs/hook-gate.md"
    );
    assert_eq!(told.standing, "ungated");
}

fn a_hung_gate_leaves_an_ungated_session(client: Client) {
    let mut story = Story::of(client);
    story.hook_program = script(&story, "exec sleep 30");
    story.replaced = Some(match client {
        Client::Codex => ("\"timeout\": 660", "\"timeout\": 2"),
        Client::Gemini => ("\"timeout\": 660000", "\"timeout\": 2000"),
    });
    let Some(told) = story.tell(vec![client.writes("infra/secret.tf")]) else {
        return;
    };
    assert!(
        told.wrote("infra/secret.tf"),
        "the client has learnt to refuse: say so in docs/hook-gate.md"
    );
    assert_eq!(told.standing, "ungated");
}

/// A worker that hangs is another matter: our own program gives up before the client does, and refuses.
fn a_hung_worker_is_a_refusal(client: Client) {
    let mut story = Story::of(client);
    let socket = story.desk.path("hung.sock");
    let _listening = UnixListener::bind(&socket).unwrap();
    story.socket = Some(socket);
    story.ttl = 1;
    // No end of a turn is allowed either.
    story.endless = true;
    let Some(told) = story.tell(vec![
        client.writes("infra/secret.tf"),
        client.writes("src/fix.rs"),
    ]) else {
        return;
    };
    assert!(!told.wrote("infra/secret.tf") && !told.wrote("src/fix.rs"));
}

macro_rules! stories {
    ($($name:ident),+ $(,)?) => {
        mod codex {
            $(#[test] fn $name() { super::$name(super::Client::Codex); })+
        }
        mod gemini {
            $(#[test] fn $name() { super::$name(super::Client::Gemini); })+
        }
    };
}

stories!(
    a_write_outside_is_blocked,
    a_write_inside_is_let_through,
    a_write_by_the_shell_is_blocked,
    a_link_is_no_way_out,
    a_turn_is_stopped_once_and_ends_when_the_evidence_is_there,
    a_killed_gate_leaves_an_ungated_session,
    a_hung_gate_leaves_an_ungated_session,
    a_hung_worker_is_a_refusal,
);

#[test]
fn a_patch_of_two_files_with_one_outside_changes_neither() {
    let client = Client::Codex;
    let patch = "*** Begin Patch\n*** Add File: infra/secret.tf\n+pwned\n*** Update File: README.md\n@@\n-hi\n+ho\n*** End Patch\n";
    let mut policy = policy();
    policy["path_allowlist"] = json!(["src/", "README.md"]);
    let story = Story::with(client, &policy);
    let Some(told) = story.tell(vec![
        json!({"tool": "apply_patch", "args": patch}),
        client.runs(&format!("apply_patch <<'EOF'\n{patch}EOF")),
    ]) else {
        return;
    };
    assert!(!told.wrote("infra/secret.tf"));
    assert_eq!(
        std::fs::read_to_string(told.desk.work().join("README.md")).unwrap(),
        "hi\n"
    );
}
