//! `caretaker keys rotate`, `revoke`, `add` and `accept`: a new version of the trust root in place of the present one.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::super::installation::Installation;
use super::super::{Verdict, print};
use super::{read_file, trust_root_json, trust_root_text};
use crate::attest::{KeyId, KeyUse, PublicKey, Role, Text};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::signer::{Succeeded, Succession, Wish, system_randomness};

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Whose {
    /// Signs proposals.
    Proposer,
    /// Signs decisions of the rules.
    Policy,
    /// Signs people's answers.
    Approver,
    /// Signs what was done.
    Executor,
    /// Signs the log's checkpoints.
    Log,
    /// Signs trust roots.
    Root,
}

impl Whose {
    pub(super) const fn key_use(self) -> KeyUse {
        match self {
            Self::Proposer => KeyUse::Proposer,
            Self::Policy => KeyUse::Policy,
            Self::Approver => KeyUse::Approver,
            Self::Executor => KeyUse::Executor,
            Self::Log => KeyUse::Log,
            Self::Root => KeyUse::Root,
        }
    }
}

/// Which key, and how to print.
#[derive(Debug, Args)]
pub(in crate::cli) struct RotateArguments {
    /// Whose key.
    whose: Whose,
    /// A role's new key that lies elsewhere, in an agent or with a signer of its own: its public key as ssh-add -L prints it, or in
    /// base64. Nothing is made here then.
    #[arg(long, value_name = "KEY", value_parser = public)]
    public: Option<PublicKey>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Which key, why, and from when on it was somebody else's.
#[derive(Debug, Args)]
pub(in crate::cli) struct RevokeArguments {
    /// The key, as `caretaker keys list` prints it: `SHA256:…`.
    #[arg(value_parser = keyid)]
    key: KeyId,
    #[command(flatten)]
    why: Revocation,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// The end of a key.
#[derive(Debug, Args)]
pub(super) struct Revocation {
    /// Why, in a few words; auditors read it.
    #[arg(long, value_name = "TEXT", required = false)]
    pub(super) reason: Option<String>,
    /// From when on somebody else may have had it, RFC 3339 (2026-01-31T12:00:00Z); what it signed from then on does not count.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) compromised_since: Option<Millis>,
    /// The number of leaves of the log's last checkpoint before that: what was logged earlier counts, what was logged later does
    /// not, whatever moment it claims.
    #[arg(long, value_name = "INDEX")]
    pub(super) at_index: Option<u64>,
}

impl Revocation {
    pub(super) fn wish(&self, keyid: KeyId, now: Millis) -> anyhow::Result<Wish> {
        let reason = self.reason.as_deref().unwrap_or_default();
        anyhow::ensure!(
            !reason.trim().is_empty(),
            "revoking a key: say why with --reason; auditors read it"
        );
        let since = self.compromised_since;
        anyhow::ensure!(
            since.is_none_or(|since| since <= now),
            "revoking a key: --compromised-since is in the future"
        );
        Ok(Wish::Revoke {
            keyid,
            reason: Text::new(reason).context("revoking a key: --reason")?,
            compromised_since: since,
            at_index: self.at_index,
        })
    }
}

/// What to add.
#[derive(Debug, Args)]
pub(in crate::cli) struct AddArguments {
    /// What the key is for.
    what: Addable,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Addable {
    /// Signs the log's checkpoints.
    Log,
}

/// Which file, and how to print.
#[derive(Debug, Args)]
pub(in crate::cli) struct AcceptArguments {
    /// What `caretaker keys propose` wrote and others signed.
    file: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn keyid(text: &str) -> Result<KeyId, String> {
    KeyId::parse(text).map_err(|error| error.to_string())
}

/// A public key: 32 bytes in base64, or the line of an OpenSSH public key.
pub(super) fn public(text: &str) -> Result<PublicKey, String> {
    let mut words = text.split_whitespace();
    let (Some("ssh-ed25519"), Some(blob)) = (words.next(), words.next()) else {
        return PublicKey::try_from(text.to_owned()).map_err(|error| error.to_string());
    };
    // RFC 8709: the name and the key, each with its length before it.
    let decoded = STANDARD.decode(blob).unwrap_or_default();
    let key = decoded
        .strip_prefix(b"\0\0\0\x0bssh-ed25519\0\0\0\x20")
        .and_then(|key| key.try_into().ok())
        .ok_or("not the public key of an Ed25519 key")?;
    PublicKey::from_bytes(key).map_err(|error| error.to_string())
}

fn moment(text: &str) -> Result<Millis, String> {
    let parsed: Result<jiff::Timestamp, _> = text.parse();
    parsed
        .map(|moment| Millis(moment.as_millisecond()))
        .map_err(|error| format!("not a moment such as 2026-01-31T12:00:00Z: {error}"))
}

pub(super) fn rotate(
    installation: &Installation,
    arguments: &RotateArguments,
) -> anyhow::Result<Verdict> {
    let used = arguments.whose.key_use();
    let wish = match &arguments.public {
        None => Wish::Rotate(used),
        Some(public) => {
            anyhow::ensure!(
                Role::parse(used.name()).is_some(),
                "rotating the {used}'s key: --public is for the keys of roles; this one is kept here"
            );
            Wish::Adopt(used, public.clone())
        }
    };
    perform(installation, &wish, SystemClock.now(), arguments.json)
}

pub(super) fn revoke(
    installation: &Installation,
    arguments: &RevokeArguments,
) -> anyhow::Result<Verdict> {
    let now = SystemClock.now();
    let wish = arguments.why.wish(arguments.key.clone(), now)?;
    perform(installation, &wish, now, arguments.json)
}

pub(super) fn add(
    installation: &Installation,
    arguments: &AddArguments,
) -> anyhow::Result<Verdict> {
    match arguments.what {
        Addable::Log => perform(
            installation,
            &Wish::AddLog,
            SystemClock.now(),
            arguments.json,
        ),
    }
}

fn perform(
    installation: &Installation,
    wish: &Wish,
    now: Millis,
    json: bool,
) -> anyhow::Result<Verdict> {
    let (configuration, environment) = (&installation.configuration, &installation.environment);
    let succession = Succession::begin(configuration, environment, now)?;
    let wishes = std::slice::from_ref(wish);
    let succeeded = succession.perform(wishes, &mut system_randomness, &|_| {
        ControlFlow::Continue(())
    })?;
    let ended = match wish {
        Wish::Revoke { keyid, .. } if !succeeded.resumed => Some(keyid),
        _ => None,
    };
    say(&succeeded, ended, json)
}

pub(super) fn accept(
    installation: &Installation,
    arguments: &AcceptArguments,
) -> anyhow::Result<Verdict> {
    let bytes = read_file(&arguments.file)?;
    let (configuration, environment) = (&installation.configuration, &installation.environment);
    let succession = Succession::begin(configuration, environment, SystemClock.now())?;
    succession.settle()?;
    let accepted = succession.accept(&bytes, &|_| ControlFlow::Continue(()));
    let succeeded = accepted.with_context(|| {
        format!(
            "accepting {} as the trust root after version {}",
            arguments.file.display(),
            succession.trust().document().version
        )
    })?;
    say(&succeeded, None, arguments.json)
}

fn say(succeeded: &Succeeded, ended: Option<&KeyId>, json: bool) -> anyhow::Result<Verdict> {
    print(&if json {
        let replaced = succeeded.replaced.iter();
        let replaced = replaced.map(|key| json!({"use": key.used, "keyid": key.keyid}));
        json!({
            "trust_root": trust_root_json(&succeeded.trust),
            "replaced": replaced.collect::<Vec<_>>(),
            "revoked": ended,
            "resumed": succeeded.resumed,
            "next": next(succeeded),
        })
        .to_string()
    } else {
        text(succeeded, ended)
    })?;
    Ok(Verdict::Done)
}

fn text(succeeded: &Succeeded, ended: Option<&KeyId>) -> String {
    let mut lines = Vec::new();
    if succeeded.resumed {
        lines.push(
            "an earlier command had been interrupted after it put a trust root in place; this one ended that and did nothing else"
                .to_owned(),
        );
    }
    lines.push(trust_root_text(&succeeded.trust));
    if let Some(keyid) = ended {
        lines.push(format!("  {keyid} is revoked"));
    }
    for key in &succeeded.replaced {
        lines.push(format!(
            "  {:9} {} is in use now",
            key.used.name(),
            key.keyid
        ));
    }
    lines.push(String::new());
    lines.push("Next:".to_owned());
    let steps = next(succeeded).into_iter().enumerate();
    lines.extend(steps.map(|(number, step)| format!("{}. {step}", number + 1)));
    lines.join("\n")
}

/// What is left for people to do.
fn next(succeeded: &Succeeded) -> Vec<String> {
    let mut steps = vec![
        "start serve, worker and web again wherever they run with these keys: a running one signs nothing more until then".to_owned(),
        "copy the folder of keys, without the root key, to other machines that share this database".to_owned(),
        "give auditors what `caretaker keys export-trust-root` writes; from the version that they pin they follow to this one".to_owned(),
        "back up the folder of keys".to_owned(),
    ];
    if !succeeded.replaced.is_empty() {
        steps.push(
            "delete older backups of a key that was replaced; <role>.key.previous only signs what was drafted before, and may go after an hour"
                .to_owned(),
        );
    }
    if succeeded
        .replaced
        .iter()
        .any(|key| key.used == KeyUse::Root)
    {
        steps.push("move root.key and what opens it offline again".to_owned());
    }
    steps
}
