//! Users.

use serde_json::{Value, json};

use super::super::state::Account;
use super::super::time::{START, rfc3339};
use super::node_id;

/// A user, as other objects carry it.
pub(crate) fn user(base: &str, login: &str, id: u64) -> Value {
    let url = format!("{base}/users/{login}");
    json!({
        "login": login,
        "id": id,
        "node_id": node_id("U", id),
        "avatar_url": format!("{base}/avatars/{id}"),
        "gravatar_id": "",
        "url": url,
        "html_url": format!("{base}/{login}"),
        "followers_url": format!("{url}/followers"),
        "following_url": format!("{url}/following{{/other_user}}"),
        "gists_url": format!("{url}/gists{{/gist_id}}"),
        "starred_url": format!("{url}/starred{{/owner}}{{/repo}}"),
        "subscriptions_url": format!("{url}/subscriptions"),
        "organizations_url": format!("{url}/orgs"),
        "repos_url": format!("{url}/repos"),
        "events_url": format!("{url}/events{{/privacy}}"),
        "received_events_url": format!("{url}/received_events"),
        "type": "User",
        "user_view_type": "public",
        "site_admin": false,
    })
}

/// The user to whom the token belongs, as they see themselves.
pub(crate) fn private_user(base: &str, account: Account) -> Value {
    let mut value = user(base, account.login, account.id);
    let more = json!({
        "name": null, "company": null, "blog": null, "location": null, "email": account.email, "hireable": null, "bio": null,
        "public_repos": 0, "public_gists": 0, "followers": 0, "following": 0, "private_gists": 0,
        "total_private_repos": 0, "owned_private_repos": 0, "disk_usage": 0, "collaborators": 0,
        "two_factor_authentication": true,
        "created_at": rfc3339(START),
        "updated_at": rfc3339(START),
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
        all.extend(more);
    }
    value
}
