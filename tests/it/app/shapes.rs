//! The provider's answers in full, as its description has them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::provider::{APP, Installation};

fn owner() -> Value {
    json!({
        "login": "octo", "id": 1, "node_id": "x", "avatar_url": "https://x/a", "gravatar_id": "", "url": "https://x/u",
        "html_url": "https://x/h", "followers_url": "https://x/f", "following_url": "https://x/f", "gists_url": "https://x/g",
        "starred_url": "https://x/s", "subscriptions_url": "https://x/s", "organizations_url": "https://x/o",
        "repos_url": "https://x/r", "events_url": "https://x/e", "received_events_url": "https://x/e",
        "type": "Organization", "site_admin": false,
    })
}

/// An installation.
pub(super) fn installation(id: u64, found: &Installation) -> Value {
    json!({
        "id": id, "app_id": APP, "app_slug": "caretaker-octo", "account": owner(), "target_id": 1,
        "target_type": "Organization", "repository_selection": "selected", "single_file_name": null,
        "permissions": found.permissions, "events": [],
        "access_tokens_url": format!("https://api.github.com/app/installations/{id}/access_tokens"),
        "repositories_url": "https://api.github.com/installation/repositories",
        "html_url": format!("https://github.com/organizations/octo/settings/installations/{id}"),
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "suspended_by": found.suspended.then(owner),
        "suspended_at": found.suspended.then_some("2026-01-02T00:00:00Z"),
    })
}

/// The App.
pub(super) fn app(permissions: &BTreeMap<String, String>) -> Value {
    json!({
        "id": APP, "slug": "caretaker-octo", "node_id": "x", "client_id": "Iv1.1", "owner": owner(),
        "name": "Caretaker of Octo", "description": "", "external_url": "https://example.com",
        "html_url": "https://github.com/apps/caretaker-octo",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "permissions": permissions, "events": ["push"],
    })
}
