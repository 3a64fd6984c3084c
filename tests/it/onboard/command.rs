//! `caretaker forge` and `caretaker project` as their users meet them: separate processes, an environment, exit codes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

pub(super) fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
    command
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("USER", "tester")
        .env("CARETAKER_HOME", home)
        .stdin(Stdio::null());
    command
}

pub(super) fn output(mut command: Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A forge as a process, which ends with the test.
struct ForgeProcess {
    child: Child,
    document: Value,
}

impl ForgeProcess {
    fn start(home: &Path, plants: &[&str]) -> Self {
        let mut arguments = vec!["forge", "--dir", "forge", "--listen", "127.0.0.1:0"];
        for plant in plants {
            arguments.extend(["--plant", plant]);
        }
        let mut command = command(home, &arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let document = serde_json::from_str(&line).unwrap();
        Self { child, document }
    }

    fn text(&self, member: &str) -> &str {
        self.document[member].as_str().unwrap()
    }

    /// Asks it to end; its exit code.
    fn terminate(mut self) -> Option<i32> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for ForgeProcess {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn the_forge_says_where_it_is_serves_and_ends_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let forge = ForgeProcess::start(folder.path(), &["red-test", "denied-path"]);
    let url = forge.text("url");
    assert!(url.starts_with("http://127.0.0.1:") && forge.text("logs_url") != url);
    assert_eq!(forge.text("repository"), format!("{url}/acme/percent"));
    assert!(forge.document["run"].is_u64() && !forge.text("token").is_empty());
    assert_eq!(
        forge.document["planted"][1]["full_name"],
        json!("acme/session")
    );

    let port = url.trim_start_matches("http://");
    let arguments = ["forge", "--dir", "other", "--listen", port];
    let (code, out, error) = output(command(folder.path(), &arguments));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(error.contains("choose a free port"), "{error}");
    let arguments = ["forge", "--dir", "forge", "--listen", "127.0.0.1:0"];
    let (code, _, error) = output(command(folder.path(), &arguments));
    assert!(code == Some(1) && error.contains("not empty"), "{error}");
    for wrong in [
        &["--listen", "nowhere"][..],
        &["--listen", "127.0.0.1:0", "--plant", "x"],
    ] {
        let mut arguments = vec!["forge", "--dir", "third"];
        arguments.extend(wrong);
        assert_eq!(output(command(folder.path(), &arguments)).0, Some(2));
    }
    assert_eq!(forge.terminate(), Some(0));
}

#[test]
fn a_project_is_registered_shown_confirmed_and_paused() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let forge = ForgeProcess::start(home, &["red-test"]);
    let url = forge.text("url");
    let configuration = json!({"github": {"api_url": url, "web_url": url, "git_url": url}});
    std::fs::write(home.join("caretaker.yaml"), configuration.to_string()).unwrap();
    std::fs::write(home.join("rules.yaml"), "denied: ['src/auth/**']\n").unwrap();
    std::fs::write(home.join("intent.md"), "Keep it correct.\u{1b}[2J\n").unwrap();
    let project = |arguments: &[&str]| {
        let mut all = vec!["project"];
        all.extend(arguments);
        let mut command = command(home, &all);
        command.env("FORGE_TOKEN", forge.text("token"));
        output(command)
    };
    let repository = forge.text("repository");
    let register = [
        "register",
        repository,
        "--token-env",
        "FORGE_TOKEN",
        "--rules",
        "rules.yaml",
        "--intent",
        "intent.md",
        "--owner",
        "owner@example.org",
        "--json",
    ];

    let (code, _, error) = project(&register);
    assert!(
        code == Some(1) && error.contains("caretaker keys init"),
        "{error}"
    );
    let (code, _, error) = project(&["list"]);
    assert!(
        code == Some(1) && error.contains("project register"),
        "{error}"
    );
    let (code, _, error) = output(command(home, &["keys", "init"]));
    assert_eq!(code, Some(0), "{error}");

    let (code, out, error) = project(&register);
    assert_eq!(code, Some(0), "{error}");
    let draft: Value = serde_json::from_str(&out).unwrap();
    let (id, digest) = (
        draft["id"].as_str().unwrap(),
        draft["draft_digest"].as_str().unwrap(),
    );
    let listed = || -> Value {
        let (_, out, _) = project(&["list", "--json"]);
        serde_json::from_str::<Value>(&out).unwrap()["projects"][0].clone()
    };
    assert_eq!(
        (&listed()["state"], &listed()["owner"]),
        (&json!("draft"), &json!("mailto:owner@example.org"))
    );
    let (_, shown, _) = project(&["show", id]);
    assert!(
        shown.contains("src/auth/**") && shown.contains(digest),
        "{shown}"
    );
    assert!(!shown.contains('\u{1b}'), "{shown:?}");

    let (code, _, error) = project(&["confirm", id, "--digest", &"0".repeat(64)]);
    assert!(
        code == Some(1) && error.contains("confirm that digest"),
        "{error}"
    );
    assert_eq!(listed()["state"], "draft");
    assert_eq!(project(&["confirm", id, "--digest", digest]).0, Some(0));
    assert_eq!(listed()["state"], "confirmed");
    assert_eq!(project(&["pause", id]).0, Some(0));
    assert_eq!(listed()["state"], "paused");
    let (_, out, _) = project(&["resume", id, "--json"]);
    let resumed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(resumed["state"], "confirmed");

    // The token lies nowhere in the clear.
    let database = std::fs::read(home.join("caretaker.db")).unwrap();
    let token = forge.text("token").as_bytes();
    assert!(!database.windows(token.len()).any(|piece| piece == token));
}

/// A home with keys whose provider is a forge.
fn installed(forge: &ForgeProcess, home: &Path) {
    let url = forge.text("url");
    let configuration = json!({"github": {"api_url": url, "web_url": url, "git_url": url}});
    std::fs::write(home.join("caretaker.yaml"), configuration.to_string()).unwrap();
    assert_eq!(output(command(home, &["keys", "init"])).0, Some(0));
}

#[test]
fn a_project_lives_through_another_token_another_key_and_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let forge = ForgeProcess::start(home, &["red-test"]);
    installed(&forge, home);
    let done = |arguments: &[&str]| -> Value {
        let mut command = command(home, arguments);
        command.env("FORGE_TOKEN", forge.text("token"));
        let (code, out, error) = output(command);
        assert!(
            code == Some(0) && !out.contains(forge.text("token")),
            "{out}{error}"
        );
        serde_json::from_str(&out).unwrap()
    };
    let (repository, token) = (forge.text("repository"), ["--token-env", "FORGE_TOKEN"]);
    let register = [
        "project",
        "register",
        repository,
        token[0],
        token[1],
        "--json",
        "--schedule",
    ];
    let mut wrong = register.to_vec();
    wrong.push("* * * * *");
    let (code, _, error) = output(command(home, &wrong));
    assert!(
        code == Some(2) && error.contains("write six fields"),
        "{error}"
    );
    let mut right = register.to_vec();
    right.push("0 */2 * * * *");
    let draft = done(&right);
    let id = draft["id"].as_str().unwrap();
    let shown = done(&["project", "show", id, "--json"]);
    assert_eq!(shown["schedule"], "0 */2 * * * *");
    done(&["project", "confirm", id, "--json"]);

    let replaced = done(&["project", "credential", id, token[0], token[1], "--json"]);
    assert_eq!(
        (&replaced["before"], &replaced["state"]),
        (&replaced["after"], &json!("confirmed"))
    );
    let rotated = done(&["keys", "rotate-deployment", "--json"]);
    assert_eq!(
        rotated,
        json!({"credentials": 1, "renewed_links": [], "resumed": false})
    );
    // The same token by the other word for the command: what is sealed under the new key opens.
    let again = done(&["project", "token", id, token[0], token[1], "--json"]);
    assert_eq!(again["before"], replaced["after"]);

    doctor_is_content(home, &forge);
    let (code, _, error) = output(command(home, &["project", "rename", id]));
    assert!(
        code == Some(1) && error.contains("nothing to take over"),
        "{error}"
    );
    let removed = done(&["project", "remove", id, "--yes", "--json"]);
    assert_eq!(
        (&removed["removed"], &removed["closed"]),
        (&json!(true), &json!([]))
    );
    let mut other = right.clone();
    other.truncate(6);
    let draft = done(&other);
    done(&[
        "project",
        "confirm",
        draft["id"].as_str().unwrap(),
        "--json",
    ]);
    credentials_are_told(home, id, forge.text("token"));
}

/// What was done to credentials is in the audit stream, and no credential is.
fn credentials_are_told(home: &Path, project: &str, token: &str) {
    let mut told = Vec::new();
    for file in std::fs::read_dir(home.join("audit")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|kind| kind == "ndjson") {
            let text = std::fs::read_to_string(file).unwrap();
            assert!(!text.contains(token));
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            told.extend(lines.collect::<Vec<Value>>());
        }
    }
    let own = |event: &&Value| event["task_id"] == project;
    let names: Vec<&str> = told
        .iter()
        .filter(own)
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "credential_stored",
            "credential_replaced",
            "credential_replaced",
            "credential_removed"
        ]
    );
    let resealed = told
        .iter()
        .find(|event| event["event"] == "credentials_resealed");
    assert_eq!(resealed.unwrap()["fields"]["credentials"], 1);
}

/// Provider, clock and credential are as they should be.
fn doctor_is_content(home: &Path, forge: &ForgeProcess) {
    let (_, out, _) = output(command(home, &["doctor", "--json"]));
    let doctor: Value = serde_json::from_str(&out).unwrap();
    let found = |checks: &Value, check: &str| -> Option<String> {
        let checks = checks.as_array().unwrap();
        let one = checks.iter().find(|one| one["check"] == check)?;
        Some(one["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        found(&doctor["checks"], "provider").as_deref(),
        Some("ok"),
        "{out}"
    );
    assert_eq!(
        found(&doctor["checks"], "provider clock").as_deref(),
        Some("ok"),
        "{out}"
    );
    let block = &doctor["projects"][0];
    assert_eq!(
        found(&block["checks"], "credential").as_deref(),
        Some("ok"),
        "{out}"
    );
    assert_eq!(block["credential"]["kind"], "classic token");
    assert_eq!(block["credential"]["missing"], json!([]));
    assert!(!out.contains(forge.text("token")));
}

#[test]
fn doctor_says_of_a_provider_that_is_not_there_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let forge = ForgeProcess::start(home, &["red-test"]);
    installed(&forge, home);
    let mut register = command(
        home,
        &[
            "project",
            "register",
            forge.text("repository"),
            "--token-env",
            "FORGE_TOKEN",
        ],
    );
    register.env("FORGE_TOKEN", forge.text("token"));
    assert_eq!(output(register).0, Some(0));
    assert_eq!(forge.terminate(), Some(0));
    let (code, out, _) = output(command(home, &["doctor"]));
    assert_eq!(code, Some(1), "{out}");
    assert!(
        out.contains("FAILED   provider") && out.contains("github.api_url"),
        "{out}"
    );
    assert!(
        out.contains("\nproject prj-") && out.contains("warning  credential"),
        "{out}"
    );
    let (_, out, _) = output(command(home, &["doctor", "--offline"]));
    assert!(
        !out.contains("provider") && out.contains("(--offline)"),
        "{out}"
    );
}

#[test]
fn wrong_words_are_told_apart_from_what_cannot_be_done() {
    let folder = tempfile::tempdir().unwrap();
    let project = |arguments: &[&str]| {
        let mut all = vec!["project"];
        all.extend(arguments);
        output(command(folder.path(), &all))
    };
    let register = |more: &[&str]| {
        let mut all = vec!["register", "https://github.com/acme/widget"];
        all.extend(more);
        project(&all)
    };
    let (code, _, error) = register(&[]);
    assert!(
        code == Some(1) && error.contains("--token-env") && error.contains("github.app"),
        "{error}"
    );
    assert_eq!(project(&["confirm", "prj-short"]).0, Some(2));
    let (code, _, error) = register(&["--token-env", "NOT_SET"]);
    assert!(code == Some(1) && error.contains("NOT_SET"), "{error}");
    let (code, _, error) = register(&["--token-env", "PATH", "--rules", "absent.yaml"]);
    assert!(code == Some(1) && error.contains("absent.yaml"), "{error}");
    let (code, _, error) = register(&["--token-env", "PATH", "--rules", "."]);
    assert!(
        code == Some(1) && error.contains("ordinary file"),
        "{error}"
    );
    let (code, _, error) = register(&["--token-env", "PATH", "--owner", "nobody"]);
    assert!(code == Some(1) && error.contains("--owner"), "{error}");
    // A pipe would be waited for.
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let pipe = pipe.to_str().unwrap();
    for option in ["--rules", "--intent", "--health-file"] {
        let (code, _, error) = register(&["--token-env", "PATH", option, pipe]);
        assert!(
            code == Some(1) && error.contains("ordinary file"),
            "{error}"
        );
    }
    let token = format!("ghp_{}", "S3cr3t".repeat(6));
    for given in [token.as_str(), "github_pat_S3cr3t", "S3cr3t\u{1b}[31m", ""] {
        let (code, out, error) = register(&["--token-env", given]);
        assert!(
            code == Some(1) && error.contains("name the variable"),
            "{error}"
        );
        assert!(!error.contains("S3cr3t") && out.is_empty(), "{error}");
        assert!(!error.contains('\u{1b}'), "{error}");
    }
    let past = ["--token-env", "PATH", "--schedule", "0 0 0 1 1 * 1971"];
    let (code, _, error) = register(&past);
    assert!(
        code == Some(1) && error.contains("check its year"),
        "{error}"
    );
}
