//! Routes of Apps and their installations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::encoding::base64url;
use super::super::render;
use super::super::state::{
    App, Grant, Installation, PlannedManifest, Repository, Shared, Token, TokenForm,
};
use super::super::time::rfc3339;
use super::paging::{Page, linked_at};
use super::{Answer, Call, Credentials, Refusal, Reply, permissions};

/// How long an installation token lives, in seconds.
const TOKEN_LIFE: u64 = 3_600;
/// How many repositories may be named when a token is narrowed.
const NARROWED: usize = 500;

/// The App that asks.
fn asking(call: &Call) -> Result<&Arc<App>, Refusal> {
    match &call.credentials {
        Credentials::App(app) => Ok(app),
        _ => Err(Refusal::new(401, "A JSON web token could not be decoded")),
    }
}

/// `GET /app`
pub(crate) fn app(shared: &Shared, call: &Call) -> Answer {
    let app = asking(call)?;
    let manifest = json!({});
    Ok(Reply::ok(render::app(&shared.url, app, &manifest)))
}

/// An installation of the App that asks.
fn own(shared: &Shared, call: &Call, id: &str) -> Result<Installation, Refusal> {
    let app = asking(call)?;
    id.parse()
        .ok()
        .and_then(|id| shared.apps.installation(id))
        .filter(|installation| installation.app.id == app.id)
        .ok_or_else(Refusal::not_found)
}

/// `GET /app/installations/{installation_id}`
pub(crate) fn installation(shared: &Shared, call: &Call, id: &str) -> Answer {
    let installation = own(shared, call, id)?;
    Ok(Reply::ok(render::installation(&shared.url, &installation)))
}

/// `GET /repos/{owner}/{repo}/installation`
pub(crate) fn repository_installation(
    shared: &Shared,
    call: &Call,
    repository: &Repository,
) -> Answer {
    let app = asking(call)?;
    let installation = shared
        .apps
        .installation_at(app.id, repository)
        .ok_or_else(Refusal::not_found)?;
    Ok(Reply::ok(render::installation(&shared.url, &installation)))
}

/// `POST /app/installations/{installation_id}/access_tokens`
pub(crate) fn create_token(shared: &Shared, call: &Call, id: &str) -> Answer {
    let installation = own(shared, call, id)?;
    if installation.suspended_at.is_some() {
        return Err(Refusal::new(403, "This installation has been suspended"));
    }
    let body = call.object()?;
    let chosen = chosen_repositories(shared, &installation, &body)?;
    let permissions = chosen_permissions(&installation, &body)?;
    let expires_at = (shared.now)() + TOKEN_LIFE;
    let token = Token {
        text: text_of(shared, &installation, form(shared, call)),
        grant: Grant::Installation {
            id: installation.id,
            permissions: permissions.clone(),
        },
        repositories: chosen.clone(),
        expires_at: Some(expires_at),
    };
    let mut answer = json!({
        "token": token.text,
        "expires_at": rfc3339(expires_at),
        "permissions": permissions,
        "repository_selection": render::selection(chosen.as_ref().or(installation.repositories.as_ref())),
    });
    if let Some(chosen) = &chosen {
        answer["repositories"] = chosen
            .iter()
            .filter_map(|id| shared.by_id(*id))
            .map(|repository| {
                render::repository(&shared.url, repository.id, &repository.remembered())
            })
            .collect();
    }
    shared.tokens.add(token);
    Ok(Reply::json(201, answer))
}

/// The wanted form of the token: a header of the request decides before the forge's setting.
fn form(shared: &Shared, call: &Call) -> TokenForm {
    match call.stateless_token.as_deref() {
        Some("enabled") => TokenForm::Long,
        Some("disabled") => TokenForm::Short,
        _ => shared.apps.form(),
    }
}

fn text_of(shared: &Shared, installation: &Installation, form: TokenForm) -> String {
    if form == TokenForm::Short {
        return format!("ghs_{}", shared.tokens.letters(36));
    }
    let header = base64url(br#"{"alg":"RS256","typ":"JWT"}"#);
    let claims = format!(
        "{{\"iss\":\"{}\",\"installation\":{},\"id\":\"{}\"}}",
        shared.url,
        installation.id,
        shared.tokens.letters(36)
    );
    format!(
        "ghs_{}_{header}.{}.{}",
        installation.app.id,
        base64url(claims.as_bytes()),
        shared.tokens.letters(342)
    )
}

/// The repositories that the request names, `None` where it names none.
fn chosen_repositories(
    shared: &Shared,
    installation: &Installation,
    body: &Map<String, Value>,
) -> Result<Option<BTreeSet<u64>>, Refusal> {
    let list = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list.clone())),
        Some(_) => Err(Refusal::new(
            422,
            format!("Invalid request.\n\nFor '/{name}': expected an array."),
        )),
    };
    let (names, ids) = (list("repositories")?, list("repository_ids")?);
    if names.is_none() && ids.is_none() {
        return Ok(None);
    }
    let (names, ids) = (names.unwrap_or_default(), ids.unwrap_or_default());
    if names.len() + ids.len() > NARROWED {
        return Err(Refusal::new(
            422,
            format!("Only up to {NARROWED} repositories can be specified."),
        ));
    }
    let reachable: BTreeMap<u64, String> = shared
        .repositories()
        .iter()
        .map(|repository| (repository.id, repository.remembered()))
        .filter(|(id, state)| installation.reaches(*id, &state.owner))
        .map(|(id, state)| (id, state.name.to_lowercase()))
        .collect();
    let by_id = |id: &Value| id.as_u64().filter(|id| reachable.contains_key(id));
    let by_name = |name: &Value| {
        let name = name.as_str()?.to_lowercase();
        reachable
            .iter()
            .find(|(_, known)| **known == name)
            .map(|(id, _)| *id)
    };
    let chosen: Option<BTreeSet<u64>> = ids
        .iter()
        .map(by_id)
        .chain(names.iter().map(by_name))
        .collect();
    chosen.map(Some).ok_or_else(|| {
        Refusal::new(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent installation.",
        )
    })
}

/// The permissions that the request asks for, all of the installation's where it asks for none.
fn chosen_permissions(
    installation: &Installation,
    body: &Map<String, Value>,
) -> Result<BTreeMap<String, String>, Refusal> {
    let wanted = match body.get("permissions") {
        None | Some(Value::Null) => return Ok(installation.permissions.clone()),
        Some(wanted) => serde_json::from_value::<BTreeMap<String, String>>(wanted.clone()),
    };
    wanted
        .ok()
        .filter(|wanted| permissions::within(wanted, &installation.permissions))
        .ok_or_else(|| {
            Refusal::new(
                422,
                "The permissions requested are not granted to this installation.",
            )
        })
}

/// The installation token that asks, with its installation.
fn token(call: &Call) -> Result<(&Arc<Token>, u64), Refusal> {
    match &call.credentials {
        Credentials::Token(token) => match token.grant {
            Grant::Installation { id, .. } => Ok((token, id)),
            _ => Err(Refusal::new(
                403,
                "You must authenticate with an installation access token in order to list repositories for an installation.",
            )),
        },
        _ => Err(Refusal::new(401, "Requires authentication")),
    }
}

/// `GET /installation/repositories`
pub(crate) fn repositories(shared: &Shared, call: &Call) -> Answer {
    let (token, id) = token(call)?;
    let installation = shared
        .apps
        .installation(id)
        .ok_or_else(|| Refusal::new(401, "Bad credentials"))?;
    let seen: Vec<Arc<Repository>> = shared
        .repositories()
        .into_iter()
        .filter(|repository| shared.sees(token, repository))
        .collect();
    let rows: Vec<Value> = Page::of(call)
        .part(&seen)
        .iter()
        .map(|repository| render::repository(&shared.url, repository.id, &repository.remembered()))
        .collect();
    let selection = render::selection(
        token
            .repositories
            .as_ref()
            .or(installation.repositories.as_ref()),
    );
    let reply = Reply::ok(
        json!({"total_count": seen.len(), "repository_selection": selection, "repositories": rows}),
    );
    Ok(linked_at(
        shared,
        "installation/repositories",
        call,
        seen.len(),
        reply,
    ))
}

/// `DELETE /installation/token`
pub(crate) fn revoke(shared: &Shared, call: &Call) -> Answer {
    let (token, _) = token(call)?;
    shared.tokens.revoke(&token.text);
    Ok(Reply::nothing())
}

/// `POST /app-manifests/{code}/conversions`: the code is all the permission there is, and works once.
pub(crate) fn convert(shared: &Shared, code: &str) -> Answer {
    let PlannedManifest {
        app: planned,
        manifest,
        ..
    } = shared.apps.redeem(code).ok_or_else(Refusal::not_found)?;
    let app = shared
        .apps
        .create(shared.ids.next(), planned.app, (shared.now)());
    let mut body = render::app(&shared.url, &app, &manifest.unwrap_or_default());
    body["client_secret"] = json!(planned.client_secret);
    body["webhook_secret"] = json!(planned.webhook_secret);
    body["pem"] = json!(planned.private_key_pem);
    Ok(Reply::json(201, body))
}
