//! GitHub Apps: assertions, installations and their tokens.

use caretaker::forge::{AppFromManifest, NewApp, NewHook, TokenForm};
use reqwest::Method;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::bench::{Answer, Bench, read};
use super::description::Description;
use super::tokens::{permissions, with};

const KEY: &str = include_str!("app-key.pem");
const PUBLIC_KEY: &str = include_str!("app-public-key.pem");
/// The forge's clock begins here and goes on a second with every look.
const NOW: u64 = 1_767_600_000;

fn base64url(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

/// An assertion with these claims, signed with the test's key.
fn assertion(header: &Value, claims: &Value) -> String {
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let key = provider.key_provider.load_private_key(key).unwrap();
    let signer = key
        .choose_scheme(&[rustls::SignatureScheme::RSA_PKCS1_SHA256])
        .unwrap();
    let signed = format!(
        "{}.{}",
        base64url(header.to_string().as_bytes()),
        base64url(claims.to_string().as_bytes())
    );
    let signature = signer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", base64url(&signature))
}

fn rs256() -> Value {
    json!({"alg": "RS256", "typ": "JWT"})
}

fn good(app: u64) -> String {
    assertion(
        &rs256(),
        &json!({"iss": app, "iat": NOW - 60, "exp": NOW + 500}),
    )
}

fn new_app() -> NewApp {
    NewApp {
        name: "Caretaker of acme".to_owned(),
        slug: "caretaker-of-acme".to_owned(),
        public_key_pem: PUBLIC_KEY.to_owned(),
    }
}

/// A bench with an App that is installed on one of two repositories.
struct Installed {
    bench: Bench,
    app: u64,
    installation: u64,
    other: u64,
}

async fn installed() -> Installed {
    let bench = Bench::new().await;
    let other = bench.forge.create_repository("acme", "other", &[]).unwrap();
    let app = bench.forge.create_app(new_app());
    let granted = permissions(&[
        ("actions", "read"),
        ("contents", "write"),
        ("metadata", "read"),
    ]);
    let chosen = Some(vec![bench.repository.id()]);
    let installation = bench.forge.install_app(app, "acme", granted, chosen);
    Installed {
        bench,
        app,
        installation,
        other: other.id(),
    }
}

impl Installed {
    async fn get(&self, path: &str) -> Answer {
        with(&self.bench, &good(self.app), Method::GET, path, None).await
    }

    async fn mint(&self, body: Value) -> Answer {
        let path = format!("/app/installations/{}/access_tokens", self.installation);
        with(
            &self.bench,
            &good(self.app),
            Method::POST,
            &path,
            Some(body),
        )
        .await
    }

    async fn token(&self, body: Value) -> String {
        let answer = self.mint(body).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body["token"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assertion_must_be_the_apps_own() {
    let installed = installed().await;
    let (bench, app) = (&installed.bench, installed.app);
    let claims = |iat: u64, exp: u64| json!({"iss": app.to_string(), "iat": iat, "exp": exp});
    let fine = claims(NOW - 60, NOW + 500);
    let mut forged = assertion(&rs256(), &fine);
    forged.replace_range(forged.len() - 4.., "AAAA");
    let future = "'Expiration time' claim ('exp') is too far in the future";
    for (name, text, status, words) in [
        ("good", assertion(&rs256(), &fine), 200, ""),
        ("forged", forged, 401, "could not be decoded"),
        (
            "other algorithm",
            assertion(&json!({"alg": "none"}), &fine),
            401,
            "could not be decoded",
        ),
        (
            "issued ahead",
            assertion(&rs256(), &claims(NOW + 4_000, NOW + 4_500)),
            401,
            "'Issued at' claim",
        ),
        (
            "long",
            assertion(&rs256(), &claims(NOW, NOW + 601)),
            401,
            future,
        ),
        (
            "over",
            assertion(&rs256(), &claims(NOW - 600, NOW - 1)),
            401,
            "'Expiration time' claim ('exp') must be",
        ),
        (
            "stranger",
            assertion(&rs256(), &json!({"iss": "1", "iat": NOW, "exp": NOW + 60})),
            404,
            "Integration not found",
        ),
        (
            "a token",
            bench.forge.token().to_owned(),
            401,
            "could not be decoded",
        ),
        ("garbage", "a.b.c".to_owned(), 401, "could not be decoded"),
    ] {
        let answer = with(bench, &text, Method::GET, "/app", None).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.body);
        assert!(answer.message().contains(words), "{name}: {}", answer.body);
    }
    // An assertion opens no repository.
    let answer = installed.get("/repos/acme/widget").await;
    assert_eq!(answer.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_id_names_the_app_as_well() {
    let installed = installed().await;
    let app = installed.get("/app").await.body;
    assert_eq!(app["id"], json!(installed.app));
    let claims = json!({"iss": app["client_id"], "iat": NOW, "exp": NOW + 500});
    let text = assertion(&rs256(), &claims);
    let answer = with(&installed.bench, &text, Method::GET, "/app", None).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_an_installation_does_what_the_installation_may() {
    let installed = installed().await;
    let bench = &installed.bench;
    let answer = installed.mint(json!({})).await;
    assert_eq!(answer.body["repository_selection"], "selected");
    assert_eq!(answer.body["permissions"]["contents"], "write");
    let token = answer.body["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("ghs_") && token.len() == 40, "{token}");
    for (path, status) in [
        ("/repos/acme/widget", 200),
        ("/repos/acme/widget/actions/runs", 200),
        ("/repos/acme/widget/pulls", 403),
        ("/repos/acme/other", 404),
        ("/user", 403),
        ("/app", 401),
    ] {
        let answer = with(bench, &token, Method::GET, path, None).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        if status == 403 {
            assert_eq!(answer.message(), "Resource not accessible by integration");
        }
    }
    let list = with(
        bench,
        &token,
        Method::GET,
        "/installation/repositories",
        None,
    )
    .await;
    assert_eq!(list.body["total_count"], 1);
    assert_eq!(list.body["repositories"][0]["name"], "widget");
    let url = bench.git_url().replace(bench.forge.token(), &token);
    assert!(bench.git("client", &["ls-remote", &url]).status.success());
    let gone = with(bench, &token, Method::DELETE, "/installation/token", None).await;
    assert_eq!(gone.status, 204);
    let after = with(bench, &token, Method::GET, "/repos/acme/widget", None).await;
    assert_eq!((after.status, after.message()), (401, "Bad credentials"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_narrowed_and_never_widened() {
    let installed = installed().await;
    let bench = &installed.bench;
    let narrow =
        json!({"repository_ids": [bench.repository.id()], "permissions": {"actions": "read"}});
    let answer = installed.mint(narrow).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert_eq!(answer.body["permissions"], json!({"actions": "read"}));
    assert_eq!(answer.body["repositories"][0]["name"], "widget");
    let token = answer.body["token"].as_str().unwrap();
    let branch = "/repos/acme/widget/branches/main";
    let refused = with(bench, token, Method::GET, branch, None).await;
    assert_eq!(refused.status, 403);
    for body in [
        json!({"permissions": {"actions": "write"}}),
        json!({"permissions": {"administration": "read"}}),
        json!({"repository_ids": [installed.other]}),
        json!({"repositories": ["other"]}),
        json!({"repositories": vec!["widget"; 501]}),
        json!({"repositories": "widget"}),
    ] {
        let answer = installed.mint(body.clone()).await;
        assert_eq!(answer.status, 422, "{body}: {}", answer.body);
    }
    let by_name = installed.mint(json!({"repositories": ["Widget"]})).await;
    assert_eq!(by_name.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_have_two_forms() {
    let installed = installed().await;
    let bench = &installed.bench;
    let path = format!(
        "/app/installations/{}/access_tokens",
        installed.installation
    );
    let wished = |form: &'static str| {
        let request = bench
            .client
            .post(format!("{}{path}", bench.forge.url()))
            .bearer_auth(good(installed.app))
            .header("x-github-stateless-s2s-token", form)
            .send();
        async move { read(request.await.unwrap()).await.body["token"].clone() }
    };
    bench.forge.token_form(TokenForm::Long);
    let long = installed.token(json!({})).await;
    let begin = format!("ghs_{}_", installed.app);
    assert!(long.starts_with(&begin), "{long}");
    assert!(
        (450..=600).contains(&long.len()) && long.matches('.').count() == 2,
        "{long}"
    );
    let short = wished("disabled").await;
    assert_eq!(short.as_str().unwrap().len(), 40);
    bench.forge.token_form(TokenForm::Short);
    let long_again = wished("enabled").await;
    assert!(long_again.as_str().unwrap().len() > 450);
    for token in [
        long.as_str(),
        short.as_str().unwrap(),
        long_again.as_str().unwrap(),
    ] {
        let answer = with(bench, token, Method::GET, "/repos/acme/widget", None).await;
        assert_eq!(answer.status, 200);
        let url = bench.git_url().replace(bench.forge.token(), token);
        assert!(bench.git("client", &["ls-remote", &url]).status.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_and_removed_installations_open_nothing() {
    let installed = installed().await;
    let bench = &installed.bench;
    let token = installed.token(json!({})).await;
    let look = || with(bench, &token, Method::GET, "/repos/acme/widget", None);
    bench.forge.suspend_installation(installed.installation);
    let answer = look().await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.message(), "This installation has been suspended");
    assert_eq!(installed.mint(json!({})).await.status, 403);
    bench.forge.unsuspend_installation(installed.installation);
    assert_eq!(look().await.status, 200);
    bench.forge.remove_installation(installed.installation);
    assert_eq!(look().await.status, 401);
    assert_eq!(installed.mint(json!({})).await.status, 404);
    let at = "/repos/acme/widget/installation";
    assert_eq!(installed.get(at).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_about_apps_fits() {
    let Some(description) = Description::read() else {
        return;
    };
    let installed = installed().await;
    let id = installed.installation;
    for (path, status) in [
        ("/app".to_owned(), 200),
        (format!("/app/installations/{id}"), 200),
        ("/app/installations/9".to_owned(), 404),
        ("/repos/acme/widget/installation".to_owned(), 200),
        ("/repos/acme/other/installation".to_owned(), 404),
    ] {
        let answer = installed.get(&path).await;
        assert_eq!(answer.status, status, "{path}");
        description.check(&Method::GET, &path, &answer);
    }
    let mint = format!("/app/installations/{id}/access_tokens");
    for body in [
        json!({}),
        json!({"repositories": ["widget"]}),
        json!({"repositories": ["other"]}),
    ] {
        let answer = installed.mint(body).await;
        description.check(&Method::POST, &mint, &answer);
    }
    let token = installed.token(json!({})).await;
    for (method, path) in [
        (Method::GET, "/installation/repositories"),
        (Method::DELETE, "/installation/token"),
    ] {
        let answer = with(&installed.bench, &token, method.clone(), path, None).await;
        description.check(&method, path, &answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_made_out_of_a_manifest() {
    let bench = Bench::new().await;
    bench.forge.plan_manifest(
        "a1b2",
        AppFromManifest {
            app: new_app(),
            private_key_pem: KEY.to_owned(),
            webhook_secret: "hook secret".to_owned(),
            client_secret: "client secret".to_owned(),
        },
    );
    let manifest = json!({
        "name": "Caretaker of acme",
        "url": "https://caretaker.example",
        "redirect_url": "http://127.0.0.1:9/apps/created",
        "default_permissions": {"actions": "read"},
        "default_events": ["workflow_run"],
    });
    let form = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("manifest", &manifest.to_string())
        .finish();
    let sent = bench
        .client
        .post(format!(
            "{}/settings/apps/new?state=s%26t",
            bench.forge.url()
        ))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap();
    assert_eq!(sent.status(), 302);
    assert_eq!(
        sent.headers()["location"],
        "http://127.0.0.1:9/apps/created?code=a1b2&state=s%26t"
    );
    let convert = || async {
        let path = format!("{}/app-manifests/a1b2/conversions", bench.forge.url());
        read(bench.client.post(path).send().await.unwrap()).await
    };
    let made = convert().await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["permissions"], json!({"actions": "read"}));
    assert_eq!(made.body["webhook_secret"], "hook secret");
    let id = made.body["id"].as_u64().unwrap();
    let app = with(&bench, &good(id), Method::GET, "/app", None).await;
    assert_eq!(app.status, 200);
    // The code works once.
    assert_eq!(convert().await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_to_an_app_are_listed_and_repeated() {
    let Some(description) = Description::read() else {
        return;
    };
    let installed = installed().await;
    // Nobody listens there any more: what cannot be delivered is listed as well.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let forge = &installed.bench.forge;
    forge.add_hook(NewHook {
        repository: None,
        url,
        secret: "secret".to_owned(),
        events: vec!["installation".to_owned()],
    });
    forge.suspend_installation(installed.installation);
    assert_eq!(forge.deliver().await.unwrap(), 1);
    let list = installed.get("/app/hook/deliveries").await;
    description.check(&Method::GET, "/app/hook/deliveries", &list);
    assert_eq!(list.body[0]["action"], "suspend");
    assert_eq!(list.body[0]["status_code"], 502);
    let one = format!("/app/hook/deliveries/{}", list.body[0]["id"]);
    let shown = installed.get(&one).await;
    description.check(&Method::GET, &one, &shown);
    let again = format!("{one}/attempts");
    let assertion = good(installed.app);
    let repeated = with(&installed.bench, &assertion, Method::POST, &again, None).await;
    assert_eq!(repeated.status, 202);
    description.check(&Method::POST, &again, &repeated);
    assert_eq!(forge.deliver().await.unwrap(), 1);
    let list = installed.get("/app/hook/deliveries").await;
    assert_eq!(list.body.as_array().unwrap().len(), 2);
    let stranger = installed.bench.forge.token().to_owned();
    let refused = with(
        &installed.bench,
        &stranger,
        Method::GET,
        "/app/hook/deliveries",
        None,
    )
    .await;
    assert_eq!(refused.status, 401);
}
