//! A provider that knows one App: it checks the App's signature, mints and ends tokens, and makes Apps from manifests. Its answers
//! fit the provider's own description of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{delete, get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caretaker::connector::github::app::{AppInterface, AppKey, AppOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::*;
use crate::support::corpus;

pub(super) const APP: u64 = 4711;
pub(super) const CODE: &str = "a180b1a3d263c81bc6441d7b990bae27d4c10679";
pub(super) const HOOK_SECRET: &str = "hook-secret-canary";

/// One request as it came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) authorization: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// An installation.
#[derive(Debug, Clone)]
pub(super) struct Installation {
    pub(super) permissions: BTreeMap<String, String>,
    pub(super) repositories: Vec<u64>,
    pub(super) suspended: bool,
}

pub(super) struct Shared {
    clock: Arc<FixedClock>,
    asked: Mutex<Vec<Asked>>,
    pub(super) installations: Mutex<BTreeMap<u64, Installation>>,
    pub(super) app_permissions: Mutex<BTreeMap<String, String>>,
    /// Tokens that are good, with when they end.
    tokens: Mutex<BTreeMap<String, Millis>>,
    made: Mutex<usize>,
    /// Changes an answer before it goes out.
    pub(super) bend: Mutex<Option<Box<dyn Fn(&mut Value) + Send>>>,
    /// How far the provider's clock is ahead, in seconds.
    pub(super) ahead: Mutex<i64>,
    description: Option<Value>,
}

/// A server on loopback for as long as the test's runtime lives.
pub(super) struct Provider {
    pub(super) origin: String,
    pub(super) shared: Arc<Shared>,
}

pub(super) fn permissions(text: &str) -> BTreeMap<String, String> {
    text.split(", ")
        .map(|entry| entry.split_once(": ").unwrap())
        .map(|(name, access)| (name.to_owned(), access.to_owned()))
        .collect()
}

pub(super) const ALL: &str = "actions: write, checks: read, contents: write, metadata: read, pull_requests: write, statuses: read";

impl Provider {
    pub(super) async fn start(clock: Arc<FixedClock>) -> Self {
        let installation = Installation {
            permissions: permissions(ALL),
            repositories: vec![REPOSITORY, 43],
            suspended: false,
        };
        let description = corpus("github/openapi-subset.json")
            .map(|bytes| serde_json::from_slice(&bytes).unwrap());
        let shared = Arc::new(Shared {
            clock,
            asked: Mutex::default(),
            installations: Mutex::new(BTreeMap::from([(INSTALLATION, installation)])),
            app_permissions: Mutex::new(permissions(ALL)),
            tokens: Mutex::default(),
            made: Mutex::default(),
            bend: Mutex::default(),
            ahead: Mutex::default(),
            description,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/api/v3/app", get(app))
            .route("/api/v3/app/installations/{id}", get(installation_of))
            .route("/api/v3/app/installations/{id}/access_tokens", post(mint))
            .route("/api/v3/installation/token", delete(end))
            .route(
                "/api/v3/repos/{owner}/{name}/installation",
                get(on_repository),
            )
            .route("/api/v3/repos/{owner}/{name}", get(repository))
            .route("/api/v3/app-manifests/{code}/conversions", post(convert))
            .route("/settings/apps/new", post(new_app))
            .route("/organizations/{name}/settings/apps/new", post(new_app))
            .layer(middleware::from_fn_with_state(Arc::clone(&shared), noted))
            .with_state(Arc::clone(&shared));
        tokio::spawn(axum::serve(listener, router).into_future());
        Self {
            origin: format!("http://{address}"),
            shared,
        }
    }

    pub(super) fn api_url(&self) -> String {
        format!("{}/api/v3", self.origin)
    }

    pub(super) fn options(&self) -> AppOptions {
        AppOptions {
            api_url: self.api_url(),
            app: APP,
            key: AppKey::from_pem(&SecretString::from(PKCS1)).unwrap(),
            deadline: Duration::from_secs(20),
            clock: Arc::clone(&self.shared.clock) as Arc<_>,
        }
    }

    pub(super) fn interface(&self) -> AppInterface {
        AppInterface::new(self.options()).unwrap()
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Bodies of the orders for tokens.
    pub(super) fn orders(&self) -> Vec<Value> {
        let asked = self.asked();
        asked
            .iter()
            .filter(|asked| asked.path.ends_with("/access_tokens"))
            .map(|asked| serde_json::from_str(&asked.body).unwrap())
            .collect()
    }

    pub(super) fn bend(&self, bend: impl Fn(&mut Value) + Send + 'static) {
        *self.shared.bend.lock().unwrap() = Some(Box::new(bend));
    }

    pub(super) fn change_installation(&self, change: impl Fn(&mut Installation)) {
        let mut installations = self.shared.installations.lock().unwrap();
        change(installations.get_mut(&INSTALLATION).unwrap());
    }

    /// Whether a call with this token is taken.
    pub(super) async fn takes(&self, token: &IssuedToken) -> bool {
        let call = browser().build().unwrap();
        let call = call
            .get(format!("{}/repos/octo/widget", self.api_url()))
            .bearer_auth(token.secret.expose_secret());
        call.send().await.unwrap().status() == StatusCode::OK
    }
}

/// The provider's own check of an assertion's signature.
pub(super) fn verified(assertion: &str) -> bool {
    let (said, signature) = assertion.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let algorithms = provider.signature_verification_algorithms.mapping;
    let (_, algorithms) = algorithms
        .iter()
        .find(|(scheme, _)| *scheme == rustls::SignatureScheme::RSA_PKCS1_SHA256)
        .unwrap();
    algorithms[0]
        .verify_signature(PUBLIC, said.as_bytes(), &signature)
        .is_ok()
}

async fn noted(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let header = parts.headers.get("authorization");
    shared.asked.lock().unwrap().push(Asked {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
        authorization: header.map(|value| value.to_str().unwrap().to_owned()),
        headers: parts.headers.clone(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    let mut response = next
        .run(Request::from_parts(parts, axum::body::Body::from(body)))
        .await;
    let date = jiff::Timestamp::from_millisecond(shared.now().0).unwrap();
    let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    response.headers_mut().insert("date", date.parse().unwrap());
    response
}

fn says(status: u16, message: &str) -> Response {
    let body = json!({"message": message, "documentation_url": "https://docs.github.com/rest"});
    (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
}

impl Shared {
    fn now(&self) -> Millis {
        self.clock.now().plus_seconds(*self.ahead.lock().unwrap())
    }

    /// Checks the assertion as the provider does.
    fn doubts(&self, headers: &HeaderMap) -> Option<Response> {
        let refuse = |words: &str| Some(says(401, words));
        let bearer = headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        let Some(said) = bearer.and_then(|value| value.strip_prefix("Bearer ")) else {
            return refuse("A JSON web token could not be decoded");
        };
        if said.split('.').count() != 3 || !verified(said) {
            return refuse("A JSON web token could not be decoded");
        }
        let claims = URL_SAFE_NO_PAD
            .decode(said.split('.').nth(1).unwrap())
            .unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        let (now, number) = (self.now().0 / 1000, |name: &str| {
            claims[name].as_i64().unwrap()
        });
        if number("iat") > now {
            return refuse(
                "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
            );
        }
        if number("exp") <= now {
            return refuse(
                "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
            );
        }
        if number("exp") > now + 600 {
            return refuse("'Expiration time' claim ('exp') is too far in the future");
        }
        if claims["iss"].as_str().and_then(|text| text.parse().ok()) != Some(APP) {
            return Some(says(404, "Integration not found"));
        }
        None
    }

    /// Bends an answer if the test says so; else it must fit the description.
    fn answer(&self, path: &str, method: &str, status: u16, mut body: Value) -> Response {
        if let Some(bend) = self.bend.lock().unwrap().as_ref() {
            bend(&mut body);
        } else if let Some(whole) = &self.description {
            let schema = &whole["paths"][path][method]["responses"][status.to_string()]["content"]
                ["application/json"]["schema"];
            assert!(
                schema.is_object(),
                "{method} {path} {status} is not described"
            );
            let whole = json!({"allOf": [schema], "components": whole["components"]});
            let validator = jsonschema::options()
                .with_draft(jsonschema::Draft::Draft202012)
                .build(&whole)
                .unwrap();
            let errors: Vec<String> = validator
                .iter_errors(&body)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{method} {path}: {errors:?}");
        }
        (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
    }

    fn installation(&self, id: u64) -> Option<Value> {
        let installations = self.installations.lock().unwrap();
        installations
            .get(&id)
            .map(|found| shapes::installation(id, found))
    }
}

async fn app(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if let Some(refusal) = shared.doubts(&headers) {
        return refusal;
    }
    let body = shapes::app(&shared.app_permissions.lock().unwrap());
    shared.answer("/app", "get", 200, body)
}

async fn installation_of(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Path(id): Path<u64>,
) -> Response {
    if let Some(refusal) = shared.doubts(&headers) {
        return refusal;
    }
    match shared.installation(id) {
        Some(body) => shared.answer("/app/installations/{installation_id}", "get", 200, body),
        None => says(404, "Not Found"),
    }
}

async fn on_repository(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Path((owner, name)): Path<(String, String)>,
) -> Response {
    if let Some(refusal) = shared.doubts(&headers) {
        return refusal;
    }
    let installed = (owner.as_str(), name.as_str()) == ("octo", "widget");
    match shared.installation(INSTALLATION).filter(|_| installed) {
        Some(body) => shared.answer("/repos/{owner}/{repo}/installation", "get", 200, body),
        None => says(404, "Not Found"),
    }
}

async fn mint(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Path(id): Path<u64>,
    body: Bytes,
) -> Response {
    if let Some(refusal) = shared.doubts(&headers) {
        return refusal;
    }
    let Some(found) = shared.installations.lock().unwrap().get(&id).cloned() else {
        return says(404, "Not Found");
    };
    if found.suspended {
        return says(403, "This installation has been suspended");
    }
    let order: Value = serde_json::from_slice(&body).unwrap();
    let repositories: Vec<u64> = match order.get("repository_ids") {
        Some(numbers) => serde_json::from_value(numbers.clone()).unwrap(),
        None => {
            assert_eq!(order["repositories"], json!(["widget"]));
            vec![REPOSITORY]
        }
    };
    if !repositories
        .iter()
        .all(|id| found.repositories.contains(id))
    {
        return says(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent installation.",
        );
    }
    let asked: BTreeMap<String, String> =
        serde_json::from_value(order["permissions"].clone()).unwrap();
    let granted = |(name, access): (&String, &String)| {
        found
            .permissions
            .get(name)
            .is_some_and(|held| held == access || held == "write")
    };
    if !asked.iter().all(granted) {
        return says(
            422,
            "The permissions requested are not granted to this installation.",
        );
    }
    let form = match headers.get("x-github-stateless-s2s-token") {
        Some(value) if value == "disabled" => Form::Compatible,
        _ => Form::Usual,
    };
    let number = {
        let mut made = shared.made.lock().unwrap();
        *made += 1;
        *made
    };
    let (text, end) = (token_text(form, number), shared.now().plus_seconds(3600));
    shared.tokens.lock().unwrap().insert(text.clone(), end);
    let answer = json!({
        "token": text, "expires_at": end.to_string(), "permissions": asked, "repository_selection": "selected",
    });
    shared.answer(
        "/app/installations/{installation_id}/access_tokens",
        "post",
        201,
        answer,
    )
}

fn bearer(headers: &HeaderMap) -> String {
    let value = headers.get("authorization").unwrap().to_str().unwrap();
    value.strip_prefix("Bearer ").unwrap().to_owned()
}

impl Shared {
    fn takes(&self, token: &str) -> bool {
        let tokens = self.tokens.lock().unwrap();
        tokens.get(token).is_some_and(|end| *end > self.now())
    }
}

async fn end(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let token = bearer(&headers);
    if !shared.takes(&token) {
        return says(401, "Bad credentials");
    }
    shared.tokens.lock().unwrap().remove(&token);
    StatusCode::NO_CONTENT.into_response()
}

async fn repository(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if shared.takes(&bearer(&headers)) {
        (StatusCode::OK, "{}").into_response()
    } else {
        says(401, "Bad credentials")
    }
}

/// The provider's page: whoever posts a manifest is taken to have confirmed it, and is sent back.
async fn new_app(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 1 << 20)
        .await
        .unwrap();
    let form: BTreeMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let manifest: Value = serde_json::from_str(&form["manifest"]).unwrap();
    *shared.app_permissions.lock().unwrap() =
        serde_json::from_value(manifest["default_permissions"].clone()).unwrap();
    let back = manifest["redirect_url"].as_str().unwrap();
    Redirect::to(&format!("{back}?code={CODE}&{query}")).into_response()
}

async fn convert(State(shared): State<Arc<Shared>>, Path(code): Path<String>) -> Response {
    if code != CODE {
        return says(404, "Not Found");
    }
    let mut body = shapes::app(&shared.app_permissions.lock().unwrap());
    body["pem"] = json!(PKCS1);
    body["client_secret"] = json!("client-secret-canary");
    body["webhook_secret"] = json!(HOOK_SECRET);
    if let Some(bend) = shared.bend.lock().unwrap().as_ref() {
        bend(&mut body);
    }
    (StatusCode::CREATED, body.to_string()).into_response()
}
