//! `caretaker keys rotate-deployment`.

use std::ops::ControlFlow;

use serde_json::json;

use super::super::credential_events;
use super::super::installation::Installation;
use super::super::runtime::block_on;
use super::super::{Verdict, print};
use super::Format;
use crate::onboard::{Rotated, rotate_deployment_key};
use crate::signer::system_randomness;

pub(super) fn run(installation: &Installation, format: &Format) -> anyhow::Result<Verdict> {
    let rotated = block_on(rotate(installation))?;
    credential_events::tell(
        &installation.configuration,
        "credentials_resealed",
        "",
        [("credentials", json!(rotated.credentials))],
    );
    print(&if format.json {
        json!({
            "credentials": rotated.credentials,
            "renewed_links": rotated.renewed,
            "resumed": rotated.resumed,
        })
        .to_string()
    } else {
        text(&rotated)
    })?;
    Ok(Verdict::Done)
}

async fn rotate(installation: &Installation) -> anyhow::Result<Rotated> {
    let (store, organisation) = installation.open_database().await?;
    let by = installation.current_user()?;
    let now = store.now().await?;
    Ok(rotate_deployment_key(
        &installation.configuration,
        &store,
        &organisation,
        &by,
        &mut system_randomness,
        now,
        &|_| ControlFlow::Continue(()),
    )
    .await?)
}

fn text(rotated: &Rotated) -> String {
    let mut lines = vec![format!(
        "{} credentials are sealed with another key; the one before is gone from this machine",
        rotated.credentials
    )];
    if rotated.resumed {
        lines.push("this ended a rotation that had been interrupted".to_owned());
    }
    if !rotated.renewed.is_empty() {
        lines.push(format!(
            "{} approval links no longer work; a running worker sends others",
            rotated.renewed.len()
        ));
    }
    lines.push(
        "Next: back up credential.key, delete older backups of it, and copy it to every other machine that shares this database"
            .to_owned(),
    );
    lines.join("\n")
}
