//! Asking the router, without a socket.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

/// An answer, read to its end.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(super) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

pub(super) async fn ask(router: &Router, method: Method, path: &str) -> Answer {
    let request = Request::builder().method(method).uri(path);
    send(router, request.body(Body::empty()).unwrap()).await
}

pub(super) async fn get(router: &Router, path: &str) -> Answer {
    ask(router, Method::GET, path).await
}

/// Sends a form with further headers.
pub(super) async fn post_with(
    router: &Router,
    path: &str,
    form: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = Request::post(path)
        .header(header::HOST, "127.0.0.1:8080")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(router, request.body(Body::from(form.to_owned())).unwrap()).await
}

pub(super) async fn post(router: &Router, path: &str, form: &str) -> Answer {
    post_with(router, path, form, &[]).await
}
