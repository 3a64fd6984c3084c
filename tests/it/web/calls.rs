//! Tool calls that wait, over HTTP: every status code of the interface, and who may answer.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use caretaker::approvals::{Approvals, Question};
use caretaker::audit_stream::AuditStream;
use caretaker::change::Sha256Digest;
use caretaker::id::ToolCallId;
use caretaker::signer::system_randomness;
use caretaker::store::{CallDecision, NewCall};
use caretaker::tool_gate::always_allow::Pattern;
use caretaker::tool_gate::call_pattern::CallOrigin;
use caretaker::web::{ScopedToken, ToolCalls, router};
use serde_json::{Value, json};

use super::http::{Answer, post_with, send};
use super::scene::{NOW, Scene, after};

const TOKEN: &str = "correct-horse-battery-staple";

struct World {
    scene: Scene,
    router: axum::Router,
    folder: tempfile::TempDir,
}

impl World {
    async fn new(tokens: bool) -> Self {
        let scene = Scene::new().await;
        let folder = tempfile::tempdir().unwrap();
        let stream =
            AuditStream::open(folder.path(), scene.clock.clone(), &mut system_randomness).unwrap();
        let approvals = Approvals::new(
            scene.store.clone(),
            scene.project.organisation.clone(),
            Arc::new(stream),
            scene.clock.clone(),
            system_randomness,
            600,
        );
        let token = ScopedToken {
            principal: "mailto:ada@example.org".to_owned(),
            hash: Sha256Digest::of(TOKEN.as_bytes()),
        };
        let mut state = scene.state();
        state.public_url = Some("https://caretaker.example".into());
        state.tool_calls = Some(ToolCalls {
            approvals,
            tokens: if tokens { vec![token] } else { Vec::new() }.into(),
        });
        Self {
            router: router(state),
            scene,
            folder,
        }
    }

    async fn ask(&self) -> ToolCallId {
        let id = ToolCallId::new(NOW, self.scene.fresh());
        let arguments = json!({"command": "<b>cargo</b> publish"});
        let call = NewCall {
            id: id.clone(),
            session: "s-1",
            task: "inc-1",
            role: "worker",
            pattern: Pattern::of("Bash", &arguments),
            arguments: &arguments.to_string(),
            nonce: NONCE,
            ttl_seconds: 600,
            origin: &CallOrigin {
                scope: "prj".to_owned(),
                worktree: "/work".to_owned(),
                folder: None,
            },
        };
        let organisation = &self.scene.project.organisation;
        let asked = self.scene.store.ask_about_call(organisation, &call, NOW);
        asked.await.unwrap();
        id
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(&self.router, request.body(Body::empty()).unwrap()).await
    }

    async fn resolve(&self, id: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::post(format!("/approvals/{id}/resolve"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(
            &self.router,
            request.body(Body::from(body.to_owned())).unwrap(),
        )
        .await
    }

    fn stream(&self) -> Vec<Value> {
        let files = caretaker::audit_stream::files(self.folder.path()).unwrap();
        let text: String = files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

const NONCE: &str = "abababababababababababababababab";
const HERE: &[(&str, &str)] = &[("host", "127.0.0.1:8080")];

#[tokio::test]
async fn every_status_of_the_interface() {
    let world = World::new(false).await;
    let id = world.ask().await;
    let good = json!({"decision": "allow", "nonce": NONCE}).to_string();
    let unknown = ToolCallId::new(NOW, [77; 10]).to_string();
    for (id, body, expected) in [
        ("..%2Fx", good.as_str(), 400),
        ("ap-123", &good, 400),
        (&unknown, &good, 404),
        (id.as_str(), r#"{"decision":"allow"}"#, 409),
        (id.as_str(), r#"{"decision":"allow","nonce":"00"}"#, 409),
        (id.as_str(), r#"{"decision":"maybe","nonce":"00"}"#, 422),
        (
            id.as_str(),
            r#"{"decision":"allow","nonce":"00","x":1}"#,
            422,
        ),
        (id.as_str(), "", 422),
        (id.as_str(), "[", 422),
        (id.as_str(), &"x".repeat(20_000), 413),
        (
            id.as_str(),
            &json!({"decision": "reject", "nonce": NONCE, "reason": "x".repeat(501)}).to_string(),
            422,
        ),
        (id.as_str(), &good, 200),
        (id.as_str(), &good, 410),
    ] {
        let answer = world.resolve(id, body, HERE).await;
        assert_eq!(
            answer.status.as_u16(),
            expected,
            "{id} {body:.40}: {}",
            answer.body
        );
        let said = answer.json();
        assert!(
            said["error"].is_string() || said["status"] == "resolved",
            "{said}"
        );
    }
    let late = world.ask().await;
    world.scene.clock.advance_millis(600_000);
    let answer = world.resolve(late.as_str(), &good, HERE).await;
    assert_eq!(answer.status, StatusCode::GONE);
    let events = world.stream();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["event"], "human_approval_decision");
    assert_eq!(events[0]["fields"]["actor"], "dashboard-operator");
    assert_eq!(events[0]["fields"]["auth_method"], "loopback");
}

#[tokio::test]
async fn the_queue_tells_what_waits() {
    let world = World::new(false).await;
    assert_eq!(
        world.get("/approvals/queue", HERE).await.json(),
        json!({"pending": []})
    );
    let id = world.ask().await;
    let pending = world.get("/approvals/queue", HERE).await.json();
    assert_eq!(
        pending,
        json!({"pending": [{
            "id": id.as_str(), "session_id": "s-1", "task_id": "inc-1", "agent_role": "worker", "tool_name": "Bash",
            "tool_args": {"command": "<b>cargo</b> publish"}, "created_at": NOW.to_string(),
            "expires_at": after(600).to_string(), "ttl_seconds": 600, "nonce": NONCE,
        }]})
    );
    let other = world
        .get("/approvals/queue?session_id=s-2", HERE)
        .await
        .json();
    assert_eq!(other, json!({"pending": []}));
}

/// Break it: let whoever sends no token be the operator (`web::calls::decider`).
#[tokio::test]
async fn with_tokens_nobody_answers_without_one() {
    let world = World::new(true).await;
    let id = world.ask().await;
    let good = json!({"decision": "reject", "nonce": NONCE, "reason": "not today"}).to_string();
    for headers in [
        HERE.to_vec(),
        vec![("authorization", "Bearer wrong")],
        vec![("authorization", "Bearer ")],
        vec![("authorization", TOKEN)],
        vec![("authorization", "Basic correct-horse-battery-staple")],
    ] {
        assert_eq!(
            world.resolve(id.as_str(), &good, &headers).await.status,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(
            world.get("/approvals/queue", &headers).await.status,
            StatusCode::UNAUTHORIZED
        );
    }
    let page = world.get("/approvals", HERE).await;
    assert!(
        !page.body.contains(NONCE) && !page.body.contains("publish"),
        "{}",
        page.body
    );
    let form = format!("decision=allow&nonce={NONCE}");
    let answer = post_with(
        &world.router,
        &format!("/approvals/{id}/answer"),
        &form,
        &[],
    )
    .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);

    let bearer = format!("Bearer {TOKEN}");
    let answer = world
        .resolve(id.as_str(), &good, &[("authorization", &bearer)])
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    let fields = &world.stream()[0]["fields"];
    assert_eq!(fields["actor"], "mailto:ada@example.org");
    assert_eq!(fields["auth_method"], "scoped-token");
    assert!(!world.stream()[0].to_string().contains(TOKEN));
}

/// A page elsewhere whose name was made to lead to this machine names itself in `Host`.
#[tokio::test]
async fn a_name_that_leads_here_is_not_this_machine() {
    let world = World::new(false).await;
    let id = world.ask().await;
    let good = json!({"decision": "allow", "nonce": NONCE}).to_string();
    for headers in [
        vec![("host", "evil.example:8080")],
        vec![("host", "127.0.0.1.evil.example")],
        // By the public name others come, too.
        vec![("host", "caretaker.example")],
        vec![
            ("host", "caretaker.example"),
            ("origin", "https://caretaker.example"),
        ],
        vec![("host", "localhost.evil.example:80")],
        vec![],
        vec![
            ("host", "127.0.0.1:8080"),
            ("origin", "http://evil.example"),
        ],
        vec![("host", "127.0.0.1:8080"), ("sec-fetch-site", "cross-site")],
    ] {
        let answer = world.resolve(id.as_str(), &good, &headers).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{headers:?}");
        assert_eq!(
            world.get("/approvals/queue", &headers).await.status,
            StatusCode::UNAUTHORIZED,
            "{headers:?}"
        );
        assert_ne!(
            world.get("/approvals", &headers).await.status,
            StatusCode::OK,
            "{headers:?}"
        );
    }
    for host in [
        "localhost",
        "localhost:1",
        "127.0.0.1",
        "[::1]:8080",
        "[::1]",
    ] {
        assert_eq!(
            world
                .get("/approvals/queue", &[("host", host)])
                .await
                .status,
            StatusCode::OK,
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_person_answers_on_the_page() {
    let world = World::new(false).await;
    let id = world.ask().await;
    let page = world.get("/approvals", HERE).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.body.contains("&#60;b&#62;cargo") || page.body.contains("&lt;b&gt;cargo"),
        "{}",
        page.body
    );
    assert!(page.body.contains(NONCE));
    let form = format!("decision=always&nonce={NONCE}&reason=");
    let path = format!("/approvals/{id}/answer");
    let foreign = post_with(
        &world.router,
        &path,
        &form,
        &[("origin", "http://evil.example")],
    )
    .await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let answer = post_with(&world.router, &path, &form, &[]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(answer.header(header::LOCATION.as_str()), "/approvals");
    let again = post_with(&world.router, &path, &form, &[]).await;
    assert_eq!(again.status, StatusCode::GONE);
    let found = world
        .scene
        .store
        .tool_call(&world.scene.project.organisation, &id)
        .await;
    assert_eq!(
        found.unwrap().unwrap().resolution.unwrap().decision,
        CallDecision::Always
    );
    assert!(world.get("/approvals", HERE).await.body.contains("None."));
}

#[tokio::test]
async fn whoever_cannot_be_put_on_record_decides_nothing() {
    let world = World::new(false).await;
    let id = world.ask().await;
    std::fs::write(world.folder.path().join("head"), "nonsense").unwrap();
    let good = json!({"decision": "allow", "nonce": NONCE}).to_string();
    let answer = world.resolve(id.as_str(), &good, HERE).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    let found = world
        .scene
        .store
        .tool_call(&world.scene.project.organisation, &id)
        .await;
    assert_eq!(found.unwrap().unwrap().resolution, None);
}

/// Asked in another process's place: what `ask` waits for is what the form gives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_releases_an_agent_that_waits() {
    let world = World::new(false).await;
    let stream = AuditStream::open(
        world.folder.path(),
        world.scene.clock.clone(),
        &mut system_randomness,
    )
    .unwrap();
    let approvals = Approvals::new(
        world.scene.store.clone(),
        world.scene.project.organisation.clone(),
        Arc::new(stream),
        world.scene.clock.clone(),
        system_randomness,
        600,
    );
    let arguments = json!({"file_path": "src/a.rs"});
    let question = Question {
        session: "s-9",
        task: "inc-1",
        role: "worker",
        tool: "Write",
        arguments: &arguments,
        worktree: "/work",
        works_in: None,
    };
    let person = async {
        loop {
            let queue = world.get("/approvals/queue", HERE).await.json();
            if let Some(call) = queue["pending"].get(0) {
                let body = json!({"decision": "reject", "nonce": call["nonce"], "reason": "not that file"});
                let id = call["id"].as_str().unwrap();
                assert_eq!(
                    world.resolve(id, &body.to_string(), HERE).await.status,
                    StatusCode::OK
                );
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let (answer, ()) = tokio::join!(approvals.ask(&question), person);
    assert_eq!(
        answer.unwrap(),
        caretaker::approvals::Answer::Refused("not that file".to_owned())
    );
}

/// What it may hold is `tool_gate::call_pattern`'s matter; that it is looked at before anything counts is this test's.
#[tokio::test]
async fn a_pattern_that_is_not_taken_decides_nothing() {
    let world = World::new(false).await;
    let id = world.ask().await;
    for (decision, pattern) in [
        ("always", "cargo *"),
        ("always", "sh **"),
        ("allow", "cargo publish"),
    ] {
        let body = json!({"decision": decision, "nonce": NONCE, "pattern": pattern});
        let answer = world.resolve(id.as_str(), &body.to_string(), HERE).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(answer.body.contains("the pattern is not taken"));
    }
    let path = format!("/approvals/{id}/answer");
    let form = format!("decision=pattern&nonce={NONCE}&pattern=cargo+*");
    let answer = post_with(&world.router, &path, &form, &[]).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let organisation = &world.scene.project.organisation;
    let found = world.scene.store.tool_call(organisation, &id).await;
    assert_eq!(found.unwrap().unwrap().resolution, None);
    // What stands in the field counts with its own button alone.
    let form = format!("decision=allow&nonce={NONCE}&pattern=cargo+*");
    let answer = post_with(&world.router, &path, &form, &[]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    let patterns = world.scene.store.pattern_list(organisation).await.unwrap();
    assert!(patterns.is_empty());
}
