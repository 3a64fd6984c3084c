//! `caretaker keys list`.

use serde::Serialize;
use serde_json::json;

use super::super::installation::Installation;
use super::super::{Verdict, print};
use super::{Format, trust_root_json, trust_root_text};
use crate::attest::trust_root::{RootKey, Validity};
use crate::attest::{KeyId, KeyUse, PublicKey, Role, TrustRoot};
use crate::clock::Millis;
use crate::config::Configuration;
use crate::signer::{self, KeyringError, USES};

/// One key that the trust root lists.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(rename = "use")]
    used: KeyUse,
    keyid: KeyId,
    public: PublicKey,
    not_before: Option<String>,
    not_after: Option<String>,
    revoked_at: Option<String>,
    file: Place,
    /// What opens it, when it is here.
    secret: Option<String>,
}

/// Where the sealed key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    /// In the folder of keys.
    Here,
    /// Not in it.
    Elsewhere,
    /// What lies in its place cannot be read.
    Damaged,
}

pub(super) fn run(installation: &Installation, format: &Format) -> anyhow::Result<Verdict> {
    let configuration = &installation.configuration;
    let history = signer::trust_history(configuration)?;
    let trust = history.newest();
    let rows: Vec<Row> = USES
        .into_iter()
        .flat_map(|used| rows(used, trust, configuration))
        .collect();
    if format.json {
        let document = json!({
            "organisation": trust.document().org,
            "directory": configuration.keys.dir,
            "trust_root": trust_root_json(trust),
            "keys": rows,
        });
        print(&document.to_string())?;
    } else {
        print(&text(trust, configuration, &rows))?;
    }
    Ok(Verdict::Done)
}

/// The keys of one use, as the trust root lists them.
fn rows(used: KeyUse, trust: &TrustRoot, configuration: &Configuration) -> Vec<Row> {
    let document = trust.document();
    match Role::parse(used.name()) {
        Some(role) => document
            .roles
            .of(role)
            .iter()
            .map(|key| {
                let row = row(used, &key.keyid, &key.public, configuration, trust);
                within(row, &key.validity(), Some(key.not_before))
            })
            .collect(),
        None if used != KeyUse::Root => trust
            .side_keys(used)
            .map(|key| {
                let row = row(used, &key.keyid, &key.public, configuration, trust);
                within(row, &key.validity(), key.not_before)
            })
            .collect(),
        None => document
            .root_keys
            .iter()
            .map(|key| of_root(used, key, configuration, trust))
            .collect(),
    }
}

fn within(row: Row, validity: &Validity<'_>, not_before: Option<Millis>) -> Row {
    let revoked = validity.revoked;
    Row {
        not_before: not_before.map(|start| start.to_string()),
        not_after: validity.not_after.map(|end| end.to_string()),
        revoked_at: revoked.map(|revocation| revocation.effective_from().to_string()),
        ..row
    }
}

fn of_root(used: KeyUse, key: &RootKey, configuration: &Configuration, trust: &TrustRoot) -> Row {
    row(used, &key.keyid, &key.public, configuration, trust)
}

fn row(
    used: KeyUse,
    keyid: &KeyId,
    public: &PublicKey,
    configuration: &Configuration,
    trust: &TrustRoot,
) -> Row {
    let file = match signer::key_file_in_use(used, configuration, trust) {
        Ok((_, file)) if file.header().keyid == *keyid => Place::Here,
        Ok(_) | Err(KeyringError::MissingKey { .. }) => Place::Elsewhere,
        Err(_) => Place::Damaged,
    };
    let secret = configuration.keys.secret(used).source.to_string();
    Row {
        used,
        keyid: keyid.clone(),
        public: public.clone(),
        not_before: None,
        not_after: None,
        revoked_at: None,
        file,
        secret: (file == Place::Here).then_some(secret),
    }
}

fn text(trust: &TrustRoot, configuration: &Configuration, rows: &[Row]) -> String {
    let mut lines = vec![
        format!("organisation {}", trust.document().org),
        trust_root_text(trust),
        format!("keys in {}", configuration.keys.dir.display()),
    ];
    for row in rows {
        let place = match (row.file, &row.secret) {
            (Place::Here, Some(secret)) => format!("opened by {secret}"),
            (Place::Here, None) => "here".to_owned(),
            (Place::Elsewhere, _) => "not in this folder".to_owned(),
            (Place::Damaged, _) => {
                format!(
                    "{}.key is damaged or unreadable; see `caretaker doctor`",
                    row.used
                )
            }
        };
        lines.push(format!(
            "  {:9} {}  {place}{}",
            row.used.name(),
            row.keyid,
            ending(row)
        ));
    }
    lines.join("\n")
}

/// How a key's validity ends, if it does.
fn ending(row: &Row) -> String {
    match (&row.revoked_at, &row.not_after) {
        (Some(moment), _) => format!(", revoked from {moment}"),
        (None, Some(moment)) => format!(", counts until {moment}"),
        (None, None) => String::new(),
    }
}
