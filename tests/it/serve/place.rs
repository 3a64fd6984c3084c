//! An installation in a folder, and a forge as a process of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;
use tokio::process::Command;

use super::inbox::{Inbox, browser, look};
use super::process::{Ended, Process, bounded};

/// What opens each role's key, by the configured place.
const PROPOSER: &str = "proposer-0f2c7a1be94d4c58a1d30b6f";
pub(crate) const POLICY: &str = "policy-9d31e8a76c0b4f22b8e5d47a";
const APPROVER: &str = "approver-5b8e21c9f70a4d6e93c1a2f4";
pub(crate) const EXECUTOR: &str = "executor-c47f10d2a5384be6907d8e1b";
/// Everything that no log may hold, beside tokens.
pub(crate) const SECRETS: [&str; 4] = [PROPOSER, POLICY, APPROVER, EXECUTOR];

/// The coder of these stories: it knows one defect.
pub(crate) const CODER: &str = include_str!("coder.py");
pub(crate) const RULES: &str = "denied:
  - {glob: 'src/auth/**', reason: 'authentication is changed by people only'}
checks:
  required: [{name: test, app: github-actions}]
merge_method: squash
base: main
";

static HOSTS: AtomicU8 = AtomicU8::new(1);

/// A loopback address that no other test listens on, so that a port found free there stays free.
fn own_host() -> String {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    format!("127.{}.{high}.{low}", HOSTS.fetch_add(1, Ordering::SeqCst))
}

/// A folder with a configuration file, the state beside it, and a home for what is not configured.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn with(configuration: &str) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        place.write("caretaker.yaml", configuration);
        place
    }

    /// With keys, and nobody to tell, nothing to watch and no coder.
    pub(crate) async fn with_keys() -> Self {
        let place = Self::with(
            "database: {url: 'sqlite://state/caretaker.db'}
server: {listen: '127.0.0.1:0'}
keys: {dir: 'state/keys', roles: {approver: {secret: 'env:CARETAKER_APPROVER_SECRET'}}}
sandbox: {mode: none}
",
        );
        let made = place.run(&["keys", "init"]).await;
        assert_eq!(made.code, Some(0), "{}", made.error);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(self.path(name), content).unwrap();
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(self.path(name), private).unwrap();
    }

    /// A command in this folder, with the environment of its owner.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
        command
            .args(["--config", "caretaker.yaml"])
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("CARETAKER_HOME", self.path("home"))
            .env("CARETAKER_PROPOSER_SECRET", PROPOSER)
            .env("CARETAKER_APPROVER_SECRET", APPROVER);
        for name in ["PATH", "HOME", "RUSTUP_HOME"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments)).await
    }

    /// Starts `caretaker serve` (or `web`) and reads where its pages are.
    pub(crate) async fn start(&self, command: Command) -> (Process, String) {
        let (process, line) = Process::start(command, &self.path("log")).await;
        let pages = line.strip_prefix("caretaker: pages at ");
        let pages = pages.unwrap_or_else(|| panic!("{line}: {}", process.log()));
        (process, pages.to_owned())
    }

    /// Every file below the folder, for seeing that nothing was left.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                let inside = path.strip_prefix(self.folder.path()).unwrap();
                found.push(inside.display().to_string());
            }
        }
        found.sort();
        found
    }
}

/// A forge with one planted repository, and an installation that watches it: everything through the command line.
pub(crate) struct World {
    pub(crate) place: Place,
    pub(crate) forge: Process,
    pub(crate) planted: Value,
    pub(crate) inbox: Inbox,
    pub(crate) browser: reqwest::Client,
}

impl World {
    pub(crate) async fn new(coder: &str) -> Self {
        Self::with_rules(coder, RULES).await
    }

    pub(crate) async fn with_rules(coder: &str, rules: &str) -> Self {
        let inbox = Inbox::open().await;
        let place = Place::with("{}");
        place.write("coder.py", coder);
        place.write("rules.yaml", rules);
        place.write("policy.secret", POLICY);
        place.write("executor.secret", EXECUTOR);
        let (forge, planted) = start_forge(&place).await;
        let configuration = configuration(planted["url"].as_str().unwrap(), &inbox.url);
        place.write("caretaker.yaml", &configuration);
        let world = Self {
            place,
            forge,
            planted,
            inbox,
            browser: browser(),
        };
        world.register().await;
        world
    }

    async fn register(&self) {
        let made = self.place.run(&["keys", "init"]).await;
        assert_eq!(made.code, Some(0), "{}", made.error);
        let repository = self.planted["repository"].as_str().unwrap();
        let mut register = self.place.command(&["project", "register", repository]);
        register
            .args(["--token-env", "FORGE_TOKEN", "--rules", "rules.yaml"])
            .args(["--owner", "mailto:owner@example.org", "--json"])
            .env("FORGE_TOKEN", self.token());
        let draft = Ended::of(register).await.json();
        let id = draft["id"].as_str().unwrap();
        let confirmed = self.place.run(&["project", "confirm", id]).await;
        assert_eq!(confirmed.code, Some(0), "{}", confirmed.error);
    }

    pub(crate) fn token(&self) -> &str {
        self.planted["token"].as_str().unwrap()
    }

    pub(crate) async fn serve(&self) -> (Process, String) {
        self.place.start(self.place.command(&["serve"])).await
    }

    /// What the forge's interface answers about the planted repository.
    pub(crate) async fn forge_says(&self, path: &str) -> Value {
        let url = self.planted["url"].as_str().unwrap();
        let request = self
            .browser
            .get(format!("{url}/repos/acme/percent{path}"))
            .bearer_auth(self.token());
        let answer = bounded(path, request.send()).await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap()
    }

    /// The incident's document once it has this stage. What ends an incident is told before the last event is signed.
    pub(crate) async fn incident(&self, pages: &str, id: &str, stage: &str) -> Value {
        let address = format!("{pages}/api/v1/incidents/{id}");
        bounded(stage, async {
            loop {
                let (status, text) = look(&self.browser, &address).await;
                assert_eq!(status, 200, "{text}");
                let document: Value = serde_json::from_str(&text).unwrap();
                if document["stage"] == stage {
                    return document;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        })
        .await
    }

    /// The types of the events of a ledger that verifies.
    pub(crate) async fn verified(&self, incident: &str) -> Vec<String> {
        let verified = bounded("the ledger", async {
            loop {
                let verified = self
                    .place
                    .run(&["ledger", "verify", incident, "--json"])
                    .await;
                // The last event may still wait for its signature.
                if verified.code != Some(3) {
                    return verified;
                }
            }
        });
        let report = verified.await.json();
        assert_eq!(report["verdict"], "valid");
        let events = report["events"].as_array().unwrap().iter();
        events
            .enumerate()
            .map(|(position, event)| {
                assert_eq!(event["seq"], position);
                event["type"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    /// The one pull request there ever was is merged, and the fix with its test is on `main`.
    pub(crate) async fn exactly_one_is_merged(&self, merge_commit: &Value) {
        let pulls = self.forge_says("/pulls?state=all").await;
        assert_eq!(pulls.as_array().unwrap().len(), 1, "{pulls}");
        let number = &pulls[0]["number"];
        let pull = self.forge_says(&format!("/pulls/{number}")).await;
        assert_eq!(pull["merged"], true);
        assert_eq!(&pull["merge_commit_sha"], merge_commit);
        let main = self.forge_says("/branches/main").await;
        assert_eq!(&main["commit"]["sha"], merge_commit);
        let tree = self.forge_says("/git/trees/main?recursive=1").await;
        let paths = tree["tree"].as_array().unwrap().iter();
        let paths: Vec<_> = paths.map(|entry| entry["path"].as_str().unwrap()).collect();
        assert!(paths.contains(&"tests/hex_digits.rs"), "{paths:?}");
        let clone = self.place.path("look");
        let text = cloned(
            &self.planted["planted"][0]["clone_url"],
            self.token(),
            &clone,
        )
        .await;
        assert!(text.contains("b'a'..=b'f' =>"), "{text}");
    }
}

pub(crate) async fn start_forge(place: &Place) -> (Process, Value) {
    let arguments = ["forge", "--dir", "forge", "--listen", "127.0.0.1:0"];
    let mut command = place.command(&arguments);
    command.args(["--plant", "red-test"]);
    let (forge, line) = Process::start(command, &place.path("forge.log")).await;
    (forge, serde_json::from_str(&line).unwrap())
}

/// The smallest configuration that must work, with addresses of this test.
pub(crate) fn configuration(forge: &str, hook: &str) -> String {
    let listener = std::net::TcpListener::bind((own_host(), 0)).unwrap();
    let pages = listener.local_addr().unwrap();
    format!(
        r#"database: {{url: "sqlite://state/caretaker.db"}}
server: {{listen: "{pages}", public_url: "http://{pages}"}}
github: {{api_url: "{forge}", web_url: "{forge}", git_url: "{forge}"}}
poll: {{schedule: "* * * * * *"}}                      # cron with seconds
keys:
  dir: "state/keys"
  roles:
    proposer: {{secret: "env:CARETAKER_PROPOSER_SECRET"}}
    policy: {{secret: "file:policy.secret"}}
    approver: {{secret: "env:CARETAKER_APPROVER_SECRET"}}
    executor: {{secret: "file:executor.secret"}}
agent: {{adapter: command, command: [python3, coder.py]}}
sandbox: {{mode: auto}}
approvals: {{link_ttl_seconds: 86400}}
notify: [{{kind: webhook, url: "{hook}"}}]
identity: {{require: link}}
"#
    )
}

/// The file with the defect, in a fresh clone of what the forge serves.
async fn cloned(url: &Value, token: &str, folder: &Path) -> String {
    let url = url
        .as_str()
        .unwrap()
        .replacen("://", &format!("://x-access-token:{token}@"), 1);
    let mut clone = Command::new("git");
    clone
        .args(["clone", "--quiet", &url])
        .arg(folder)
        .env_remove("GIT_DIR");
    let cloned = Ended::of(clone).await;
    assert_eq!(cloned.code, Some(0), "{}", cloned.error);
    std::fs::read_to_string(folder.join("src/percent.rs")).unwrap()
}
