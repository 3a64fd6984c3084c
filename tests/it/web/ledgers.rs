//! A ledger's page is a verification of this read.

use axum::http::StatusCode;
use sqlx::{AnyConnection, SqlSafeStr as _};

use super::http::get;
use super::scene::Scene;
use super::story::{Story, Words};
use super::text::text_of;

/// Does in the database what nobody should.
#[expect(
    clippy::disallowed_methods,
    reason = "a test changes what the store never changes"
)]
pub(super) async fn run(connection: &mut AnyConnection, statement: String) {
    let statement = sqlx::AssertSqlSafe(statement).into_sql_str();
    sqlx::raw_sql(statement).execute(connection).await.unwrap();
}

async fn denied(scene: &Scene) -> Story<'_> {
    let words = Words {
        path: ".github/workflows/ci.yml".to_owned(),
        ..Words::default()
    };
    let mut story = Story::begin(scene, words).await;
    story.investigate().await;
    story.refuse().await;
    story.end().await;
    story
}

#[tokio::test]
async fn a_denied_incident_has_two_valid_events() {
    let scene = Scene::new().await;
    let story = denied(&scene).await;
    let path = format!("/incidents/{}/ledger", story.incident);
    let page = get(&scene.router(), &path).await;
    assert_eq!(page.status, StatusCode::OK);
    insta::assert_snapshot!("ledger_page", text_of(&page.body));
}

#[tokio::test]
async fn a_changed_column_shows_at_the_next_look() {
    let columns = [
        ("type", "'approval'"),
        ("role", "'executor'"),
        ("keyid", "'0'"),
        ("event_id", "'evt-00000000000000000000000000'"),
        ("prev", "'0'"),
        ("pae", "'0'"),
        ("occurred_at", "0"),
        ("envelope", "x'7b7d'"),
    ];
    for (column, value) in columns {
        let scene = Scene::new().await;
        let story = denied(&scene).await;
        let router = scene.router();
        let path = format!("/incidents/{}/ledger", story.incident);
        let before = get(&router, &path).await;
        assert!(
            before.body.contains("<p class=\"verdict-word\">valid</p>"),
            "{}",
            before.body
        );
        let mut raw = scene.raw().await;
        run(&mut raw, "DROP TRIGGER ledger_no_update".to_owned()).await;
        run(
            &mut raw,
            format!("UPDATE ledger SET {column} = {value} WHERE seq = 1"),
        )
        .await;
        let after = get(&router, &path).await;
        assert_eq!(after.status, StatusCode::OK);
        assert!(
            after.body.contains("<p class=\"verdict-word\">invalid</p>"),
            "{column}"
        );
        let document = get(&router, &format!("/api/v1{path}")).await;
        assert_eq!(document.json()["verdict"], "invalid", "{column}");
        let incident = get(&router, &format!("/incidents/{}", story.incident)).await;
        assert!(
            incident.body.contains("verified just now: invalid"),
            "{column}"
        );
    }
}

#[tokio::test]
async fn a_ledger_that_cannot_be_read_is_invalid_too() {
    for change in [
        "head = 'x'",
        "head = NULL",
        "next_seq = 3",
        "next_draft = -1",
    ] {
        let scene = Scene::new().await;
        let story = denied(&scene).await;
        let mut raw = scene.raw().await;
        run(&mut raw, format!("UPDATE chain SET {change}")).await;
        let page = get(
            &scene.router(),
            &format!("/incidents/{}/ledger", story.incident),
        )
        .await;
        assert_eq!(page.status, StatusCode::OK, "{change}");
        assert!(
            page.body.contains("<p class=\"verdict-word\">invalid</p>"),
            "{change}"
        );
    }
}

#[tokio::test]
async fn nothing_signed_cannot_be_verified() {
    let scene = Scene::new().await;
    let story = Story::begin(&scene, Words::default()).await;
    let page = get(
        &scene.router(),
        &format!("/incidents/{}/ledger", story.incident),
    )
    .await;
    assert!(page.body.contains("cannot-verify"));
}
