//! `caretaker keys`.

mod list;
mod offline;
mod rotate;
mod succeed;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::installation::Installation;
use super::{Verdict, print, write_out};
use crate::attest::TrustRoot;
use crate::attest::dsse::MAX_ENVELOPE;
use crate::clock::{Clock as _, SystemClock};
use crate::signer::{self, Created};

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Make the organisation's keys and its first trust root in the folder of keys (keys.dir, else `CARETAKER_HOME/keys`).
    /// Refuses a folder that holds keys.
    Init(Format),
    /// Show the trust root in force and its keys. Opens none and needs no secret.
    List(Format),
    /// Put another key in the place of a role's, the log's or the root's present one, by a new version of the trust root. Needs the
    /// root key; where the trust root wants several, see `propose`.
    Rotate(succeed::RotateArguments),
    /// End a key: by a new version of the trust root, what it signs counts no longer. The one in use is replaced with it.
    Revoke(succeed::RevokeArguments),
    /// Add a key that an installation made by an earlier version lacks.
    Add(succeed::AddArguments),
    /// Write the next version of the trust root for several holders of root keys to sign. Nothing changes before `accept`.
    Propose(offline::ProposeArguments),
    /// Show a proposed version of the trust root and add a root key's signature to the file. Needs no configuration: for the
    /// machine on which that key is kept.
    Sign(offline::SignArguments),
    /// Put a version of the trust root in place that enough root keys have signed.
    Accept(succeed::AcceptArguments),
    /// Make a root key for another holder, and print what `propose --add-root` takes.
    NewRoot(offline::NewRootArguments),
    /// Put another deployment key (credential.key) in the place of the present one: every credential of a project is sealed
    /// anew, and open approval links are sent anew.
    RotateDeployment(Format),
    /// Write the trust root in force: what an auditor pins.
    ExportTrustRoot(ExportArguments),
}

/// How to print.
#[derive(Debug, Args)]
pub(super) struct Format {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Where to.
#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// The file to write, replacing what is there; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(super) fn run(command: &KeysCommand, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = || Installation::load(config);
    match command {
        KeysCommand::Rotate(arguments) => succeed::rotate(&installation()?, arguments),
        KeysCommand::Revoke(arguments) => succeed::revoke(&installation()?, arguments),
        KeysCommand::Add(arguments) => succeed::add(&installation()?, arguments),
        KeysCommand::Accept(arguments) => succeed::accept(&installation()?, arguments),
        KeysCommand::Propose(arguments) => offline::propose(&installation()?, arguments),
        KeysCommand::Sign(arguments) => offline::sign(arguments),
        KeysCommand::NewRoot(arguments) => offline::new_root(arguments),
        KeysCommand::Init(format) => init(&installation()?, format),
        KeysCommand::List(format) => list::run(&installation()?, format),
        KeysCommand::RotateDeployment(format) => rotate::run(&installation()?, format),
        KeysCommand::ExportTrustRoot(arguments) => export(&installation()?, &arguments.output),
    }
}

/// A trust root in JSON, with its digest.
fn trust_root_json(trust: &TrustRoot) -> serde_json::Value {
    let document = trust.document();
    json!({
        "version": document.version,
        "sha256": trust.digest().to_string(),
        "issued_at": document.issued_at.to_string(),
        "expires_at": document.expires_at.to_string(),
    })
}

fn init(installation: &Installation, format: &Format) -> anyhow::Result<Verdict> {
    let created = signer::create(
        &installation.configuration,
        &installation.environment,
        None,
        SystemClock.now(),
        &mut signer::system_randomness,
    )?;
    print(&if format.json {
        created_json(&created)
    } else {
        created_text(&created)
    })?;
    Ok(Verdict::Done)
}

fn created_json(created: &Created) -> String {
    let keys = created
        .keys
        .iter()
        .map(|(used, keyid)| json!({"use": used, "keyid": keyid}));
    json!({
        "organisation": created.organisation,
        "directory": created.directory,
        "trust_root": trust_root_json(&created.trust),
        "keys": keys.collect::<Vec<_>>(),
        "generated_secrets": created.generated_secrets,
    })
    .to_string()
}

fn created_text(created: &Created) -> String {
    let directory = created.directory.display();
    let trust = &created.trust;
    let mut lines = vec![format!(
        "made the keys of {} in {directory}",
        created.organisation
    )];
    for (used, keyid) in &created.keys {
        lines.push(format!("  {:9} {keyid}", used.name()));
    }
    lines.push(trust_root_text(trust));
    lines.push(String::new());
    let generated: Vec<_> = created
        .generated_secrets
        .iter()
        .filter_map(|path| path.file_stem()?.to_str())
        .collect();
    if !generated.is_empty() {
        lines.push(format!(
            "No secret is configured for {}: what opens each lies beside it in <use>.secret, 32 random bytes.",
            generated.join(", ")
        ));
    }
    lines.push(format!(
        "Next: back up {directory}; then keep root.key and what opens it offline, since signing never needs it. Give auditors what \
         `caretaker keys export-trust-root` writes. `caretaker doctor` says what else is to be done."
    ));
    lines.join("\n")
}

fn trust_root_text(trust: &TrustRoot) -> String {
    format!(
        "trust root version {}, sha256:{}, allows acting until {}",
        trust.document().version,
        trust.digest(),
        trust.document().expires_at
    )
}

fn export(installation: &Installation, output: &Path) -> anyhow::Result<Verdict> {
    let history = signer::trust_history(&installation.configuration)?;
    let trust = history.newest();
    let bytes = trust.to_bytes()?;
    if output.as_os_str() == "-" {
        write_out(&bytes)?;
        return Ok(Verdict::Done);
    }
    write_file("the trust root", output, &bytes, 0o644)?;
    print(&format!(
        "wrote {}: {}",
        output.display(),
        trust_root_text(trust)
    ))?;
    Ok(Verdict::Done)
}

/// Writes a file, replacing an ordinary one that is there.
fn write_file(what: &str, output: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let writing = || {
        format!(
            "writing {what} to {} (in a folder that is there and may be written)",
            output.display()
        )
    };
    // Renaming onto a device or a link would replace it.
    let replaceable = std::fs::symlink_metadata(output).map_or(true, |found| found.is_file());
    anyhow::ensure!(
        replaceable,
        "writing {what} to {}: there is something that is no ordinary file; name another file, or - for standard output",
        output.display()
    );
    let folder = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Whole or not at all: half a file must not replace one that somebody relies on.
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))
        .tempfile_in(folder)
        .with_context(writing)?;
    file.write_all(bytes).with_context(writing)?;
    file.as_file().sync_all().with_context(writing)?;
    file.persist(output).with_context(writing)?;
    Ok(())
}

/// Reads a file that is no longer than a trust root may be.
fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let reading = || format!("reading {}", path.display());
    let file = std::fs::File::open(path).with_context(reading)?;
    let mut bytes = Vec::new();
    let limit = MAX_ENVELOPE as u64;
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .with_context(reading)?;
    anyhow::ensure!(
        bytes.len() as u64 <= limit,
        "reading {}: it is longer than {limit} bytes, so it is another file",
        path.display()
    );
    Ok(bytes)
}
