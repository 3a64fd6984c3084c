//! Clone, fetch and push over HTTP: the CGI program `git http-backend` on the bare repository.

use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::io::ReaderStream;

use super::super::api::{Credentials, Level, allows};
use super::super::git::{CLOSED_SETTINGS, closed_environment};
use super::super::state::{Location, Repository, Shared, TOKEN_OWNER, Token};
use super::push_gate::Gate;
use super::{credentials, header_text, plain};

/// The largest body of a fetch or push, in bytes as sent.
const BODY_LIMIT: u64 = 512_000_000;
/// The largest answer to a push, in bytes: it only says what became of each reference.
const REPORT_LIMIT: u64 = 16_000_000;
/// The longest headers of the CGI program, in bytes.
const HEADER_LIMIT: u64 = 64_000;

/// One request of git's smart protocol.
pub(super) struct Service {
    owner: String,
    name: String,
    /// What follows the repository in the path.
    rest: &'static str,
    pushes: bool,
}

impl Service {
    /// Recognises the three addresses that git uses.
    pub(super) fn of(segments: &[String], query: &str) -> Option<Self> {
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (owner, name, rest, pushes) = match parts.as_slice() {
            [owner, name, "info", "refs"] if query == "service=git-upload-pack" => {
                (owner, name, "info/refs", false)
            }
            [owner, name, "info", "refs"] if query == "service=git-receive-pack" => {
                (owner, name, "info/refs", true)
            }
            [owner, name, "git-upload-pack"] => (owner, name, "git-upload-pack", false),
            [owner, name, "git-receive-pack"] => (owner, name, "git-receive-pack", true),
            _ => return None,
        };
        let name = name.strip_suffix(".git").unwrap_or(name).to_owned();
        Some(Self {
            owner: (*owner).to_owned(),
            name,
            rest,
            pushes,
        })
    }

    fn allowed(&self, token: &Token) -> bool {
        let level = if self.pushes {
            Level::Write
        } else {
            Level::Read
        };
        allows(&token.grant, &[("contents", level)])
    }

    /// What GitHub says to a token without the permission.
    fn denial(&self, repository: &Repository) -> String {
        if self.pushes {
            let name = repository.remembered().full_name();
            format!(
                "Permission to {name}.git denied to {}.\n",
                TOKEN_OWNER.login
            )
        } else {
            "Write access to repository not granted.\n".to_owned()
        }
    }
}

/// Answers git.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    service: Service,
    parts: Parts,
    body: Body,
) -> Response {
    let token = match credentials::of(&parts.headers, shared) {
        Credentials::Token(token) => Some(token),
        Credentials::Refused(refusal) if refusal.status == 403 => {
            return plain(StatusCode::FORBIDDEN, format!("{}\n", refusal.message));
        }
        _ => None,
    };
    let Some(token) = token else {
        let mut response = plain(
            StatusCode::UNAUTHORIZED,
            "Authentication failed for this repository.\n".to_owned(),
        );
        response.headers_mut().insert(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"GitHub\""),
        );
        return response;
    };
    let absent = || plain(StatusCode::NOT_FOUND, "Repository not found.\n".to_owned());
    match shared.locate(&service.owner, &service.name) {
        Location::Nowhere => absent(),
        Location::Here(repository) | Location::Moved(repository)
            if !shared.sees(&token, &repository) =>
        {
            absent()
        }
        Location::Moved(repository) => redirect(shared, &repository, &service, &parts),
        Location::Here(repository) if service.pushes && repository.remembered().archived => plain(
            StatusCode::FORBIDDEN,
            "This repository was archived so it is read-only.\n".to_owned(),
        ),
        Location::Here(repository) if !service.allowed(&token) => {
            plain(StatusCode::FORBIDDEN, service.denial(&repository))
        }
        Location::Here(repository) => {
            let unavailable = |error: std::io::Error| {
                plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    format!("running git http-backend: {error}\n"),
                )
            };
            run(shared, repository, &token, &service, &parts, body)
                .await
                .unwrap_or_else(unavailable)
        }
    }
}

fn redirect(
    shared: &Shared,
    repository: &Repository,
    service: &Service,
    parts: &Parts,
) -> Response {
    let query = parts
        .uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let target = format!(
        "{}/{}.git/{}{query}",
        shared.url,
        repository.remembered().full_name(),
        service.rest
    );
    let mut response = plain(StatusCode::MOVED_PERMANENTLY, String::new());
    if let Ok(target) = HeaderValue::from_str(&target) {
        response.headers_mut().insert(header::LOCATION, target);
    }
    response
}

async fn run(
    shared: &Shared,
    repository: Arc<Repository>,
    token: &Token,
    service: &Service,
    parts: &Parts,
    body: Body,
) -> std::io::Result<Response> {
    let gate = Gate::new(&shared.directory, &repository.remembered(), token)?;
    let mut child = started(shared, &repository, &gate, service, parts)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(std::io::Error::other("its pipes are missing"));
    };
    // The body flows in while the answer flows out.
    let feeding = tokio::spawn(feed(stdin, body));
    let mut output = BufReader::new(stdout);
    let mut response = headers_of(&mut output).await?;
    if service.rest == "git-receive-pack" {
        let mut report = Vec::new();
        output.take(REPORT_LIMIT).read_to_end(&mut report).await?;
        child.wait().await?;
        // Whoever pushed may act on it at once, so its consequences are drawn before the answer leaves.
        let followed = tokio::task::spawn_blocking(move || repository.current().map(drop)).await;
        if !matches!(followed, Ok(Ok(()))) {
            return Err(std::io::Error::other(
                "the pushed references could not be read",
            ));
        }
        *response.body_mut() = Body::from(gate.explained(report)?);
    } else {
        tokio::spawn(reaped(child, feeding));
        *response.body_mut() = Body::from_stream(ReaderStream::new(output));
    }
    Ok(response)
}

fn started(
    shared: &Shared,
    repository: &Repository,
    gate: &Gate,
    service: &Service,
    parts: &Parts,
) -> std::io::Result<Child> {
    let text = |name: &str| header_text(&parts.headers, name).unwrap_or_default();
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .current_dir("/")
        .env_clear()
        .envs(closed_environment())
        .envs(gate.environment(CLOSED_SETTINGS.len()))
        .env("GIT_PROJECT_ROOT", &shared.directory)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env(
            "PATH_INFO",
            format!("/{}.git/{}", repository.id, service.rest),
        )
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", text("content-type"))
        .env("REMOTE_USER", "caretaker-bot")
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let passed_on = [
        ("content-length", "CONTENT_LENGTH"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "GIT_PROTOCOL"),
    ];
    for (name, variable) in passed_on {
        if let Some(value) = header_text(&parts.headers, name) {
            command.env(variable, value);
        }
    }
    command.spawn()
}

/// Hands the request's body to the program. Where git wants no more, or the client sends too much or breaks off, the pipe
/// just ends; git then says what is missing.
async fn feed(mut stdin: ChildStdin, mut body: Body) {
    let mut left = BODY_LIMIT;
    while let Some(Ok(frame)) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let Some(rest) = left.checked_sub(data.len() as u64) else {
            return;
        };
        left = rest;
        if stdin.write_all(&data).await.is_err() {
            return;
        }
    }
}

/// Waits for the program's end, so that it leaves no zombie.
async fn reaped(mut child: Child, feeding: tokio::task::JoinHandle<()>) {
    if child.wait().await.is_ok() {
        feeding.abort();
    }
}

/// Reads the headers that a CGI program prints before its body.
async fn headers_of(output: &mut BufReader<ChildStdout>) -> std::io::Result<Response> {
    let mut response = Response::new(Body::empty());
    let mut limited = output.take(HEADER_LIMIT);
    loop {
        let mut line = String::new();
        if limited.read_line(&mut line).await? == 0 {
            return Err(std::io::Error::other("it ended before its headers did"));
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(response);
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value
                .split(' ')
                .next()
                .and_then(|code| code.parse().ok())
                .and_then(|code| StatusCode::from_u16(code).ok());
            *response.status_mut() = code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        } else if let (Ok(name), Ok(value)) =
            (HeaderName::try_from(name), HeaderValue::from_str(value))
        {
            response.headers_mut().insert(name, value);
        }
    }
}
