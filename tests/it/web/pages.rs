//! What the pages say, and what they never let through.

use axum::http::{Method, StatusCode};
use caretaker::attest::SecretKey;
use caretaker::id::{IncidentId, OrganisationId, ProjectId};
use caretaker::log::{Checkpoint, KeyName, Leaf, LogSigner, Record};
use caretaker::store::{Project, StoredAnchor};

use super::answers::{link, token};
use super::http::{ask, get, post};
use super::scene::{NOW, Scene, after, project};
use super::story::{Story, Words};
use super::text::text_of;

/// Merged, from the failed run to the proof.
async fn merged(scene: &Scene) -> Story<'_> {
    let mut story = Story::begin(scene, Words::default()).await;
    story.investigate().await;
    story.fix().await;
    let token = token(1);
    story.ask(token.hash(), 3_600).await;
    scene.clock.advance_millis(60_000);
    let question = story.request(after(3_600)).digest();
    let form = format!("request={question}&decision=approve&comment=Good.");
    let done = post(&scene.router(), &link(&token), &form).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    story.sign_the_answer().await;
    story
}

#[tokio::test]
async fn a_merged_incident_tells_its_whole_story() {
    let scene = Scene::new().await;
    let mut story = merged(&scene).await;
    story.land().await;
    let page = get(&scene.router(), &format!("/incidents/{}", story.incident)).await;
    assert_eq!(page.status, StatusCode::OK);
    insta::assert_snapshot!("merged_incident", text_of(&page.body));
}

#[tokio::test]
async fn the_log_says_how_long_it_is_and_who_else_holds_it() {
    let scene = Scene::new().await;
    let page = get(&scene.router(), "/log").await;
    assert!(text_of(&page.body).contains("There is no checkpoint yet"));
    let organisation = &scene.project.organisation;
    let at = NOW;
    let leaf = Leaf::record(Record::Heartbeat { at }).unwrap();
    scene.store.log(organisation, &leaf, NOW).await.unwrap();
    let head = scene.store.within(organisation).log_frontier().await;
    let head = head.unwrap().head();
    let key = SecretKey::from_seed(&[7; 32]);
    let origin = KeyName::new("caretaker/example").unwrap();
    let signer = LogSigner::new(origin.clone(), key);
    let signed = signer.sign(Checkpoint::new(origin, head)).unwrap();
    let note = signed.to_string();
    let kept = scene
        .store
        .keep_checkpoint(organisation, head.size(), &note, NOW);
    kept.await.unwrap();
    for (size, name) in [(1, "auditor"), (2, "auditor"), (1, "<i>other</i>")] {
        let anchor = StoredAnchor {
            size,
            kind: "witness".to_owned(),
            name: name.to_owned(),
            receipt: vec![1],
            anchored_at: NOW,
        };
        scene
            .store
            .keep_anchor(organisation, &anchor)
            .await
            .unwrap();
    }
    let page = get(&scene.router(), "/log").await;
    assert_eq!(page.status, StatusCode::OK);
    insta::assert_snapshot!("log", text_of(&page.body));
}

#[tokio::test]
async fn a_changed_pull_request_shows_what_differed() {
    let scene = Scene::new().await;
    let mut story = merged(&scene).await;
    story.hand_over().await;
    let page = get(&scene.router(), &format!("/incidents/{}", story.incident)).await;
    let text = text_of(&page.body);
    let stages: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("gate "))
        .take(5)
        .collect();
    let expected = [
        "gate done",
        "approve done",
        "attest done",
        "execute refused",
        "reconcile refused",
    ];
    assert_eq!(stages, expected);
    assert!(text.contains("head-commit"), "{text}");
    assert!(
        text.contains("A person has to look (change-mismatch)"),
        "{text}"
    );
}

#[tokio::test]
async fn a_denied_incident_stops_at_the_gate() {
    let scene = Scene::new().await;
    let words = Words {
        path: ".github/workflows/ci.yml".to_owned(),
        ..Words::default()
    };
    let mut story = Story::begin(&scene, words).await;
    story.investigate().await;
    story.refuse().await;
    story.end().await;
    let page = get(&scene.router(), &format!("/incidents/{}", story.incident)).await;
    let text = text_of(&page.body);
    let stages: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("gate "))
        .take(5)
        .collect();
    let expected = [
        "gate refused",
        "approve not reached",
        "attest done",
        "execute not reached",
        "reconcile not reached",
    ];
    assert_eq!(stages, expected);
    assert!(
        text.contains("the pipeline is changed by people only"),
        "{text}"
    );
}

#[tokio::test]
async fn a_page_says_why_the_incident_waits() {
    let scene = Scene::new().await;
    let mut story = Story::begin(&scene, Words::default()).await;
    let path = format!("/incidents/{}", story.incident);
    let router = scene.router();
    let early = text_of(&get(&router, &path).await.body);
    assert!(
        early.contains("Next, its tests run in the sandbox at the failing commit."),
        "{early}"
    );
    story.investigate().await;
    story.rest(after(90), "the coder does not answer").await;
    let resting = text_of(&get(&router, &path).await.body);
    let why = "It rests until 2027-01-15 08:01:30 UTC: the coder does not answer.";
    assert!(resting.contains(why), "{resting}");
}

#[tokio::test]
async fn the_list_shows_stage_project_and_age() {
    let scene = Scene::new().await;
    let empty = get(&scene.router(), "/").await;
    assert!(empty.body.contains("No incident."));
    let mut story = Story::begin(&scene, Words::default()).await;
    story.investigate().await;
    story.fix().await;
    story.ask(token(1).hash(), 3_600).await;
    scene.clock.advance_millis(7_260_000);
    let page = get(&scene.router(), "/").await;
    let text = text_of(&page.body);
    for shown in [
        "test failed on main",
        "awaiting-approval",
        "example/parcel",
        "2 h 1 min ago",
        story.incident.as_str(),
    ] {
        assert!(text.contains(shown), "{shown} is not in\n{text}");
    }
}

/// Nothing that runs, nothing that hides.
#[tokio::test]
async fn hostile_text_is_shown_and_does_nothing() {
    let scene = Scene::new().await;
    let script = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let reversed = "safe\u{202e}live\u{2066}\u{200b}\u{e0041}";
    let words = Words {
        job: format!("{script}{reversed}"),
        cause: format!("{script}{reversed}"),
        remark: format!("{script}{reversed}"),
        title: format!("{script}{reversed}"),
        body: format!("{script}\n{reversed}\u{7}\u{1b}[31m"),
        path: format!("src/{reversed}<b>.rs"),
        tail: format!("{script}{reversed}"),
        pull_url: "javascript:alert(document.domain)".to_owned(),
    };
    let mut story = Story::begin(&scene, words).await;
    story.investigate().await;
    story.fix().await;
    let token = token(1);
    story.ask(token.hash(), 3_600).await;
    let pages = [
        "/".to_owned(),
        format!("/incidents/{}", story.incident),
        format!("/incidents/{}/ledger", story.incident),
        link(&token),
    ];
    for path in pages {
        let page = get(&scene.router(), &path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}");
        // Break it: write `|safe` behind a value of a template.
        for raw in [
            "<script",
            "<img",
            "<b>",
            "javascript:\"",
            "href=\"javascript",
        ] {
            assert!(!page.body.contains(raw), "{raw} in {path}");
        }
        // Break it: let `shown::hides` answer false.
        for hidden in [
            '\u{202e}',
            '\u{2066}',
            '\u{200b}',
            '\u{e0041}',
            '\u{7}',
            '\u{1b}',
        ] {
            assert!(!page.body.contains(hidden), "{hidden:?} in {path}");
        }
        let statements = path.ends_with("/ledger");
        assert!(
            statements || page.body.contains(r"\u{202e}"),
            "{path} does not show what hides"
        );
    }
}

#[tokio::test]
async fn another_organisation_has_no_incidents_here() {
    let scene = Scene::new().await;
    let other = Project {
        id: ProjectId::new(NOW, [4; 10]),
        organisation: OrganisationId::new(NOW, [3; 10]),
        ..project()
    };
    scene.add_project(&other).await;
    let mut story = Story::begin_in(&scene, &other, Words::default()).await;
    story.investigate().await;
    story.fix().await;
    let token = token(1);
    story.ask(token.hash(), 3_600).await;
    let router = scene.router();
    let id = &story.incident;
    for path in [
        format!("/incidents/{id}"),
        format!("/incidents/{id}/ledger"),
        format!("/api/v1/incidents/{id}"),
        format!("/api/v1/incidents/{id}/ledger"),
        link(&token),
    ] {
        // Break it: read with the organisation of the incident instead of the state's.
        assert_eq!(
            get(&router, &path).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    let form = format!(
        "request={}&decision=approve",
        story.request(after(3_600)).digest()
    );
    // Break it: drop the filter in `answer::view`.
    assert_eq!(
        post(&router, &link(&token), &form).await.status,
        StatusCode::NOT_FOUND
    );
    assert!(!get(&router, "/").await.body.contains(id.as_str()));
}

#[tokio::test]
async fn every_answer_carries_the_security_headers() {
    let scene = Scene::new().await;
    let router = scene.router();
    let unknown = IncidentId::new(NOW, [77; 10]);
    let asked = [
        (Method::GET, "/".to_owned(), StatusCode::OK),
        (
            Method::GET,
            "/assets/caretaker.css".to_owned(),
            StatusCode::OK,
        ),
        (Method::GET, "/healthz".to_owned(), StatusCode::OK),
        (Method::GET, "/readyz".to_owned(), StatusCode::OK),
        (Method::GET, "/nowhere".to_owned(), StatusCode::NOT_FOUND),
        (
            Method::GET,
            "/api/v1/nowhere".to_owned(),
            StatusCode::NOT_FOUND,
        ),
        (
            Method::GET,
            format!("/incidents/{unknown}"),
            StatusCode::NOT_FOUND,
        ),
        (
            Method::GET,
            "/incidents/%FF".to_owned(),
            StatusCode::NOT_FOUND,
        ),
        (
            Method::GET,
            "/incidents/inc-1'; DROP TABLE incident".replace(' ', "%20"),
            StatusCode::NOT_FOUND,
        ),
        (
            Method::GET,
            "/a/short".to_owned(),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (Method::POST, "/".to_owned(), StatusCode::METHOD_NOT_ALLOWED),
        (
            Method::DELETE,
            "/api/v1/incidents".to_owned(),
            StatusCode::METHOD_NOT_ALLOWED,
        ),
    ];
    for (method, path, status) in asked {
        let answer = ask(&router, method, &path).await;
        assert_eq!(answer.status, status, "{path}");
        let policy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
        assert_eq!(answer.header("content-security-policy"), policy, "{path}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert!(!answer.body.contains("script"), "{path}");
        assert!(!answer.body.contains("sqlite"), "{path} shows the inside");
    }
}

#[tokio::test]
async fn a_database_that_fails_is_said_without_its_insides() {
    let scene = Scene::new().await;
    let router = scene.router();
    scene.store.close().await;
    for path in ["/", "/readyz", "/api/v1/incidents"] {
        let answer = get(&router, path).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(
            answer.body.contains("The database does not answer."),
            "{path}"
        );
        assert!(
            !answer.body.contains("sqlite") && !answer.body.contains(".db"),
            "{path}"
        );
    }
    assert_eq!(get(&router, "/healthz").await.status, StatusCode::OK);
}
