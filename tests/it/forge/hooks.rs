//! Webhooks: what is sent, lost, doubled and sent again.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use caretaker::forge::{HookFaults, NewApp, NewHook};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Bench, file};
use super::description::Description;
use super::runs::{job, run};
use super::tokens::permissions;
use crate::support::corpus;

/// One request that arrived.
#[derive(Clone, Debug)]
struct Arrived {
    event: String,
    guid: String,
    hook: String,
    signature: String,
    body: String,
}

type Mailbox = Arc<Mutex<Vec<Arrived>>>;

async fn receive(State(mailbox): State<Mailbox>, headers: HeaderMap, body: Bytes) -> &'static str {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    mailbox.lock().unwrap().push(Arrived {
        event: header("x-github-event"),
        guid: header("x-github-delivery"),
        hook: header("x-github-hook-id"),
        signature: header("x-hub-signature-256"),
        body: String::from_utf8(body.to_vec()).unwrap(),
    });
    "thanks"
}

/// A bench with a receiver that hears of everything in its repository.
struct Listening {
    bench: Bench,
    mailbox: Mailbox,
    hook: u64,
    url: String,
}

async fn listening() -> Listening {
    let bench = Bench::new().await;
    let mailbox = Mailbox::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    let service = axum::Router::new()
        .fallback(receive)
        .with_state(Arc::clone(&mailbox));
    tokio::spawn(async move { axum::serve(listener, service).await });
    let hook = bench.forge.add_hook(NewHook {
        repository: Some(bench.repository.id()),
        url: url.clone(),
        secret: "secret".to_owned(),
        events: vec!["*".to_owned()],
    });
    Listening {
        bench,
        mailbox,
        hook,
        url,
    }
}

impl Listening {
    /// Delivers; what arrived since the last look.
    async fn delivered(&self) -> Vec<Arrived> {
        self.bench.forge.deliver().await.unwrap();
        std::mem::take(&mut *self.mailbox.lock().unwrap())
    }

    fn add_run(&self) -> u64 {
        let tip = self.bench.repository.tip("main").unwrap();
        let jobs = vec![job("test", Some("failure"), None)];
        self.bench
            .repository
            .add_run(run(tip, None, Some("failure"), jobs))
            .unwrap()
    }
}

/// HMAC-SHA256 of a body under a key of at most 64 bytes, as GitHub writes it.
fn signature(key: &[u8], body: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let pad = |with: u8| -> Vec<u8> {
        let filled = key.iter().copied().chain(std::iter::repeat(0)).take(64);
        filled.map(|byte| byte ^ with).collect()
    };
    let inner = Sha256::digest([pad(0x36).as_slice(), body].concat());
    let outer = Sha256::digest([pad(0x5c).as_slice(), inner.as_slice()].concat());
    format!("sha256={}", hex::encode(outer))
}

/// The events and actions, in order.
fn names(arrived: &[Arrived]) -> Vec<String> {
    let name = |arrived: &Arrived| {
        let body: Value = serde_json::from_str(&arrived.body).unwrap();
        match body["action"].as_str() {
            Some(action) => format!("{} {action}", arrived.event),
            None => arrived.event.clone(),
        }
    };
    arrived.iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_signed_and_made_when_told() {
    let listening = listening().await;
    let id = listening.add_run();
    assert!(listening.mailbox.lock().unwrap().is_empty());
    let arrived = listening.delivered().await;
    assert_eq!(
        names(&arrived),
        [
            "workflow_run requested",
            "workflow_run completed",
            "check_suite completed"
        ]
    );
    let body: Value = serde_json::from_str(&arrived[1].body).unwrap();
    assert_eq!(body["workflow_run"]["id"], json!(id));
    assert_eq!(body["workflow_run"]["conclusion"], "failure");
    for one in &arrived {
        assert_eq!(one.hook, listening.hook.to_string());
        assert_eq!(one.signature, signature(b"secret", one.body.as_bytes()));
    }
    assert!(listening.delivered().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_lost_doubled_and_reordered() {
    let listening = listening().await;
    listening.bench.forge.hook_faults(HookFaults {
        lose: |number| number == 1,
        duplicate: |number| number == 2,
        reverse: true,
    });
    listening.add_run();
    let arrived = listening.delivered().await;
    // Newest first: the suite is lost, the end of the run comes twice.
    assert_eq!(
        names(&arrived),
        [
            "workflow_run completed",
            "workflow_run completed",
            "workflow_run requested"
        ]
    );
    assert_eq!(arrived[0].guid, arrived[1].guid);
    let lost = listening
        .bench
        .forge
        .deliveries()
        .into_iter()
        .find(|delivery| delivery.status.is_none())
        .unwrap();
    assert_eq!(lost.event, "check_suite");
    listening.bench.forge.redeliver(&lost.guid).unwrap();
    let arrived = listening.delivered().await;
    assert_eq!(names(&arrived), ["check_suite completed"]);
    assert_eq!(arrived[0].guid, lost.guid);
    assert_eq!(arrived[0].body, lost.body);
    assert!(listening.bench.forge.redeliver("nothing").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_deliveries_have_cursors_and_repeat() {
    let Some(description) = Description::read() else {
        return;
    };
    let listening = listening().await;
    let bench = &listening.bench;
    listening.bench.forge.hook_faults(HookFaults {
        lose: |number| number == 3,
        ..HookFaults::default()
    });
    listening.add_run();
    listening.delivered().await;
    let root = format!("/hooks/{}/deliveries", listening.hook);
    let get = |path: String| {
        let description = &description;
        async move {
            let answer = bench.get(&path).await;
            let path = format!("/repos/acme/widget{path}");
            description.check(&Method::GET, &path, &answer);
            answer
        }
    };
    let first = get(format!("{root}?per_page=2")).await;
    assert_eq!(first.body.as_array().unwrap().len(), 2);
    assert_eq!(first.body[0]["event"], "check_suite");
    assert_eq!(first.body[0]["status_code"], 502);
    assert_eq!(first.body[1]["status"], "OK");
    let link = first.header("link");
    let next = link
        .split_once("per_page")
        .unwrap()
        .1
        .split_once('>')
        .unwrap()
        .0;
    let second = get(format!("{root}?per_page{next}")).await;
    assert_eq!(second.body.as_array().unwrap().len(), 1);
    assert_eq!(second.header("link"), "");
    assert_eq!(get(format!("{root}?cursor=odd")).await.status, 422);
    let id = first.body[0]["id"].clone();
    let whole = get(format!("{root}/{id}")).await;
    assert_eq!(whole.body["request"]["payload"]["action"], "completed");
    let attempts = format!("{root}/{id}/attempts");
    let repeated = bench.post(&attempts, json!({})).await;
    description.check(
        &Method::POST,
        &format!("/repos/acme/widget{attempts}"),
        &repeated,
    );
    assert_eq!(repeated.status, 202);
    assert_eq!(
        names(&listening.delivered().await),
        ["check_suite completed"]
    );
    let newest = get(root).await;
    assert_eq!(newest.body[0]["redelivery"], true);
    assert_eq!(newest.body[0]["guid"], first.body[0]["guid"]);
    assert_eq!(bench.get("/hooks/9/deliveries").await.status, 404);
}

/// GitHub's descriptions of what webhooks carry.
struct Payloads(Value);

impl Payloads {
    /// What does not fit.
    fn mistakes(&self, name: &str, body: &Value) -> Vec<String> {
        let key = name.replace(['_', ' '], "-");
        let schema = &self.0["webhooks"][&key]["post"]["requestBody"]["content"]["application/json"]
            ["schema"];
        assert!(schema.is_object(), "{name} is not described");
        let whole = json!({"allOf": [schema], "components": self.0["components"]});
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft202012)
            .should_validate_formats(true)
            .build(&whole)
            .unwrap();
        validator
            .iter_errors(body)
            .map(|error| format!("{name} {}: {error}", error.instance_path()))
            .collect()
    }
}

/// Everything that can happen to an open pull request.
async fn edited(bench: &Bench) {
    let patch = |body: Value| bench.call(Method::PATCH, "/pulls/1", Some(body));
    patch(json!({"title": "Other", "body": "Words"})).await;
    patch(json!({"state": "closed"})).await;
    patch(json!({"state": "open"})).await;
    bench.repository.convert_to_draft(1).unwrap();
    bench.repository.mark_ready(1).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_payload_fits() {
    let Some(bytes) = corpus("github/webhook-schemas-subset.json") else {
        return;
    };
    let payloads = Payloads(serde_json::from_slice(&bytes).unwrap());
    let listening = listening().await;
    let bench = &listening.bench;
    // An App hears of the same and of its installation.
    let app = bench.forge.create_app(NewApp {
        name: "Caretaker".to_owned(),
        slug: "caretaker".to_owned(),
        public_key_pem: String::new(),
    });
    bench.forge.add_hook(NewHook {
        repository: None,
        url: listening.url.clone(),
        secret: "other".to_owned(),
        events: vec!["installation".to_owned(), "push".to_owned()],
    });
    let installation =
        bench
            .forge
            .install_app(app, "acme", permissions(&[("actions", "read")]), None);
    bench.forge.suspend_installation(installation);
    bench.forge.unsuspend_installation(installation);
    bench.branch("fix", &[("new.txt", file("new\n"))]);
    bench.pull("fix").await;
    bench
        .repository
        .commit("fix", &[("new.txt", file("newer\n"))], "More")
        .unwrap();
    edited(bench).await;
    let id = listening.add_run();
    bench.repository.rerun(id).unwrap();
    bench
        .repository
        .complete_run(id, "success", vec![])
        .unwrap();
    assert_eq!(bench.put("/pulls/1/merge", json!({})).await.status, 200);
    bench.repository.delete_reference("refs/heads/fix").unwrap();
    bench.repository.rename("gadget").unwrap();
    bench.repository.transfer("umbrella").unwrap();
    bench.repository.archive().unwrap();
    bench.repository.delete();
    bench.forge.remove_installation(installation);
    let arrived = listening.delivered().await;
    let mut seen = names(&arrived);
    let mistakes: Vec<String> = seen
        .iter()
        .zip(&arrived)
        .flat_map(|(name, one)| payloads.mistakes(name, &serde_json::from_str(&one.body).unwrap()))
        .collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    seen.sort();
    seen.dedup();
    assert_eq!(
        seen,
        [
            "check_suite completed",
            "installation created",
            "installation deleted",
            "installation suspend",
            "installation unsuspend",
            "pull_request closed",
            "pull_request converted_to_draft",
            "pull_request edited",
            "pull_request opened",
            "pull_request ready_for_review",
            "pull_request reopened",
            "pull_request synchronize",
            "push",
            "repository archived",
            "repository deleted",
            "repository renamed",
            "repository transferred",
            "workflow_run completed",
            "workflow_run requested",
        ]
    );
}
