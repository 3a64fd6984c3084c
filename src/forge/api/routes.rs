//! Which path means what.

use std::sync::Arc;

use super::super::encoding::percent_encoded_path;
use super::super::state::{Grant, Location, Repository, Shared, Token};
use super::deliveries::{Hooks, of_app};
use super::{
    Answer, Call, Credentials, Refusal, Reply, account, actions, apps, checks, compare, contents,
    conversation, guards, merge, objects, permissions, pull_files, pulls, references, repositories,
    workflows,
};

/// One request to one repository.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) repository: &'a Repository,
    pub(crate) call: &'a Call,
}

impl<'a> Scene<'a> {
    fn hooks(self, hook: &'a str) -> Hooks<'a> {
        Hooks {
            shared: self.shared,
            call: self.call,
            of: Some((self.repository.id, hook)),
        }
    }
}

/// Finds the route and answers.
pub(crate) fn route(shared: &Shared, call: &Call) -> Answer {
    let segments: Vec<&str> = call.segments.iter().map(String::as_str).collect();
    match (call.method.as_str(), segments.as_slice()) {
        ("GET", ["user"]) => account::user(shared, call),
        ("GET", ["rate_limit"]) => account::rate_limit(shared, call),
        ("GET", ["meta"]) => Ok(account::meta(shared)),
        ("GET", ["app"]) => apps::app(shared, call),
        ("GET", ["app", "installations", id]) => apps::installation(shared, call, id),
        ("POST", ["app", "installations", id, "access_tokens"]) => {
            apps::create_token(shared, call, id)
        }
        ("GET", ["app", "hook", "deliveries"]) => of_app(shared, call)?.list(),
        ("GET", ["app", "hook", "deliveries", id]) => of_app(shared, call)?.show(id),
        ("POST", ["app", "hook", "deliveries", id, "attempts"]) => of_app(shared, call)?.repeat(id),
        ("GET", ["installation", "repositories"]) => apps::repositories(shared, call),
        ("DELETE", ["installation", "token"]) => apps::revoke(shared, call),
        ("POST", ["app-manifests", code, "conversions"]) => apps::convert(shared, code),
        (_, ["repos", owner, name, rest @ ..]) => match shared.locate(owner, name) {
            Location::Here(repository) => within(shared, &repository, call, rest),
            Location::Moved(repository) => {
                if rest == ["installation"] {
                    apps::repository_installation(shared, call, &repository)?;
                } else {
                    visible(shared, &repository, call)?;
                }
                Ok(moved(shared, &repository, call, rest))
            }
            Location::Nowhere => Err(Refusal::not_found()),
        },
        (_, ["repositories", id, rest @ ..]) => {
            let repository = id
                .parse()
                .ok()
                .and_then(|id| shared.by_id(id))
                .ok_or_else(Refusal::not_found)?;
            within(shared, &repository, call, rest)
        }
        _ => Err(Refusal::not_found()),
    }
}

/// To strangers a private repository looks absent.
fn visible<'a>(
    shared: &Shared,
    repository: &Repository,
    call: &'a Call,
) -> Result<&'a Token, Refusal> {
    match &call.credentials {
        // Break it: let every token see every repository, and `forge::tokens::a_token_sees_its_repositories_only` fails.
        Credentials::Token(token) if shared.sees(token, repository) => Ok(token),
        Credentials::App(_) => Err(Refusal::new(403, "Resource not accessible by integration")),
        _ => Err(Refusal::not_found()),
    }
}

/// Whether the token has the permission that the route needs. What a classic token may not do looks absent to it.
fn permitted(token: &Token, call: &Call, rest: &[&str]) -> Result<(), Refusal> {
    let needs = permissions::needs(&call.method, rest).ok_or_else(Refusal::not_found)?;
    // Break it: take every token for permitted, and `forge::tokens::a_missing_permission_is_refused` fails.
    if permissions::allows(&token.grant, needs) {
        return Ok(());
    }
    Err(match token.grant {
        Grant::Classic { .. } => Refusal::not_found(),
        Grant::FineGrained { .. } => {
            Refusal::new(403, "Resource not accessible by personal access token")
        }
        Grant::Installation { .. } => Refusal::new(403, "Resource not accessible by integration"),
    })
}

/// A renamed repository: GitHub answers reads with 301 and everything else with 307, both to the address by number.
fn moved(shared: &Shared, repository: &Arc<Repository>, call: &Call, rest: &[&str]) -> Reply {
    let mut target = format!("{}/repositories/{}", shared.api(), repository.id);
    for part in rest {
        target.push('/');
        target.push_str(&percent_encoded_path(part).replace('/', "%2F"));
    }
    let (status, message) = if call.method == "GET" {
        (301, "Moved Permanently")
    } else {
        (307, "Temporary Redirect")
    };
    Reply::json(status, serde_json::json!({"message": message, "url": target, "documentation_url": super::DOCUMENTATION})).with("location", target)
}

fn within(shared: &Shared, repository: &Repository, call: &Call, rest: &[&str]) -> Answer {
    if (call.method.as_str(), rest) == ("GET", &["installation"]) {
        return apps::repository_installation(shared, call, repository);
    }
    let token = visible(shared, repository, call)?;
    permitted(token, call, rest)?;
    let scene = Scene {
        shared,
        repository,
        call,
    };
    if call.method == "GET" {
        return read(scene, rest);
    }
    if repository.remembered().archived {
        return Err(Refusal::new(
            403,
            "Repository was archived so is read-only.",
        ));
    }
    write(scene, rest)
}

fn read(scene: Scene<'_>, rest: &[&str]) -> Answer {
    match rest {
        [] => repositories::show(scene),
        ["branches", branch @ .., "protection"] if !branch.is_empty() => {
            guards::protection(scene, &branch.join("/"))
        }
        ["branches", branch @ ..] if !branch.is_empty() => {
            references::branch(scene, &branch.join("/"))
        }
        ["rules", "branches", branch @ ..] if !branch.is_empty() => {
            guards::rules(scene, &branch.join("/"))
        }
        ["rulesets"] => guards::rulesets(scene),
        ["rulesets", id] => guards::ruleset(scene, id),
        ["hooks", hook, "deliveries"] => scene.hooks(hook).list(),
        ["hooks", hook, "deliveries", id] => scene.hooks(hook).show(id),
        ["contents", path @ ..] => contents::show(scene, &path.join("/")),
        ["git", "ref", name @ ..] => references::one(scene, &name.join("/")),
        ["git", "matching-refs", prefix @ ..] => references::matching(scene, &prefix.join("/")),
        ["git", "trees", name @ ..] if !name.is_empty() => objects::tree(scene, &name.join("/")),
        ["git", "blobs", id] => objects::blob(scene, id),
        ["git", "commits", id] => objects::git_commit(scene, id),
        ["commits", name @ .., "check-runs"] if !name.is_empty() => {
            checks::list(scene, &name.join("/"))
        }
        ["commits", name @ .., "status"] if !name.is_empty() => {
            checks::combined_status(scene, &name.join("/"))
        }
        ["commits", name @ ..] if !name.is_empty() => objects::commit(scene, &name.join("/")),
        ["check-runs", id] => checks::one(scene, id),
        ["compare", range @ ..] if !range.is_empty() => compare::show(scene, &range.join("/")),
        ["pulls"] => pulls::list(scene),
        ["pulls", number] => pulls::show(scene, number),
        ["pulls", number, "files"] => pull_files::files(scene, number),
        ["pulls", number, "commits"] => pull_files::commits(scene, number),
        ["pulls", number, "merge"] => pulls::is_merged(scene, number),
        ["issues", number, "comments"] => conversation::list(scene, number),
        ["actions", "runs"] => actions::list(scene, None),
        ["actions", "workflows"] => workflows::list(scene),
        ["actions", "workflows", workflow] => workflows::show(scene, workflow),
        ["actions", "workflows", workflow, "runs"] => actions::list(scene, Some(workflow)),
        ["actions", "runs", run] => actions::show(scene, run, None),
        ["actions", "runs", run, "attempts", attempt] => actions::show(scene, run, Some(attempt)),
        ["actions", "runs", run, "jobs"] => actions::jobs(scene, run, None),
        ["actions", "runs", run, "attempts", attempt, "jobs"] => {
            actions::jobs(scene, run, Some(attempt))
        }
        ["actions", "jobs", job] => actions::job(scene, job),
        ["actions", "jobs", job, "logs"] => actions::log(scene, job),
        _ => Err(Refusal::not_found()),
    }
}

fn write(scene: Scene<'_>, rest: &[&str]) -> Answer {
    match (scene.call.method.as_str(), rest) {
        ("POST", ["git", "refs"]) => references::create(scene),
        ("PATCH", ["git", "refs", name @ ..]) => references::update(scene, &name.join("/")),
        ("DELETE", ["git", "refs", name @ ..]) => references::delete(scene, &name.join("/")),
        ("POST", ["pulls"]) => pulls::create(scene),
        ("PATCH", ["pulls", number]) => pulls::change(scene, number),
        ("PUT", ["pulls", number, "merge"]) => merge::merge(scene, number),
        ("POST", ["issues", number, "comments"]) => conversation::create(scene, number),
        ("POST", ["actions", "runs", run, "rerun-failed-jobs"]) => {
            actions::rerun_failed(scene, run)
        }
        ("POST", ["hooks", hook, "deliveries", id, "attempts"]) => scene.hooks(hook).repeat(id),
        ("POST", ["statuses", sha]) => checks::create_status(scene, sha),
        _ => Err(Refusal::not_found()),
    }
}
