//! The second origin: job logs behind short-lived links that carry their own permission.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::super::state::{Shared, locked};

/// How many links are remembered.
const REMEMBERED: usize = 1_000;

/// A link that was given out.
struct Link {
    path: String,
    log: Arc<Vec<u8>>,
    expired: bool,
}

/// Every link that was given out lately.
#[derive(Default)]
pub(crate) struct LogLinks {
    links: Mutex<VecDeque<Link>>,
}

impl LogLinks {
    /// The path of a new link to this log; `number` makes it unlike every other, and `token` unlike what others guess.
    pub(crate) fn issue(&self, job: u64, log: Arc<Vec<u8>>, number: u64, token: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (token, job, number).hash(&mut hasher);
        let path = format!("/logs/{job}/{number}-{:016x}", hasher.finish());
        let mut links = locked(&self.links);
        if links.len() == REMEMBERED {
            links.pop_front();
        }
        links.push_back(Link {
            path: path.clone(),
            log,
            expired: false,
        });
        path
    }

    /// Makes every link given out so far worthless, as GitHub does after a minute.
    pub(crate) fn expire(&self) {
        for link in locked(&self.links).iter_mut() {
            link.expired = true;
        }
    }

    fn find(&self, path: &str) -> Result<Arc<Vec<u8>>, (StatusCode, &'static str)> {
        let links = locked(&self.links);
        match links.iter().find(|link| link.path == path) {
            Some(link) if link.expired => Err((StatusCode::FORBIDDEN, "AuthenticationFailed")),
            Some(link) => Ok(Arc::clone(&link.log)),
            None => Err((StatusCode::NOT_FOUND, "BlobNotFound")),
        }
    }
}

/// Gives the log, except to a client that carries its token to this strange origin.
pub(super) fn download(shared: &Shared, parts: &Parts) -> Response {
    if parts.headers.contains_key(header::AUTHORIZATION) {
        return refused(StatusCode::FORBIDDEN, "AuthenticationFailed");
    }
    match shared.log_links.find(parts.uri.path()) {
        Ok(log) => {
            let mut response = Response::new(Body::from(log.as_ref().clone()));
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("text/plain; charset=utf-8"),
            );
            response
        }
        Err((status, code)) => refused(status, code),
    }
}

fn refused(status: StatusCode, code: &str) -> Response {
    let body =
        format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code></Error>");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/xml"),
    );
    response
}
