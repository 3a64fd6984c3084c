//! Apps and installations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::state::{App, Installation, PERSON};
use super::super::time::rfc3339;
use super::{node_id, user};

/// An App. Permissions and events are those of its manifest, if it had one.
pub(crate) fn app(base: &str, app: &App, manifest: &Value) -> Value {
    let or = |name: &str, usual: Value| match &manifest[name] {
        Value::Null => usual,
        given => given.clone(),
    };
    json!({
        "id": app.id,
        "slug": app.slug,
        "node_id": node_id("A", app.id),
        "client_id": app.client_id,
        "owner": user(base, PERSON.login, PERSON.id),
        "name": app.name,
        "description": manifest["description"],
        "external_url": or("url", json!(base)),
        "html_url": format!("{base}/apps/{}", app.slug),
        "created_at": rfc3339(app.created_at),
        "updated_at": rfc3339(app.created_at),
        "permissions": or("default_permissions", json!({"metadata": "read"})),
        "events": or("default_events", json!([])),
    })
}

/// `all` or `selected`.
pub(crate) fn selection(chosen: Option<&BTreeSet<u64>>) -> &'static str {
    if chosen.is_some() { "selected" } else { "all" }
}

/// An App installed at an owner.
pub(crate) fn installation(base: &str, installation: &Installation) -> Value {
    let id = installation.id;
    let suspended = installation.suspended_at.map(rfc3339);
    json!({
        "id": id,
        "account": user(base, &installation.owner, installation.owner_id),
        "repository_selection": selection(installation.repositories.as_ref()),
        "access_tokens_url": format!("{base}/app/installations/{id}/access_tokens"),
        "repositories_url": format!("{base}/installation/repositories"),
        "html_url": format!("{base}/settings/installations/{id}"),
        "app_id": installation.app.id,
        "client_id": installation.app.client_id,
        "app_slug": installation.app.slug,
        "target_id": installation.owner_id,
        "target_type": "User",
        "permissions": installation.permissions,
        "events": [],
        "created_at": rfc3339(installation.created_at),
        "updated_at": rfc3339(installation.created_at),
        "single_file_name": null,
        "has_multiple_single_files": false,
        "single_file_paths": [],
        "suspended_by": suspended.as_ref().map(|_| user(base, PERSON.login, PERSON.id)),
        "suspended_at": suspended,
    })
}
