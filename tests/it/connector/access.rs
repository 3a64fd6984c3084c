//! What the provider says of a credential, and what cannot be told.

use std::sync::Arc;
use std::time::Duration;

use caretaker::clock::Millis;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::reach;
use caretaker::connector::{Access, Connector as _, ConnectorError};
use serde_json::json;

use super::provider::{Asked, Provider, Reply, json, with_headers};

/// The repository as a credential with every right sees it.
fn repository(private: bool, push: bool) -> Reply {
    json(
        200,
        &json!({
            "id": 42, "full_name": "octo/widget", "default_branch": "main", "private": private,
            "permissions": {"admin": false, "push": push, "pull": true},
        }),
    )
}

async fn access_with(token: &str, provider: &Provider) -> Result<Access, ConnectorError> {
    let credential = Arc::new(PersonalToken::new(token.to_owned().into()));
    provider.connector_with(credential).access().await
}

/// A classic token with these scopes on a repository.
async fn classic(scopes: &'static str, private: bool) -> Access {
    let provider = Provider::start(move |asked| match asked.target.as_str() {
        "/api/v3/rate_limit" => with_headers(200, &[("x-oauth-scopes", scopes)], &json!({})),
        "/api/v3/repositories/42" => repository(private, true),
        other => panic!("{other}"),
    })
    .await;
    access_with("ghp_example", &provider).await.unwrap()
}

#[tokio::test]
async fn a_classic_token_has_what_it_needs_and_nothing_else() {
    for (scopes, private, missing, unneeded) in [
        ("repo", true, &[][..], &[][..]),
        ("public_repo", false, &[], &[]),
        ("", true, &["repo"], &[]),
        ("", false, &["public_repo"], &[]),
        ("public_repo, repo:status", true, &["repo"], &[]),
        ("repo", false, &[], &["repo"]),
        (
            "admin:org, delete_repo, repo, workflow",
            true,
            &[],
            &["admin:org", "delete_repo", "workflow"],
        ),
        ("gist,  read:user", true, &["repo"], &["gist", "read:user"]),
    ] {
        let access = classic(scopes, private).await;
        assert_eq!(access.kind, "classic token");
        assert_eq!(access.missing, missing, "{scopes:?} {private}");
        assert_eq!(access.unneeded, unneeded, "{scopes:?} {private}");
        assert_eq!(access.untold, Vec::<String>::new());
        assert_eq!(access.expires_at, None);
        let granted = access.granted.unwrap();
        assert_eq!(
            granted.len(),
            scopes.split(',').filter(|one| !one.is_empty()).count()
        );
    }
}

#[tokio::test]
async fn a_classic_token_that_may_not_see_the_repository_lacks_the_scope() {
    let provider = Provider::start(|asked| match asked.target.as_str() {
        "/api/v3/rate_limit" => with_headers(200, &[("x-oauth-scopes", "gist")], &json!({})),
        _ => json(404, &json!({"message": "Not Found"})),
    })
    .await;
    let access = access_with("ghp_example", &provider).await.unwrap();
    assert_eq!(
        (access.missing, access.unneeded),
        (vec!["repo".to_owned()], vec!["gist".to_owned()])
    );

    // With the scope it really is not there.
    let provider = Provider::start(|asked| match asked.target.as_str() {
        "/api/v3/rate_limit" => with_headers(200, &[("x-oauth-scopes", "repo")], &json!({})),
        _ => json(404, &json!({"message": "Not Found"})),
    })
    .await;
    let error = access_with("ghp_example", &provider).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Absent { .. }), "{error}");
}

#[tokio::test]
async fn a_user_who_may_only_read_is_told() {
    let provider = Provider::start(|asked| match asked.target.as_str() {
        "/api/v3/rate_limit" => with_headers(200, &[("x-oauth-scopes", "repo")], &json!({})),
        _ => repository(true, false),
    })
    .await;
    let access = access_with("ghp_example", &provider).await.unwrap();
    assert!(
        access.missing[0].contains("write to the repository"),
        "{access:?}"
    );
}

/// What is refused to a fine-grained token.
fn refusing(target: &str, refused: &[&str]) -> Reply {
    let found = refused.iter().find(|part| target.contains(**part));
    match found {
        None => json(200, &json!([])),
        Some(part) => {
            let needs = match *part {
                "/check-runs" => "checks=read",
                "/actions/" => "actions=read",
                _ => "",
            };
            with_headers(
                403,
                &[("x-accepted-github-permissions", needs)],
                &json!({"message": "Resource not accessible by personal access token"}),
            )
        }
    }
}

async fn fine_grained(private: bool, refused: &'static [&'static str]) -> (Access, Vec<Asked>) {
    let provider = Provider::start(move |asked| match asked.target.as_str() {
        "/api/v3/rate_limit" => json(200, &json!({})),
        "/api/v3/repositories/42" => repository(private, true),
        target => refusing(target, refused),
    })
    .await;
    let access = access_with("github_pat_example", &provider).await.unwrap();
    (access, provider.asked())
}

#[tokio::test]
async fn a_fine_grained_token_shows_by_refused_reads_what_it_lacks() {
    let (access, asked) = fine_grained(true, &["/actions/", "/check-runs", "/pulls"]).await;
    assert_eq!(
        access.missing,
        ["pull_requests:write", "actions:write", "checks:read"]
    );
    assert_eq!((access.granted, access.unneeded), (None, vec![]));
    assert!(
        access.untold[0].contains("(contents:write)"),
        "{:?}",
        access.untold
    );
    assert!(access.untold[1].contains("cannot be told for this kind of token"));
    assert!(asked.iter().all(|asked| asked.method == "GET"));

    let (access, _) = fine_grained(true, &[]).await;
    assert_eq!(access.missing, Vec::<String>::new());
    assert!(access.untold[0].contains("contents:write, pull_requests:write, actions:write"));
}

#[tokio::test]
async fn of_a_public_repository_reading_shows_nothing_and_is_not_tried() {
    let (access, asked) = fine_grained(false, &["/actions/"]).await;
    assert_eq!((access.missing.len(), access.untold.len()), (0, 3));
    assert!(access.untold[0].contains("anyone may read a public repository"));
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn of_a_token_that_nothing_is_known_of_nothing_is_guessed() {
    for (token, kind) in [
        ("ghs_example", "installation token of an app"),
        ("ghu_example", "user token of an app"),
        ("example", "token of a kind that is not known"),
    ] {
        let provider = Provider::start(|asked| match asked.target.as_str() {
            "/api/v3/rate_limit" => json(200, &json!({})),
            _ => repository(true, true),
        })
        .await;
        let access = access_with(token, &provider).await.unwrap();
        assert_eq!((access.kind.as_str(), access.granted), (kind, None));
        assert_eq!((access.missing.len(), access.unneeded.len()), (0, 0));
        assert!(
            access.untold[0].contains("cannot be told"),
            "{:?}",
            access.untold
        );
    }
}

#[tokio::test]
async fn when_a_token_ends_is_read_in_the_forms_that_occur_and_nothing_else_is() {
    for (header, expected) in [
        ("2026-12-01 10:00:00 UTC", Some(1_796_119_200_000)),
        ("2026-12-01 10:00:00 +0100", Some(1_796_115_600_000)),
        ("soon", None),
        ("2026-13-01 10:00:00 UTC", None),
        ("", None),
    ] {
        let provider = Provider::start(move |asked| match asked.target.as_str() {
            "/api/v3/rate_limit" => with_headers(
                200,
                &[
                    ("x-oauth-scopes", "repo"),
                    ("github-authentication-token-expiration", header),
                ],
                &json!({}),
            ),
            _ => repository(true, true),
        })
        .await;
        let access = access_with("ghp_example", &provider).await.unwrap();
        assert_eq!(access.expires_at, expected.map(Millis), "{header}");
    }
}

#[tokio::test]
async fn a_refused_token_and_a_limit_are_errors_of_their_kind() {
    let refused = |reply: fn() -> Reply| async move {
        let provider = Provider::start(move |_| reply()).await;
        access_with("ghp_example", &provider).await.unwrap_err()
    };
    let error = refused(|| json(401, &json!({"message": "Bad credentials"}))).await;
    assert!(
        matches!(error, ConnectorError::Unauthorised { .. }),
        "{error}"
    );
    assert!(!error.to_string().contains("ghp_example"));
    let error = refused(|| with_headers(429, &[("retry-after", "9")], &json!({}))).await;
    assert!(matches!(error, ConnectorError::Limited { .. }), "{error}");
    let error = refused(|| Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec()));
    let error = error.await;
    assert!(
        matches!(error, ConnectorError::Unreachable { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn whether_the_provider_answers_is_asked_without_a_credential() {
    let provider = Provider::start(|_| {
        with_headers(
            200,
            &[("date", "Tue, 01 Dec 2026 10:00:00 GMT")],
            &json!({}),
        )
    })
    .await;
    let base = format!("{}/api/v3", provider.origin);
    let told = reach(&base, Duration::from_secs(20)).await.unwrap();
    assert_eq!(told, Some(Millis(1_796_119_200_000)));
    let asked = provider.asked().remove(0);
    assert_eq!(asked.target, "/api/v3/rate_limit");
    assert_eq!(asked.all("authorization"), Vec::<&str>::new());

    // Port 9 on loopback refuses connections.
    let error = reach("http://127.0.0.1:9", Duration::from_secs(20)).await;
    assert!(!error.unwrap_err().is_empty());
}
