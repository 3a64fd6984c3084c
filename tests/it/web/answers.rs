//! An approval link is looked at as often as anyone likes, and answered once, with its own form.

use axum::http::{Method, StatusCode};
use caretaker::approve::{ApprovalToken, HumanDecision};
use caretaker::incident::Snapshot;
use caretaker::store::ApprovalRow;

use super::http::{ask, get, post, post_with};
use super::ledgers::run;
use super::scene::{Scene, after};
use super::story::{Story, Words};

/// An incident whose owner is asked, and the link.
struct Asked<'a> {
    story: Story<'a>,
    link: String,
    question: String,
}

pub(super) fn token(number: u8) -> ApprovalToken {
    ApprovalToken::from_random([number; 32])
}

pub(super) fn link(token: &ApprovalToken) -> String {
    format!("/a/{}", token.to_link_text().as_str())
}

impl<'a> Asked<'a> {
    async fn until(scene: &'a Scene, seconds: i64) -> Self {
        let mut story = Story::begin(scene, Words::default()).await;
        story.investigate().await;
        story.fix().await;
        let token = token(1);
        story.ask(token.hash(), seconds).await;
        Self {
            link: link(&token),
            question: story.request(after(seconds)).digest().to_string(),
            story,
        }
    }

    fn form(&self, decision: &str) -> String {
        format!("request={}&comment=&decision={decision}", self.question)
    }

    async fn snapshot(&self) -> Snapshot {
        let scene = self.story.scene;
        let scope = scene.store.within(&scene.project.organisation);
        let now = scene.clock_now();
        let snapshot = scope.snapshot(&self.story.incident, now).await;
        snapshot.unwrap().unwrap()
    }

    async fn links(&self) -> Vec<ApprovalRow> {
        let scene = self.story.scene;
        let scope = scene.store.within(&scene.project.organisation);
        scope.approvals(&self.story.incident).await.unwrap()
    }
}

#[tokio::test]
async fn whatever_fetches_a_link_a_hundred_times_uses_nothing() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let router = scene.router();
    let before = (asked.snapshot().await, asked.links().await);
    let first = get(&router, &asked.link).await;
    assert_eq!(first.status, StatusCode::OK);
    for method in [Method::GET, Method::HEAD].iter().cycle().take(200) {
        let again = ask(&router, method.clone(), &asked.link).await;
        assert_eq!(again.status, StatusCode::OK);
        assert!(again.body == first.body || *method == Method::HEAD);
    }
    for method in [Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        let refused = ask(&router, method, &asked.link).await;
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    // Break it: let `pages::approval` call `Store::consume`.
    assert_eq!((asked.snapshot().await, asked.links().await), before);
}

#[tokio::test]
async fn an_answer_counts_once() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let router = scene.router();
    scene.clock.advance_millis(60_000);
    let form = format!(
        "request={}&comment=Looks+right.%0D%0AThanks%21&decision=approve&csrf=unknown",
        asked.question
    );
    let done = post(&router, &asked.link, &form).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.body);
    let place = format!("/incidents/{}#approve", asked.story.incident);
    assert_eq!(done.header("location"), place);

    let snapshot = asked.snapshot().await;
    assert_eq!(snapshot.answer(), Some(HumanDecision::Approve));
    let page = get(&router, &place).await;
    assert!(
        page.body.contains("Looks right.\nThanks!"),
        "the remark is shown"
    );

    for decision in ["approve", "reject"] {
        let again = post(&router, &asked.link, &asked.form(decision)).await;
        // Break it: leave the look at `gone` out of `web::answer`, and answer 303 whatever `Store::consume` says.
        assert_eq!(again.status, StatusCode::GONE);
    }
    let again = get(&router, &asked.link).await;
    assert_eq!(again.status, StatusCode::GONE);
    assert!(
        again.body.contains("was approved through it"),
        "{}",
        again.body
    );
    assert_eq!(asked.snapshot().await, snapshot);
}

#[tokio::test]
async fn a_rejection_is_an_answer() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let done = post(&scene.router(), &asked.link, &asked.form("reject")).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    assert_eq!(asked.snapshot().await.answer(), Some(HumanDecision::Reject));
}

#[tokio::test]
async fn a_link_that_has_expired_is_gone() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let router = scene.router();
    scene.clock.advance_millis(3_600_000);
    let before = asked.snapshot().await;
    let late = post(&router, &asked.link, &asked.form("approve")).await;
    assert_eq!(late.status, StatusCode::GONE);
    let page = get(&router, &asked.link).await;
    assert_eq!(page.status, StatusCode::GONE);
    assert!(page.body.contains("has expired"));
    assert!(!page.body.contains("<form"), "an expired link has no form");
    assert_eq!(asked.snapshot().await, before);
}

#[tokio::test]
async fn a_link_that_was_never_made_is_unknown() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let router = scene.router();
    let other = link(&token(2));
    assert_eq!(get(&router, &other).await.status, StatusCode::NOT_FOUND);
    let posted = post(&router, &other, &asked.form("approve")).await;
    assert_eq!(posted.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn what_is_not_the_form_is_malformed_and_does_nothing() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let router = scene.router();
    let before = asked.snapshot().await;
    let question = &asked.question;
    let long = "%C3%A9".repeat(251);
    let forms = [
        String::new(),
        format!("request={question}"),
        format!("request={question}&decision="),
        format!("request={question}&decision=Approve"),
        format!("request={question}&decision=approve&decision=approve"),
        format!("request={question}&decision=approve&decision=reject"),
        format!("request={question}&request={question}&decision=approve"),
        "decision=approve".to_owned(),
        "request=&decision=approve".to_owned(),
        format!("request={}&decision=approve", question.to_uppercase()),
        format!("request={question}&decision=approve&comment={long}"),
        format!("request={question}&decision=approve&comment=a%00b"),
    ];
    for form in &forms {
        let refused = post(&router, &asked.link, form).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    let json = [("content-type", "application/json")];
    let body = format!(r#"{{"request":"{question}","decision":"approve"}}"#);
    let request = axum::http::Request::post(&asked.link).header(json[0].0, json[0].1);
    let request = request.body(axum::body::Body::from(body)).unwrap();
    let refused = super::http::send(&router, request).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    for bad in ["/a/x", "/a/%FF", &format!("{}A", asked.link)] {
        let refused = post(&router, bad, &asked.form("approve")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
    let huge = format!("{}&comment={}", asked.form("approve"), "a".repeat(9_000));
    let refused = post(&router, &asked.link, &huge).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(asked.snapshot().await, before);
}

#[tokio::test]
async fn a_form_for_another_question_answers_nothing() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let before = asked.snapshot().await;
    let other = asked.story.request(after(7_200)).digest();
    let form = format!("request={other}&decision=approve");
    let refused = post(&scene.router(), &asked.link, &form).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(asked.snapshot().await, before);
}

#[tokio::test]
async fn a_form_of_another_site_answers_nothing() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let router = scene.router();
    let before = asked.snapshot().await;
    let foreign: [&[(&str, &str)]; 5] = [
        &[("origin", "https://evil.example")],
        &[("origin", "http://127.0.0.1:8081")],
        &[("origin", "127.0.0.1:8080")],
        &[("origin", "null"), ("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
    ];
    for headers in foreign {
        let refused = post_with(&router, &asked.link, &asked.form("approve"), headers).await;
        // Break it: let `answer::is_foreign` answer false.
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{headers:?}");
    }
    assert_eq!(asked.snapshot().await, before);
    // What a browser sends with our own form: no referrer, hence no origin.
    let own = [("origin", "null"), ("sec-fetch-site", "same-origin")];
    let done = post_with(&router, &asked.link, &asked.form("approve"), &own).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn our_own_origin_is_the_host_or_the_public_address() {
    for origin in ["http://127.0.0.1:8080", "https://caretaker.example"] {
        let scene = Scene::new().await;
        let asked = Asked::until(&scene, 3_600).await;
        let mut state = scene.state();
        state.public_url = Some("https://caretaker.example/".to_owned());
        let router = caretaker::web::router(state);
        let own = [("origin", origin)];
        let done = post_with(&router, &asked.link, &asked.form("approve"), &own).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{origin}");
    }
}

#[tokio::test]
async fn the_page_shows_exactly_what_is_approved() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let page = get(&scene.router(), &asked.link).await;
    let text = super::text::text_of(&page.body);
    let request = asked.story.request(after(3_600));
    let binding = &request.binding;
    let entry = &binding.change.entries[0];
    let shown = [
        "https://github.example/example/parcel".to_owned(),
        binding.repository_id.clone(),
        binding.host.clone(),
        "pull request 7".to_owned(),
        binding.base_ref.clone(),
        binding.merge_base.to_string(),
        binding.head_ref.clone(),
        binding.head_commit.to_string(),
        binding.head_tree.to_string(),
        binding.change.digest.to_string(),
        entry.path.clone().unwrap(),
        entry.old_mode.as_str().to_owned(),
        entry.old_oid.to_string(),
        entry.new_oid.to_string(),
        binding.title.clone(),
        "A test holds the boundary.".to_owned(),
        "squash".to_owned(),
        request.principal.to_string(),
        "customers see these dates".to_owned(),
        "Prices and weights must never be rounded down.".to_owned(),
        "failed, as it has to".to_owned(),
        "2027-01-15 09:00:00 UTC".to_owned(),
    ];
    for text_shown in shown {
        assert!(text.contains(&text_shown), "{text_shown} is not in\n{text}");
    }
    assert!(
        page.body
            .contains(&format!(r#"name="request" value="{}""#, asked.question))
    );
    insta::assert_snapshot!("approval_page", text);
}

#[tokio::test]
async fn evidence_that_does_not_count_is_not_shown_as_proof() {
    let scene = Scene::new().await;
    let asked = Asked::until(&scene, 3_600).await;
    let tests = asked.snapshot().await.fix().unwrap().tests.clone();
    let mut raw = scene.raw().await;
    run(&mut raw, "DROP TRIGGER evidence_no_delete".to_owned()).await;
    let red = tests[0];
    run(
        &mut raw,
        format!("DELETE FROM evidence WHERE digest = '{red}'"),
    )
    .await;
    let page = get(&scene.router(), &asked.link).await;
    assert!(page.body.contains("do not prove the fix"));
    assert!(page.body.contains("This evidence does not count"));
}
