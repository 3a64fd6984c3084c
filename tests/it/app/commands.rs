//! `caretaker app` as its users meet it: processes, exit codes, and what is printed.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::creating::posting;
use super::provider::{Provider, permissions};
use super::*;

struct Desk {
    folder: tempfile::TempDir,
    provider: Provider,
}

impl Desk {
    async fn new() -> Self {
        let now = caretaker::clock::SystemClock.now();
        Self {
            folder: tempfile::tempdir().unwrap(),
            provider: Provider::start(Arc::new(FixedClock::at(now))).await,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn configure(&self, app: &str) {
        let (api, web) = (self.provider.api_url(), &self.provider.origin);
        let text = format!("github: {{api_url: \"{api}\", web_url: \"{web}\"{app}}}\n");
        std::fs::write(self.path().join("caretaker.yaml"), text).unwrap();
    }

    fn with_key(&self) {
        let file = self.path().join("app.pem");
        std::fs::write(&file, PKCS1).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        self.configure(&format!(
            ", app: {{id: {}, private_key_file: app.pem}}",
            provider::APP
        ));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
        command
            .arg("--config")
            .arg(self.path().join("caretaker.yaml"))
            .arg("app")
            .args(arguments)
            .env_clear()
            .env("CARETAKER_HOME", self.path().join("home"))
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    async fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap()
    }

    /// Without what differs from run to run.
    fn shown(&self, bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec())
            .unwrap()
            .replace(&self.path().display().to_string(), "HOME")
            .replace(&self.provider.origin, "PROVIDER")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn show_says_what_is_missing_and_what_is_more_than_needed() {
    let desk = Desk::new().await;
    desk.with_key();
    let complete = desk.run(&["show"]).await;
    assert_eq!(complete.status.code(), Some(0));
    *desk.provider.shared.app_permissions.lock().unwrap() = permissions(
        "actions: read, contents: write, metadata: read, pull_requests: read, statuses: write, workflows: write",
    );
    let lacking = desk.run(&["show"]).await;
    assert_eq!(lacking.status.code(), Some(1));
    insta::assert_snapshot!(format!(
        "{}\n{}",
        desk.shown(&complete.stdout),
        desk.shown(&lacking.stdout)
    ));
    let document = desk.run(&["show", "--json"]).await;
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["id"], provider::APP);
    assert_eq!(
        document["missing"],
        serde_json::json!({"checks": "read", "pull_requests": "write"})
    );
    assert_eq!(
        document["more_than_needed"],
        serde_json::json!({"statuses": "write", "workflows": "write"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn show_explains_what_it_cannot_say() {
    let desk = Desk::new().await;
    desk.configure("");
    let unconfigured = desk.run(&["show"]).await;
    assert_eq!(unconfigured.status.code(), Some(1));
    desk.with_key();
    std::fs::set_permissions(
        desk.path().join("app.pem"),
        std::fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    let open = desk.run(&["show"]).await;
    assert_eq!(open.status.code(), Some(1));
    desk.with_key();
    let mut away = desk.command(&["show"]);
    away.env("CARETAKER_GITHUB__API_URL", "http://127.0.0.1:1");
    let away = tokio::task::spawn_blocking(move || away.output().unwrap())
        .await
        .unwrap();
    assert_eq!(away.status.code(), Some(3), "it cannot tell");
    let words = [&unconfigured, &open].map(|output| desk.shown(&output.stderr));
    insta::assert_snapshot!(words.join(""));
}

#[tokio::test(flavor = "multi_thread")]
async fn create_serves_one_page_and_prints_the_lines_to_add() {
    let desk = Desk::new().await;
    desk.configure("");
    let mut command = desk.command(&[
        "create",
        "--organisation",
        "octo",
        "--timeout-seconds",
        "60",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let mut url = String::new();
    out.read_line(&mut url).unwrap();
    let browser = browser().build().unwrap();
    let page = browser
        .get(url.trim())
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let between = |before: &str| {
        let rest = page.split_once(before).unwrap().1;
        rest.split_once('"')
            .unwrap()
            .0
            .replace("&#34;", "\"")
            .replace("&quot;", "\"")
    };
    let posted = browser.post(between("method=\"post\" action=\""));
    let posted = posted
        .header("content-type", "application/x-www-form-urlencoded")
        .body(posting(&between("name=\"manifest\" value=\"")));
    // The client follows the provider's redirect, as a browser does.
    let shown = posted.send().await.unwrap().text().await.unwrap();
    assert!(shown.contains("The App is there"), "{shown}");
    let (status, rest) = tokio::task::spawn_blocking(move || {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
        (child.wait().unwrap(), rest)
    })
    .await
    .unwrap();
    assert_eq!(status.code(), Some(0));
    insta::assert_snapshot!(desk.shown(format!("{line}{rest}").as_bytes()));
    let asked = desk.provider.asked();
    assert!(
        asked
            .iter()
            .any(|asked| asked.path == "/organizations/octo/settings/apps/new")
    );
    // What was printed, added to the configuration, is all that `show` needs.
    let file = desk.path().join("home/github-app.pem");
    desk.configure(&format!(
        ", app: {{id: {}, private_key_file: \"{}\"}}",
        provider::APP,
        file.display()
    ));
    assert_eq!(desk.run(&["show"]).await.status.code(), Some(0));
    // A second App does not cost the first one its key.
    let again = desk.run(&["create"]).await;
    assert_eq!(again.status.code(), Some(1));
    assert!(desk.shown(&again.stderr).contains("File exists"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), PKCS1);
}

#[tokio::test(flavor = "multi_thread")]
async fn create_refuses_what_cannot_work() {
    let desk = Desk::new().await;
    desk.configure("");
    let mut words = String::new();
    for arguments in [
        &["create", "--webhook"][..],
        &["create", "--serve-once", "0.0.0.0:0"],
        &["create", "--organisation", "a/b"],
    ] {
        let output = desk.run(arguments).await;
        assert_eq!(output.status.code(), Some(1));
        words.push_str(&desk.shown(&output.stderr));
    }
    insta::assert_snapshot!(
        words
            .split("0.0.0.0:")
            .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
            .collect::<String>()
    );
    assert!(!desk.path().join("home/github-app.pem").exists());
}
