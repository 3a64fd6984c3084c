//! A forge with one repository, and a client that speaks to it.

use std::path::Path;
use std::process::{Command, Output};

use caretaker::forge::{
    FileEdit, Forge, ForgeOptions, ObjectId, Profile, RepositoryHandle, Sources, start, start_with,
};
use reqwest::Method;
use serde_json::{Value, json};

/// A forge with the repository `acme/widget`.
pub(crate) struct Bench {
    pub(crate) forge: Forge,
    pub(crate) repository: RepositoryHandle,
    pub(crate) client: reqwest::Client,
    pub(crate) folder: tempfile::TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or("")
    }
}

pub(crate) fn file(text: &str) -> FileEdit {
    FileEdit::file(text)
}

/// A client that follows nothing and repeats nothing.
pub(crate) fn client() -> reqwest::Client {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::builder()
        .user_agent("forge-test")
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .build()
        .unwrap()
}

/// A forge in a folder of its own, on any free port.
pub(crate) async fn forge(folder: &Path) -> Forge {
    let listen = "127.0.0.1:0".parse().unwrap();
    start(ForgeOptions::new(folder.join("forge"), listen))
        .await
        .unwrap()
}

impl Bench {
    /// With `README.md`, `src/a.txt` and `src/b.txt` on `main`.
    pub(crate) async fn new() -> Self {
        Self::with(&[
            ("README.md", file("# widget\n")),
            (
                "src/a.txt",
                file("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"),
            ),
            ("src/b.txt", file("b\n")),
        ])
        .await
    }

    /// In this form, with this clock and token; with `README.md` on `main`.
    pub(crate) async fn in_form(profile: Profile, sources: Sources) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let mut options = ForgeOptions::new(folder.path().join("forge"), listen);
        options.profile = profile;
        let forge = start_with(options, sources).await.unwrap();
        let files = [("README.md", file("# widget\n"))];
        let repository = forge.create_repository("acme", "widget", &files).unwrap();
        Self {
            forge,
            repository,
            client: client(),
            folder,
        }
    }

    pub(crate) async fn with(files: &[(&str, FileEdit)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let forge = forge(folder.path()).await;
        let repository = forge.create_repository("acme", "widget", files).unwrap();
        Self {
            forge,
            repository,
            client: client(),
            folder,
        }
    }

    /// A request to the API of the repository; `path` begins with a slash or is empty.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.send(method, &format!("/repos/acme/widget{path}"), body)
            .await
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = self
            .client
            .request(method, format!("{}{path}", self.forge.api_url()))
            .bearer_auth(self.forge.token());
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        read(request.send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PUT, path, Some(body)).await
    }

    /// A branch `fix` with these edits, cut from `main`; its tip.
    pub(crate) fn branch(&self, name: &str, edits: &[(&str, FileEdit)]) -> ObjectId {
        self.repository
            .create_branch(name, &self.repository.tip("main").unwrap())
            .unwrap();
        self.repository
            .commit(name, edits, &format!("Work on {name}\n\nIn detail.\n"))
            .unwrap()
    }

    /// Opens a pull request from `head` into `main`; its number.
    pub(crate) async fn pull(&self, head: &str) -> u64 {
        let body = json!({"title": format!("Merge {head}"), "head": head, "base": "main", "body": "Because."});
        let answer = self.post("/pulls", body).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body["number"].as_u64().unwrap()
    }

    /// The repository's address for git, with the token in it.
    pub(crate) fn git_url(&self) -> String {
        self.repository.clone_url().replace(
            "http://",
            &format!("http://x-access-token:{}@", self.forge.token()),
        )
    }

    /// Runs a git client in a folder beneath the bench's.
    pub(crate) fn git(&self, folder: &str, arguments: &[&str]) -> Output {
        git(&self.folder.path().join(folder), arguments)
    }

    /// Asks git about the bare repository directly.
    pub(crate) fn bare(&self, arguments: &[&str]) -> String {
        let output = git(self.repository.git_directory(), arguments);
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// Runs a git client that knows nothing of this machine's configuration.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Output {
    std::fs::create_dir_all(folder).unwrap();
    Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env_remove("GIT_DIR")
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "true"),
        ])
        .envs([
            ("GIT_AUTHOR_NAME", "t"),
            ("GIT_AUTHOR_EMAIL", "t@t"),
            ("GIT_COMMITTER_NAME", "t"),
            ("GIT_COMMITTER_EMAIL", "t@t"),
        ])
        .output()
        .unwrap()
}

pub(crate) async fn read(response: reqwest::Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    let body = if bytes.is_empty() { Value::Null } else { body };
    Answer {
        status,
        headers,
        body,
    }
}
