//! The few pages that links of the API lead to, for whoever opens one in a browser.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::super::encoding::html_escaped;
use super::super::state::{
    Location, PullRequest, PullState, Repository, RepositoryState, Run, Shared,
};

/// The page of this address, `None` where there is none.
pub(super) fn page(shared: &Shared, method: &str, segments: &[String]) -> Option<Response> {
    if !shared.open_pages || !matches!(method, "GET" | "HEAD") {
        return None;
    }
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (title, content) = match parts.as_slice() {
        [] => ("Repositories".to_owned(), overview(shared)),
        ["repos" | "repositories", ..] => return None,
        [owner, name, rest @ ..] => {
            let (Location::Here(repository) | Location::Moved(repository)) =
                shared.locate(owner, name)
            else {
                return None;
            };
            let state = repository.current().ok()?;
            let content = match rest {
                [] => repository_page(&state),
                ["pull", number] => {
                    pull_page(&repository, &state, state.pull(number.parse().ok()?)?)?
                }
                ["actions", "runs", run, ..] => run_page(
                    state
                        .runs
                        .iter()
                        .find(|known| known.id.to_string() == *run)?,
                ),
                _ => return None,
            };
            (state.full_name(), content)
        }
        _ => return None,
    };
    Some(document(&title, &content))
}

/// A whole page; `content` is HTML already.
fn document(title: &str, content: &str) -> Response {
    let style = "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto}";
    let title = html_escaped(title);
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{style}</style><h1>{title}</h1>{content}\
         <p><small>A local stand-in for GitHub. <a href=\"/\">All repositories</a></small></p></html>\n"
    );
    let mut response = Response::new(Body::from(page));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    );
    response
}

fn overview(shared: &Shared) -> String {
    let names = shared
        .repositories()
        .into_iter()
        .map(|repository| repository.remembered().full_name());
    let items = names
        .map(|name| format!("<li><a href=\"/{0}\">{0}</a></li>", html_escaped(&name)))
        .collect::<Vec<_>>()
        .concat();
    format!("<ul>{items}</ul>")
}

fn repository_page(state: &RepositoryState) -> String {
    let root = html_escaped(&state.full_name());
    let branches = state
        .references
        .iter()
        .map(|(name, id)| {
            format!(
                "<li>{} <code>{}</code></li>",
                html_escaped(name),
                &id.as_str()[..12]
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let pulls = state
        .pulls
        .iter()
        .map(|pull| {
            format!(
                "<li><a href=\"/{root}/pull/{0}\">#{0} {1}</a> ({2})</li>",
                pull.number,
                html_escaped(&pull.title),
                word(pull)
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let runs = state
        .runs
        .iter()
        .map(|run| {
            format!(
                "<li><a href=\"/{root}/actions/runs/{0}\">{1} {0}</a></li>",
                run.id,
                html_escaped(&run.workflow)
            )
        })
        .collect::<Vec<_>>()
        .concat();
    format!(
        "<h2>Pull requests</h2><ul>{pulls}</ul><h2>Runs</h2><ul>{runs}</ul><h2>References</h2><ul>{branches}</ul>"
    )
}

fn word(pull: &PullRequest) -> &'static str {
    match pull.state {
        PullState::Open if pull.draft => "draft",
        PullState::Open => "open",
        PullState::Closed { .. } => "closed",
        PullState::Merged(_) => "merged",
    }
}

fn pull_page(
    repository: &Repository,
    state: &RepositoryState,
    pull: &PullRequest,
) -> Option<String> {
    let comparison = repository.pull_comparison(state, pull).ok()?;
    let merge_base = comparison.merge_base.as_ref()?;
    let patches = repository
        .git
        .patches(merge_base, &pull.head_sha, &comparison.files)
        .ok()?;
    let files = comparison
        .files
        .iter()
        .zip(patches)
        .map(|(file, patch)| {
            format!(
                "<h3>{}</h3><pre>{}</pre>",
                html_escaped(&file.path),
                html_escaped(&patch.unwrap_or_default())
            )
        })
        .collect::<Vec<_>>()
        .concat();
    let comments = state
        .comments
        .iter()
        .filter(|comment| comment.number == pull.number)
        .map(|comment| {
            format!(
                "<h3 id=\"issuecomment-{}\">{}</h3><pre>{}</pre>",
                comment.id,
                comment.user.login,
                html_escaped(&comment.body)
            )
        })
        .collect::<Vec<_>>()
        .concat();
    Some(format!(
        "<h2>#{} {} ({})</h2><p><code>{}</code> into <code>{}</code></p><pre>{}</pre>{comments}{files}",
        pull.number,
        html_escaped(&pull.title),
        word(pull),
        html_escaped(&pull.head_ref),
        html_escaped(&pull.base_ref),
        html_escaped(pull.body.as_deref().unwrap_or_default()),
    ))
}

fn run_page(run: &Run) -> String {
    let jobs = run
        .attempts
        .iter()
        .flat_map(|attempt| attempt.jobs.iter().map(move |job| (attempt.number, job)));
    let rows = jobs
        .map(|(attempt, job)| {
            let log = job
                .log
                .as_ref()
                .map(|log| html_escaped(&String::from_utf8_lossy(log)))
                .unwrap_or_default();
            let conclusion = html_escaped(job.conclusion.as_deref().unwrap_or(&job.status));
            format!(
                "<h3>Attempt {attempt}: {} ({conclusion})</h3><pre>{log}</pre>",
                html_escaped(&job.name)
            )
        })
        .collect::<Vec<_>>()
        .concat();
    format!("<h2>{} {}</h2>{rows}", html_escaped(&run.workflow), run.id)
}
