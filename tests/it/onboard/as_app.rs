//! Registering without a token: caretaker acts as the configured App, from the command line to the first incident.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use caretaker::forge::{Plant, Planted, TokenForm, start_with};
use serde_json::{Value, json};

use super::*;
use crate::worker::acting_as_app::{KEY, install, sources, written_down};

struct Desk {
    folder: tempfile::TempDir,
    forge: Forge,
    planted: Planted,
}

impl Desk {
    /// A forge with a failing run, keys, and no App yet.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = ForgeOptions::new(folder.path().join("forge"), ([127, 0, 0, 1], 0).into());
        let forge = start_with(options, sources(Some(TokenForm::Long)));
        let forge = forge.await.unwrap();
        let planted = forge.plant(Plant::RedTest).unwrap();
        let desk = Self {
            folder,
            forge,
            planted,
        };
        desk.configure(None);
        let made = desk.run(&["keys", "init"]).await;
        assert_eq!(made.status.code(), Some(0));
        desk
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }

    fn configure(&self, app: Option<u64>) {
        self.configure_at(self.forge.url(), app);
    }

    /// With the provider at this address.
    fn configure_at(&self, url: &str, app: Option<u64>) {
        let mut github = json!({"api_url": url, "web_url": url, "git_url": url});
        if let Some(id) = app {
            github["app"] = json!({"id": id, "private_key_file": "app.pem"});
        }
        let file = self.home().join("app.pem");
        std::fs::write(&file, KEY).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let document = json!({
            "github": github, "sandbox": {"mode": "none"}, "server": {"listen": "127.0.0.1:0"},
        });
        std::fs::write(self.home().join("caretaker.yaml"), document.to_string()).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
        command
            .args(arguments)
            .current_dir(self.home())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("USER", "tester")
            .env("CARETAKER_HOME", self.home())
            .env("FORGE_TOKEN", self.forge.token())
            .stdin(Stdio::null());
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
        ran.await.unwrap()
    }

    async fn done(&self, arguments: &[&str]) -> Value {
        let Output {
            status,
            stdout,
            stderr,
        } = self.run(arguments).await;
        let error = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(0), "{arguments:?}: {error}");
        serde_json::from_slice(&stdout).unwrap()
    }

    async fn refused(&self, arguments: &[&str]) -> String {
        let Output { status, stderr, .. } = self.run(arguments).await;
        assert_eq!(status.code(), Some(1), "{arguments:?}");
        String::from_utf8(stderr).unwrap()
    }

    /// The kinds and words of a project's history.
    async fn history(&self, project: &str) -> Vec<String> {
        let shown = self.done(&["project", "show", project, "--json"]).await;
        let events = shown["history"].as_array().unwrap().iter();
        let text = |event: &Value, member: &str| event[member].as_str().unwrap().to_owned();
        let lines =
            events.map(|event| format!("{}: {}", text(event, "kind"), text(event, "detail")));
        lines.collect()
    }
}

fn checked<'a>(doctor: &'a Value, check: &str) -> &'a Value {
    let checks = doctor["checks"].as_array().unwrap();
    checks.iter().find(|one| one["check"] == check).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_registered_and_watched_as_the_app() {
    let desk = Desk::new().await;
    let url = desk.planted.repository.url();
    let register = ["project", "register", &url, "--json"];

    let neither = desk.refused(&register).await;
    assert!(
        neither.contains("--token-env") && neither.contains("github.app"),
        "{neither}"
    );
    // The App is there and installed nowhere; then on the repository.
    let (app, installation) = install(&desk.forge, &desk.planted, TokenForm::Long);
    desk.forge.remove_installation(installation);
    desk.configure(Some(app));
    let nowhere = desk.refused(&register).await;
    assert!(nowhere.contains("install the App"), "{nowhere}");
    let (app, _) = install(&desk.forge, &desk.planted, TokenForm::Long);
    desk.configure(Some(app));
    let draft = desk.done(&register).await;
    let (id, digest) = (
        draft["id"].as_str().unwrap(),
        draft["draft_digest"].as_str().unwrap(),
    );
    // The one look before the number was known is in the history of the project that it became.
    let history = desk.history(id).await;
    assert_eq!(history.len(), 1, "{history:#?}");
    assert!(
        history[0].starts_with("token-issued: ") && history[0].contains("for the poller"),
        "{history:#?}"
    );

    let doctor = desk.run(&["doctor", "--json"]).await;
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let credential = &doctor["projects"][0]["credential"];
    assert_eq!(credential["kind"], "installation token of an app");
    assert_eq!(credential["missing"], json!([]));
    assert_eq!(credential["unneeded"], json!([]));
    assert_eq!(credential["expires_at"], Value::Null);
    assert_eq!(checked(&doctor, "app")["state"], "ok");
    // The App's page asks for less than this installation granted: the next one would be short of it.
    let missing = checked(&doctor, "app missing");
    assert_eq!(missing["state"], "failed");
    let found = missing["found"].as_str().unwrap();
    assert!(found.contains("pull_requests: write"), "{found}");
    assert_eq!(checked(&doctor, "app unneeded")["state"], "ok");

    desk.done(&["project", "confirm", id, "--digest", digest, "--json"])
        .await;
    watched(&desk, id).await;
    assert_eq!(written_down(desk.home(), b"ghs_"), None);
    let key = KEY.lines().nth(3).unwrap();
    let database = std::fs::read(desk.home().join("caretaker.db")).unwrap();
    assert!(
        !database
            .windows(key.len())
            .any(|part| part == key.as_bytes())
    );
}

/// A worker finds the failing run as the App, and leaves what happened to its tokens in the history.
async fn watched(desk: &Desk, project: &str) {
    let before = desk.history(project).await.len();
    let mut command = desk.command(&["serve"]);
    let mut worker = command.stdout(Stdio::null()).spawn().unwrap();
    let found = tokio::time::timeout(Duration::from_mins(1), async {
        loop {
            let listed = desk.done(&["incident", "list", "--json"]).await;
            if listed["incidents"].as_array().unwrap().len() == 1 {
                break;
            }
        }
    });
    let found = found.await;
    let id = rustix::process::Pid::from_child(&worker);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let ended = tokio::task::spawn_blocking(move || worker.wait().unwrap());
    assert_eq!(ended.await.unwrap().code(), Some(0));
    found.expect("the failing run became an incident");
    let history = desk.history(project).await;
    assert!(history.len() > before, "{history:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_changes_between_a_token_and_the_app() {
    let desk = Desk::new().await;
    let (app, _) = install(&desk.forge, &desk.planted, TokenForm::Short);
    desk.configure(Some(app));
    let url = desk.planted.repository.url();
    let with_token = ["project", "register", &url, "--token-env", "FORGE_TOKEN"];
    let register = [&with_token[..], &["--json"]].concat();
    let draft = desk.done(&register).await;
    let id = draft["id"].as_str().unwrap();
    assert_eq!(desk.history(id).await, [""; 0], "no token was made");
    let credential = ["project", "credential", id, "--json"];
    let as_app = desk.done(&credential).await;
    assert_ne!(as_app["before"], as_app["after"]);
    let history = desk.history(id).await;
    let made = history
        .iter()
        .filter(|line| line.starts_with("token-issued"));
    assert_eq!(made.count(), 1, "{history:#?}");
    let with_token = [&credential[..], &["--token-env", "FORGE_TOKEN"]].concat();
    assert_eq!(desk.done(&with_token).await["after"], as_app["before"]);

    // A key that cannot be read keeps no token from being given, and is said to whoever wants the App.
    std::fs::remove_file(desk.home().join("app.pem")).unwrap();
    desk.done(&with_token).await;
    let refused = desk.refused(&credential).await;
    assert!(
        refused.contains("app.pem") && refused.contains("--token-env"),
        "{refused}"
    );
    let doctor = desk.run(&["doctor", "--json", "--offline"]).await;
    assert_eq!(doctor.status.code(), Some(1));
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(checked(&doctor, "app")["state"], "failed");
}

/// What doctor says of the credential of the only project.
async fn doctor_on_credential(desk: &Desk) -> (String, String) {
    let ran = desk.run(&["doctor", "--json"]).await;
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let checks = document["projects"][0]["checks"].as_array().unwrap();
    let one = checks.iter().find(|one| one["check"] == "credential");
    let text = |member: &str| one.unwrap()[member].as_str().unwrap().to_owned();
    (text("state"), text("found"))
}

/// Break it: let every error be one of the credential; whoever meets an outage of the provider then throws a good token away.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_does_not_blame_the_credential_for_what_is_not_its_fault() {
    let desk = Desk::new().await;
    let (app, installation) = install(&desk.forge, &desk.planted, TokenForm::Short);
    desk.configure(Some(app));
    let url = desk.planted.repository.url();
    desk.done(&["project", "register", &url, "--json"]).await;
    assert_eq!(doctor_on_credential(&desk).await.0, "ok");

    // Nobody listens there.
    desk.configure_at("http://127.0.0.1:9", Some(app));
    let (state, found) = doctor_on_credential(&desk).await;
    assert_eq!(state, "warning", "{found}");
    assert!(!found.contains("project credential"), "{found}");

    desk.configure(Some(app));
    desk.forge.remove_installation(installation);
    let (state, found) = doctor_on_credential(&desk).await;
    assert_eq!(state, "failed", "{found}");
    assert!(found.contains("install the App"), "{found}");
    assert!(!found.contains("project credential"), "{found}");
}
