//! Which path means what.

use std::sync::Arc;

use super::super::encoding::percent_encoded_path;
use super::super::state::{Location, Repository, Shared};
use super::{
    Answer, Call, Credentials, Refusal, Reply, account, actions, checks, compare, conversation,
    merge, objects, pull_files, pulls, references, repositories,
};

/// One request to one repository.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) repository: &'a Repository,
    pub(crate) call: &'a Call,
}

/// Finds the route and answers.
pub(crate) fn route(shared: &Shared, call: &Call) -> Answer {
    let segments: Vec<&str> = call.segments.iter().map(String::as_str).collect();
    match (call.method.as_str(), segments.as_slice()) {
        ("GET", ["user"]) => account::user(shared, call),
        ("GET", ["rate_limit"]) => Ok(account::rate_limit(shared)),
        ("GET", ["meta"]) => Ok(account::meta(shared)),
        (_, ["repos", owner, name, rest @ ..]) => {
            permitted(call)?;
            match shared.locate(owner, name) {
                Location::Here(repository) => within(shared, &repository, call, rest),
                Location::Moved(repository) => Ok(moved(shared, &repository, call, rest)),
                Location::Nowhere => Err(Refusal::not_found()),
            }
        }
        (_, ["repositories", id, rest @ ..]) => {
            permitted(call)?;
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
fn permitted(call: &Call) -> Result<(), Refusal> {
    if call.credentials == Credentials::Right {
        Ok(())
    } else {
        Err(Refusal::not_found())
    }
}

/// A renamed repository: GitHub answers reads with 301 and everything else with 307, both to the address by number.
fn moved(shared: &Shared, repository: &Arc<Repository>, call: &Call, rest: &[&str]) -> Reply {
    let mut target = format!("{}/repositories/{}", shared.url, repository.id);
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
        ["branches", branch @ ..] if !branch.is_empty() => {
            references::branch(scene, &branch.join("/"))
        }
        ["rules", "branches", branch @ ..] if !branch.is_empty() => Ok(repositories::rules(scene)),
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
        ("POST", ["statuses", sha]) => checks::create_status(scene, sha),
        _ => Err(Refusal::not_found()),
    }
}
