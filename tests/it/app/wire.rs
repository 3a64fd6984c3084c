//! What goes over the wire to the provider, and what its answers mean.

use axum::http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::provider::{ALL, Provider, permissions};
use super::*;
use caretaker::connector::github::app::{AppInterface, AppOptions};

async fn provider() -> Provider {
    Provider::start(Arc::new(FixedClock::at(NOW))).await
}

fn order(task: Use) -> MintOrder {
    MintOrder {
        installation: INSTALLATION,
        repository: Target::Number(REPOSITORY),
        task,
        permissions: caretaker::connector::github::app::needed(task),
        form: Form::Usual,
    }
}

async fn refusal(provider: &Provider, task: Use) -> TokenError {
    let minted = provider.interface().mint(&order(task)).await;
    minted.map(|_| ()).unwrap_err()
}

#[tokio::test]
async fn an_order_names_one_repository_and_the_permissions_of_its_use() {
    let provider = provider().await;
    for task in Use::ALL {
        let minted = provider.interface().mint(&order(task)).await.unwrap();
        assert_eq!(minted.permissions, order(task).permissions);
        assert_eq!(minted.expires_at, NOW.plus_seconds(3600));
    }
    let orders = provider.orders();
    assert!(
        orders
            .iter()
            .all(|order| order["repository_ids"] == json!([REPOSITORY]))
    );
    assert_eq!(
        orders[2],
        json!({
            "repository_ids": [REPOSITORY],
            "permissions": {"contents": "write", "metadata": "read", "pull_requests": "read"},
        })
    );
    let asked = &provider.asked()[0];
    assert_eq!(asked.headers["x-github-api-version"], "2022-11-28");
    assert_eq!(asked.headers["accept"], "application/vnd.github+json");
    assert!(
        asked.headers["user-agent"]
            .to_str()
            .unwrap()
            .starts_with("caretaker/")
    );
    assert!(!asked.headers.contains_key("x-github-stateless-s2s-token"));
}

#[tokio::test]
async fn the_short_form_is_asked_for_by_a_header() {
    let provider = provider().await;
    let order = MintOrder {
        form: Form::Compatible,
        ..order(Use::Propose)
    };
    let minted = provider.interface().mint(&order).await.unwrap();
    assert_eq!(minted.secret.expose_secret().len(), 40);
    let asked = provider.asked();
    assert_eq!(asked[0].headers["x-github-stateless-s2s-token"], "disabled");
}

#[tokio::test]
async fn an_ended_token_is_not_taken_any_more_and_ending_it_twice_is_fine() {
    let provider = provider().await;
    let interface = provider.interface();
    let minted = interface.mint(&order(Use::Execute)).await.unwrap();
    let token = IssuedToken::new(minted.secret, None);
    assert!(provider.takes(&token).await);
    interface.revoke(&token.secret).await.unwrap();
    assert!(!provider.takes(&token).await);
    interface.revoke(&token.secret).await.unwrap();
    let ends = provider
        .asked()
        .iter()
        .filter(|asked| asked.method == Method::DELETE)
        .count();
    assert_eq!(ends, 2);
}

#[tokio::test]
async fn what_an_owner_took_away_is_named_with_its_mend() {
    let mut words = Vec::new();
    let provider = provider().await;
    provider.change_installation(|installation| {
        installation.permissions = permissions("contents: read, metadata: read, checks: read");
    });
    let lacking = refusal(&provider, Use::Propose).await;
    assert!(matches!(&lacking, TokenError::Ungranted { missing, .. }
        if missing.to_string() == "contents: write, pull_requests: write"));
    words.push(lacking);
    provider.change_installation(|installation| {
        installation.permissions = permissions(ALL);
        installation.repositories = vec![43];
    });
    words.push(refusal(&provider, Use::Read).await);
    provider.change_installation(|installation| installation.suspended = true);
    words.push(refusal(&provider, Use::Read).await);
    provider.shared.installations.lock().unwrap().clear();
    words.push(refusal(&provider, Use::Read).await);
    assert!(words.iter().all(|error| !error.is_transient()));
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(words.join("\n"));
}

#[tokio::test]
async fn a_suspended_installation_is_noticed_before_an_order() {
    let provider = provider().await;
    provider.change_installation(|installation| installation.suspended = true);
    let (sink, _) = keeping();
    let tokens = AppTokens::new(
        Arc::new(provider.interface()),
        Arc::new(FixedClock::at(NOW)),
        sink,
    );
    let source = tokens.of(INSTALLATION, Target::Number(REPOSITORY));
    let error = source.token(Use::Propose, NOTHING).await.unwrap_err();
    assert!(matches!(
        error,
        TokenError::Suspended {
            installation: INSTALLATION,
            ..
        }
    ));
    assert!(provider.orders().is_empty());
}

#[tokio::test]
async fn an_app_that_is_not_believed_says_how_far_the_clocks_are_apart() {
    let provider = provider().await;
    *provider.shared.ahead.lock().unwrap() = -300;
    let ahead = provider.interface().app().await.unwrap_err();
    *provider.shared.ahead.lock().unwrap() = 3600;
    let behind = provider.interface().app().await.unwrap_err();
    *provider.shared.ahead.lock().unwrap() = 0;
    let options = AppOptions {
        app: 12,
        ..provider.options()
    };
    let other = AppInterface::new(options).unwrap().app().await.unwrap_err();
    insta::assert_snapshot!(format!("{ahead}\n{behind}\n{other}"));
}

#[tokio::test]
async fn a_token_that_may_more_than_was_asked_is_not_used() {
    let provider = provider().await;
    for bend in [
        |body: &mut Value| {
            body["permissions"] = json!({"contents": "write", "administration": "read"});
        },
        |body: &mut Value| body["permissions"] = json!({"contents": "admin"}),
        |body: &mut Value| body["permissions"] = json!({"contents": "sideways"}),
        |body: &mut Value| body["permissions"] = json!({"contents": 7}),
        |body: &mut Value| body["repositories"] = json!([{"id": REPOSITORY}, {"id": 43}]),
    ] {
        provider.bend(bend);
        let error = refusal(&provider, Use::Execute).await;
        let words = error.to_string();
        assert!(
            words.contains("may do more") || words.contains("other repositories"),
            "{words}"
        );
    }
    provider.bend(|body| body["repositories"] = json!([{"id": REPOSITORY}]));
    provider
        .interface()
        .mint(&order(Use::Execute))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_answer_that_does_not_parse_is_not_repeated() {
    let provider = provider().await;
    for bend in [
        |body: &mut Value| *body = json!([body["token"], "x"]),
        |body: &mut Value| body["expires_at"] = body["token"].clone(),
        |body: &mut Value| body["permissions"] = body["token"].clone(),
        |body: &mut Value| body["token"] = json!(format!("{} {}", body["token"], "x")),
        |body: &mut Value| body["token"] = json!({"odd": body["token"]}),
        |body: &mut Value| body["token"] = json!("x".repeat(5000)),
        |body: &mut Value| body["token"] = json!(""),
        |body: &mut Value| body["token"] = Value::Null,
        |body: &mut Value| body["expires_at"] = Value::Null,
    ] {
        provider.bend(bend);
        let error = refusal(&provider, Use::Read).await;
        let words = format!("{error} {error:?}");
        assert!(matches!(error, TokenError::Refused { .. }), "{words}");
        assert!(!words.contains("ghs_") && !words.contains("xxx"), "{words}");
    }
}

#[tokio::test]
async fn the_installation_of_a_repository_is_found() {
    let provider = provider().await;
    let interface = provider.interface();
    let found = interface.installation_of("octo", "widget").await.unwrap();
    assert_eq!((found.id, found.suspended), (INSTALLATION, false));
    assert_eq!(found.permissions.get("contents"), Some(Level::Write));
    let absent = interface.installation_of("octo", "gadget").await;
    assert!(matches!(absent, Err(TokenError::Absent { .. })));
    let asked = provider.asked().len();
    for (owner, name) in [("..", "x"), ("octo", "a/b"), ("octo", "a?b"), ("", "x")] {
        assert!(interface.installation_of(owner, name).await.is_err());
    }
    assert_eq!(
        provider.asked().len(),
        asked,
        "no odd name reaches the provider"
    );
    // Another App's installation is none of ours.
    provider.bend(|body| body["app_id"] = json!(1));
    let foreign = interface.installation_of("octo", "widget").await;
    assert!(matches!(foreign, Err(TokenError::Absent { .. })));
}

/// Waits until the whole request is there; its body ends with a brace.
async fn asked(stream: &mut tokio::net::TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        if stream.read_buf(&mut request).await.unwrap() == 0 {
            return;
        }
    }
}

/// A server that answers every connection with the same bytes.
async fn raw(head: &'static str, body: Vec<u8>, endless: bool) -> AppInterface {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let body = body.clone();
            tokio::spawn(async move {
                asked(&mut stream).await;
                drop(stream.write_all(head.as_bytes()).await);
                while stream.write_all(&body).await.is_ok() && endless {}
                if head.is_empty() {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    AppInterface::new(AppOptions {
        api_url: origin,
        app: provider::APP,
        key: caretaker::connector::github::app::AppKey::from_pem(&SecretString::from(PKCS1))
            .unwrap(),
        deadline: Duration::from_millis(if head.is_empty() { 150 } else { 20_000 }),
        clock: Arc::new(FixedClock::at(NOW)),
    })
    .unwrap()
}

#[tokio::test]
async fn limits_silence_redirects_and_endless_answers_are_told_apart() {
    let error = |interface: AppInterface| async move {
        interface
            .mint(&order(Use::Read))
            .await
            .map(|_| ())
            .unwrap_err()
    };
    let limited = raw(
        "HTTP/1.1 403 Forbidden\r\nretry-after: 30\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        Vec::new(),
        false,
    );
    assert_eq!(
        error(limited.await).await,
        TokenError::Limited {
            action: "getting a token for the poller".to_owned(),
            until: NOW.plus_seconds(30),
        }
    );
    let endless = raw(
        "HTTP/1.1 201 Created\r\nconnection: close\r\n\r\n",
        vec![b' '; 65536],
        true,
    );
    let endless = error(endless.await).await;
    assert!(endless.to_string().contains("larger than"), "{endless}");
    let silent = error(raw("", Vec::new(), false).await).await;
    assert!(
        silent.is_transient() && silent.to_string().contains("within 150 ms"),
        "{silent}"
    );
    let broken = error(
        raw(
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            Vec::new(),
            false,
        )
        .await,
    );
    assert!(broken.await.is_transient());
    let elsewhere = raw(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        Vec::new(),
        false,
    );
    let elsewhere = error(elsewhere.await).await;
    assert!(
        matches!(elsewhere, TokenError::Refused { .. }),
        "{elsewhere}"
    );
}

#[test]
fn an_address_in_clear_text_is_refused() {
    let options = AppOptions {
        api_url: "http://ghe.example.com/api/v3".to_owned(),
        app: 1,
        key: caretaker::connector::github::app::AppKey::from_pem(&SecretString::from(PKCS1))
            .unwrap(),
        deadline: Duration::from_secs(1),
        clock: Arc::new(FixedClock::at(NOW)),
    };
    assert!(AppInterface::new(options).is_err());
}

#[tokio::test]
async fn a_token_by_name_opens_the_named_repository_alone() {
    let provider = provider().await;
    let by_name = MintOrder {
        repository: Target::Name("widget".to_owned()),
        ..order(Use::Read)
    };
    provider.bend(|body| body["repositories"] = json!([{"id": REPOSITORY, "name": "Widget"}]));
    let minted = provider.interface().mint(&by_name).await.unwrap();
    assert_eq!(minted.repository, Some(REPOSITORY));
    let orders = provider.orders();
    assert_eq!(orders[0]["repositories"], json!(["widget"]));
    assert!(orders[0].get("repository_ids").is_none());
    for others in [
        json!([{"id": 43, "name": "gadget"}]),
        json!([{"id": REPOSITORY, "name": "widget"}, {"id": 43, "name": "widget"}]),
        json!([{"id": 43}]),
    ] {
        provider.bend(move |body| body["repositories"] = others.clone());
        let refused = provider.interface().mint(&by_name).await;
        assert!(refused.is_err());
    }
}
