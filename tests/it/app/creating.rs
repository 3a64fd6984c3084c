//! Making the App: one page, one click, and the way back, which counts once.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use caretaker::attest::keys::FillError;
use caretaker::connector::github::app::ManifestExchange;
use caretaker::onboard::app::{Created, Flow, FlowError, Places, Plan, Reception, ReceptionError};
use reqwest::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::manifest::plan;
use super::provider::{HOOK_SECRET, Provider};
use super::*;

/// Bytes that count up: two secrets differ.
pub(super) fn counting() -> impl FnMut(&mut [u8]) -> Result<(), FillError> {
    let mut next = 0_u8;
    move |buffer: &mut [u8]| {
        for byte in buffer {
            *byte = next;
            next = next.wrapping_add(1);
        }
        Ok(())
    }
}

/// The form as a browser sends it.
pub(super) fn posting(manifest: &str) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("manifest", manifest).finish()
}

/// A page that is served for one App.
struct Making {
    provider: Provider,
    folder: tempfile::TempDir,
    url: String,
    browser: reqwest::Client,
    running: JoinHandle<Result<Created, FlowError>>,
}

/// What is in the page's form.
struct Form {
    action: String,
    manifest: String,
}

impl Making {
    async fn of(change: impl Fn(&mut Plan)) -> Self {
        let provider = Provider::start(Arc::new(FixedClock::at(NOW))).await;
        let folder = tempfile::tempdir().unwrap();
        let mut plan = plan(&provider.origin);
        change(&mut plan);
        let key_file = folder.path().join("keys/app.pem");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shown = key_file.display().to_string();
        let flow = Flow::prepare(listener, &plan, &shown, &mut counting()).unwrap();
        let reception = reception(&provider, plan, key_file).unwrap();
        let url = flow.url();
        let patience = Duration::from_mins(1);
        let running = tokio::spawn(flow.run(Arc::new(reception), patience, std::future::pending()));
        let browser = browser().redirect(reqwest::redirect::Policy::none());
        Self {
            provider,
            folder,
            url,
            browser: browser.build().unwrap(),
            running,
        }
    }

    async fn start() -> Self {
        Self::of(|_| {}).await
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("keys/app.pem")
    }

    fn origin(&self) -> &str {
        self.url.rsplit_once('/').unwrap().0
    }

    async fn get(&self, url: &str) -> (StatusCode, String) {
        let answer = self.browser.get(url).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    async fn form(&self) -> Form {
        let (status, page) = self.get(&self.url).await;
        assert_eq!(status, StatusCode::OK);
        let between = |before: &str| {
            let rest = page.split_once(before).unwrap().1;
            let text = rest.split_once('"').unwrap().0;
            text.replace("&quot;", "\"")
                .replace("&#34;", "\"")
                .replace("&amp;", "&")
                .replace("&#38;", "&")
        };
        Form {
            action: between("method=\"post\" action=\""),
            manifest: between("name=\"manifest\" value=\""),
        }
    }

    /// The click, and the provider's redirect.
    async fn click(&self) -> String {
        let form = self.form().await;
        let posted = self.browser.post(&form.action);
        let answer = posted
            .header("content-type", "application/x-www-form-urlencoded")
            .body(posting(&form.manifest))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        answer.headers()["location"].to_str().unwrap().to_owned()
    }

    fn conversions(&self) -> usize {
        let asked = self.provider.asked();
        let conversions = asked
            .iter()
            .filter(|asked| asked.path.ends_with("/conversions"));
        conversions.count()
    }
}

fn reception(
    provider: &Provider,
    plan: Plan,
    key_file: PathBuf,
) -> Result<Reception, ReceptionError> {
    let clock = Arc::new(FixedClock::at(NOW));
    let exchange =
        ManifestExchange::new(&provider.api_url(), Duration::from_secs(20), clock).unwrap();
    let webhook_secret_file = plan
        .webhook
        .is_some()
        .then(|| key_file.with_extension("hook"));
    let places = Places {
        key_file,
        webhook_secret_file,
    };
    Reception::prepare(exchange, plan, places)
}

#[tokio::test]
async fn one_click_makes_the_app_and_keeps_its_key() {
    let making = Making::start().await;
    let back = making.click().await;
    let (status, page) = making.get(&back).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let install = "https://github.com/apps/caretaker-octo/installations/new";
    let file = making.key_file();
    let created = making.running.await.unwrap().unwrap();
    assert_eq!(
        (created.id, created.slug.as_str()),
        (provider::APP, "caretaker-octo")
    );
    // The stand-in is not github.com, so its own address counts.
    assert_ne!(created.install_url, install);
    assert!(page.contains(&created.install_url));
    assert!(created.missing.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), PKCS1);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    let configuration = created
        .configuration
        .replace(&file.display().to_string(), "KEY");
    insta::assert_snapshot!(configuration, @r#"
    github:
      app:
        id: 4711
        private_key_file: "KEY"
    "#);
    let shown = format!("{page} {created:?}");
    for secret in ["BEGIN RSA", HOOK_SECRET, "client-secret-canary"] {
        assert!(!shown.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn a_webhooks_secret_is_kept_beside_the_key() {
    let making =
        Making::of(|plan| plan.webhook = Some("https://care.example/webhooks/github".to_owned()))
            .await;
    let back = making.click().await;
    making.get(&back).await;
    let file = making.folder.path().join("keys/app.hook");
    let created = making.running.await.unwrap().unwrap();
    assert_eq!(
        std::fs::read_to_string(&file).unwrap().trim_end(),
        HOOK_SECRET
    );
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    assert!(
        created
            .configuration
            .contains(&format!("webhook_secret: \"file:{}\"", file.display()))
    );
}

#[tokio::test]
async fn looking_changes_nothing_however_often() {
    let making = Making::start().await;
    let first = making.form().await;
    assert_eq!(first.action, making.form().await.action);
    for method in [
        reqwest::Method::HEAD,
        reqwest::Method::POST,
        reqwest::Method::OPTIONS,
    ] {
        let back = making.click().await;
        let answer = making.browser.request(method, &back).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
    assert_eq!(making.conversions(), 0);
    assert_eq!(
        std::fs::read(making.key_file()).unwrap(),
        b"",
        "only its place is taken"
    );
    assert!(!making.running.is_finished());
}

#[tokio::test]
async fn a_wrong_state_is_refused_and_the_right_one_counts_once() {
    let making = Making::start().await;
    let back = making.click().await;
    let (address, state) = back.split_once("&state=").unwrap();
    let mut near = state.to_owned();
    near.replace_range(63.., if state.ends_with('0') { "1" } else { "0" });
    for (query, expected) in [
        (format!("{address}&state={near}"), StatusCode::FORBIDDEN),
        (format!("{address}&state="), StatusCode::FORBIDDEN),
        (format!("{address}&state={state}0"), StatusCode::FORBIDDEN),
        (
            format!("{address}&state={}", &state[..63]),
            StatusCode::FORBIDDEN,
        ),
        (address.to_owned(), StatusCode::BAD_REQUEST),
        (format!("{back}&state={state}"), StatusCode::BAD_REQUEST),
        (
            format!("{}/created?state={state}", making.origin()),
            StatusCode::BAD_REQUEST,
        ),
        (
            format!("{}/created", making.origin()),
            StatusCode::BAD_REQUEST,
        ),
    ] {
        let (status, _) = making.get(&query).await;
        assert_eq!(status, expected, "{query}");
    }
    assert_eq!(making.conversions(), 0);
    // Both at once: one of them is first.
    let (one, other) = tokio::join!(making.get(&back), making.get(&back));
    let mut statuses = [one.0, other.0];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::GONE]);
    assert_eq!(making.conversions(), 1);
    making.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_page_is_shown_under_its_own_address_only() {
    let making = Making::start().await;
    for path in ["", "/", "/x", "/created/", "/caretaker", "/00"] {
        let (status, page) = making.get(&format!("{}{path}", making.origin())).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(!page.contains("state="));
    }
}

#[tokio::test]
async fn a_page_of_another_site_reaches_nothing() {
    let making = Making::start().await;
    let back = making.click().await;
    for url in [&making.url, &back] {
        let asked = making.browser.get(url).header("host", "evil.example");
        let answer = asked.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST);
        assert!(!answer.text().await.unwrap().contains("state="));
    }
    assert_eq!(making.conversions(), 0);
}

#[tokio::test]
async fn every_answer_forbids_scripts_frames_and_foreign_targets() {
    let making = Making::start().await;
    for path in ["/created", "/nothing", "/caretaker.css"] {
        let answer = making.browser.get(format!("{}{path}", making.origin()));
        let answer = answer.send().await.unwrap();
        let headers = answer.headers();
        assert_eq!(
            headers["content-security-policy"].to_str().unwrap(),
            format!(
                "default-src 'none'; style-src 'self'; form-action 'self' {}; base-uri 'none'; frame-ancestors 'none'",
                making.provider.origin
            )
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "strict-origin");
    }
}

#[tokio::test]
async fn what_a_person_took_out_on_the_providers_page_is_said() {
    let making = Making::start().await;
    let back = making.click().await;
    making
        .provider
        .bend(|body| body["permissions"] = json!({"contents": "write", "metadata": "read"}));
    making.get(&back).await;
    let created = making.running.await.unwrap().unwrap();
    assert_eq!(
        created.missing.to_string(),
        "actions: write, checks: read, pull_requests: write, statuses: read"
    );
}

#[tokio::test]
async fn a_code_that_the_provider_does_not_know_leaves_nothing_behind() {
    let making = Making::start().await;
    let back = making.click().await.replace(provider::CODE, "another");
    let (status, page) = making.get(&back).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    let file = making.key_file();
    let error = making.running.await.unwrap().unwrap_err();
    assert!(page.contains("start again"));
    insta::assert_snapshot!(error, @"turning the provider's code into the App: the provider does not know the code; it is used up or older than an hour, so start again; if the App was made, it is listed on GitHub under Developer settings: delete it there and start again");
    assert!(!file.exists(), "the next attempt finds its place free");
}

#[tokio::test]
async fn an_answer_without_a_key_is_an_error_that_repeats_nothing() {
    for bend in [
        |body: &mut serde_json::Value| body["pem"] = serde_json::Value::Null,
        |body: &mut serde_json::Value| body["id"] = json!("x"),
        |body: &mut serde_json::Value| *body = json!(["BEGIN RSA"]),
    ] {
        let making = Making::start().await;
        let back = making.click().await;
        making.provider.bend(bend);
        let (_, page) = making.get(&back).await;
        let error = making.running.await.unwrap().unwrap_err();
        let shown = format!("{page} {error} {error:?}");
        assert!(matches!(
            error,
            FlowError::Reception(ReceptionError::Provider(_))
        ));
        assert!(!shown.contains("BEGIN RSA"), "{shown}");
    }
}

#[tokio::test]
async fn a_key_that_is_there_is_never_written_over() {
    let provider = Provider::start(Arc::new(FixedClock::at(NOW))).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.pem");
    std::fs::write(&file, "precious").unwrap();
    let refused = reception(&provider, plan(&provider.origin), file.clone());
    let words = refused.map(|_| ()).unwrap_err().to_string();
    assert!(
        words.contains("File exists") && words.contains("--key-file"),
        "{words}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(
        provider.asked().len(),
        0,
        "nothing was asked of the provider"
    );
}

#[tokio::test]
async fn nobody_comes() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plan = plan("https://github.com");
    let flow = Flow::prepare(listener, &plan, "app.pem", &mut counting()).unwrap();
    let file = folder.path().join("app.pem");
    let exchange = ManifestExchange::new(
        "https://api.github.com",
        Duration::from_secs(20),
        Arc::new(FixedClock::at(NOW)),
    );
    let places = Places {
        key_file: file.clone(),
        webhook_secret_file: None,
    };
    let reception = Reception::prepare(exchange.unwrap(), plan, places).unwrap();
    let ended = flow.run(Arc::new(reception), Duration::ZERO, std::future::pending());
    let error = ended.await.unwrap_err();
    insta::assert_snapshot!(error, @"waiting for the App: nobody confirmed it within 0 s; start again, with --timeout-seconds for more time");
    assert!(!file.exists());
}

#[tokio::test]
async fn a_page_that_other_machines_could_reach_is_not_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let plan = plan("https://github.com");
    let refused = Flow::prepare(listener, &plan, "app.pem", &mut counting());
    assert!(matches!(refused, Err(FlowError::Reachable(_))));
}
