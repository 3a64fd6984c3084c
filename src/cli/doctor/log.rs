//! The log: whether it is signed, and who else holds what is signed.

use super::Finding;
use crate::anchor::AnchorKind;
use crate::clock::Millis;
use crate::config::{Configuration, rules_from_yaml};
use crate::gate::AnchorDemand;
use crate::store::{Scoped, Store, StoreError};

/// How long a log may be silent, in milliseconds: a worker logs a sign of life each hour.
const SILENCE_MILLIS: i64 = 2 * 3_600_000;

pub(super) async fn look(configuration: &Configuration) -> Vec<Finding> {
    match findings(configuration).await {
        Ok(findings) => findings,
        Err(error) => vec![Finding::failed("log", error.to_string())],
    }
}

async fn findings(configuration: &Configuration) -> Result<Vec<Finding>, StoreError> {
    // What is wrong with the database is said where that is looked at.
    let Ok(store) = Store::open_existing(configuration.database.secret()).await else {
        return Ok(Vec::new());
    };
    let Some(organisation) = store.organisation().await? else {
        return Ok(Vec::new());
    };
    let scoped = store.within(&organisation);
    let now = store.now().await?;
    let mut findings = vec![checkpoint(&scoped, now).await?];
    findings.extend(anchors(configuration, &scoped, now).await?);
    findings.extend(demands(configuration, &store).await?);
    Ok(findings)
}

async fn checkpoint(scoped: &Scoped<'_>, now: Millis) -> Result<Finding, StoreError> {
    const CHECK: &str = "log";
    let logged = scoped.log_frontier().await?.size();
    let Some(newest) = scoped.newest_checkpoint().await? else {
        return Ok(if logged == 0 {
            Finding::ok(CHECK, "nothing is logged yet")
        } else {
            let found = format!(
                "{logged} leaves and no checkpoint over them; a worker makes one (`caretaker serve`), and says in its log why if it does not"
            );
            Finding::warning(CHECK, found)
        });
    };
    let silent = now.0.saturating_sub(newest.made_at.0) > SILENCE_MILLIS;
    let found = format!(
        "{logged} leaves, the newest checkpoint over {} of them was made at {}",
        newest.size, newest.made_at
    );
    Ok(if silent {
        Finding::warning(
            CHECK,
            format!(
                "{found}; no worker has given a sign of life since, or it refuses to sign: see its log"
            ),
        )
    } else {
        Finding::ok(CHECK, found)
    })
}

/// Every configured anchor: its kind, name and pace in seconds. The branch has one for each repository, so it is not asked for.
fn configured(configuration: &Configuration) -> Vec<(AnchorKind, String, u32)> {
    let anchor = &configuration.anchor;
    let timestamps = anchor
        .timestamps
        .iter()
        .map(|one| (AnchorKind::Timestamp, one.name.clone(), one.every_seconds));
    let witnesses = anchor
        .witnesses
        .iter()
        .map(|one| (AnchorKind::Witness, one.name.clone(), one.every_seconds));
    let branch = anchor.branch.iter().filter_map(|branch| {
        let project = branch.project.as_ref()?;
        let name = format!("{project}/{}", branch.name);
        Some((AnchorKind::Branch, name, branch.every_seconds))
    });
    branch.chain(timestamps).chain(witnesses).collect()
}

async fn anchors(
    configuration: &Configuration,
    scoped: &Scoped<'_>,
    now: Millis,
) -> Result<Vec<Finding>, StoreError> {
    const CHECK: &str = "anchors";
    let anchors = configured(configuration);
    if anchors.is_empty() && configuration.anchor.branch.is_none() {
        return Ok(vec![Finding::warning(
            CHECK,
            "nobody outside of this installation holds checkpoints of the log, so whoever has all its keys could write another history; \
             add a witness, a timestamp authority or a branch under `anchor`",
        )]);
    }
    let mut findings = Vec::new();
    let size = scoped.log_frontier().await?.size();
    for (kind, name, every) in anchors {
        let last = scoped.newest_anchor(kind.as_str(), &name, size).await?;
        let patience = i64::from(every) * 3_000 + SILENCE_MILLIS;
        findings.push(match last {
            None => Finding::warning(
                CHECK,
                format!("{kind} {name} holds nothing yet; a worker shows it checkpoints, and says in its log why if that fails"),
            ),
            Some(last) if now.0.saturating_sub(last.anchored_at.0) > patience => Finding::warning(
                CHECK,
                format!("{kind} {name} has held nothing new since {}; a worker's log says why", last.anchored_at),
            ),
            Some(last) => Finding::ok(
                CHECK,
                format!("{kind} {name} holds {} leaves since {}", last.size, last.anchored_at),
            ),
        });
    }
    Ok(findings)
}

/// Projects that demand what is not configured: nothing of theirs is merged.
async fn demands(configuration: &Configuration, store: &Store) -> Result<Vec<Finding>, StoreError> {
    let Some(organisation) = store.organisation().await? else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    for project in store.within(&organisation).projects().await? {
        // Rules that cannot be read are said where projects are looked at.
        let Ok(rules) = rules_from_yaml(project.rules.as_bytes(), "the rules") else {
            continue;
        };
        for demand in &rules.anchors.required {
            if !is_configured(configuration, demand) {
                findings.push(Finding::failed(
                    "anchors",
                    format!(
                        "{} demands {demand} before a merge and none is configured, so nothing of it is merged; add it under `anchor`",
                        project.full_name
                    ),
                ));
            }
        }
    }
    Ok(findings)
}

fn is_configured(configuration: &Configuration, demand: &AnchorDemand) -> bool {
    let anchor = &configuration.anchor;
    let named = |wanted: &Option<String>, mut names: Box<dyn Iterator<Item = &String> + '_>| {
        names.any(|name| wanted.as_ref().is_none_or(|wanted| wanted == name))
    };
    match demand {
        AnchorDemand::Checkpoint => true,
        AnchorDemand::Branch => anchor.branch.is_some(),
        AnchorDemand::Timestamp(name) => named(
            name,
            Box::new(anchor.timestamps.iter().map(|one| &one.name)),
        ),
        AnchorDemand::Witness(name) => {
            named(name, Box::new(anchor.witnesses.iter().map(|one| &one.name)))
        }
    }
}
