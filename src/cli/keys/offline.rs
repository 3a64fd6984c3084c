//! `caretaker keys propose`, `sign` and `new-root`: a trust root that several holders of root keys sign, each on a machine of
//! their own.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::super::installation::Installation;
use super::super::{Verdict, print};
use super::succeed::{Revocation, Whose, keyid, public};
use super::{read_file, write_file};
use crate::attest::trust_root::{Progress, Proposal};
use crate::attest::{KeyFile, KeyId, KeyUse, PublicKey, Role, SecretKey, TrustRootDocument};
use crate::clock::{Clock as _, SystemClock};
use crate::config::{Environment, SecretSource};
use crate::id::OrganisationId;
use crate::signer::{Succession, Wish, seal_root_key, secret_bytes, system_randomness};

/// What the next version changes.
#[derive(Debug, Args)]
pub(in crate::cli) struct ProposeArguments {
    /// Put another key in the place of this one; may be given more than once.
    #[arg(long, value_name = "WHOSE")]
    rotate: Vec<Whose>,
    /// Revoke this key; needs --reason.
    #[arg(long, value_name = "KEY", value_parser = keyid)]
    revoke: Option<KeyId>,
    #[command(flatten)]
    why: Revocation,
    /// Add a key of the log.
    #[arg(long)]
    add_log: bool,
    /// Add a root key: its public key, as `keys new-root` prints it.
    #[arg(long, value_name = "PUBLIC", value_parser = public)]
    add_root: Vec<PublicKey>,
    /// Remove a root key.
    #[arg(long, value_name = "KEY", value_parser = keyid)]
    remove_root: Vec<KeyId>,
    /// How many root keys have to sign from now on.
    #[arg(long, value_name = "COUNT")]
    threshold: Option<u64>,
    /// The file to write, replacing what is there.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Which file, with which key.
#[derive(Debug, Args)]
pub(in crate::cli) struct SignArguments {
    /// What `caretaker keys propose` wrote; the signature is added to it.
    file: PathBuf,
    /// The sealed root key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// What opens it, `env:NAME` or `file:PATH`; else a file of the key's name that ends in .secret.
    #[arg(long, value_name = "PLACE")]
    secret: Option<SecretSource>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// For whom, and where to.
#[derive(Debug, Args)]
pub(in crate::cli) struct NewRootArguments {
    /// The organisation, as `caretaker keys list` prints it.
    #[arg(long, value_name = "ORGANISATION")]
    organisation: OrganisationId,
    /// The file to write; there must be none.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What is to open it, `env:NAME` or `file:PATH`.
    #[arg(long, value_name = "PLACE")]
    secret: SecretSource,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

impl ProposeArguments {
    fn wishes(&self) -> anyhow::Result<Vec<Wish>> {
        let rotations = self
            .rotate
            .iter()
            .map(|whose| Wish::Rotate(whose.key_use()));
        let mut wishes: Vec<Wish> = rotations.collect();
        if let Some(key) = &self.revoke {
            wishes.push(self.why.wish(key.clone(), SystemClock.now())?);
        }
        wishes.extend(self.add_log.then_some(Wish::AddLog));
        wishes.extend(self.add_root.iter().cloned().map(Wish::AddRoot));
        wishes.extend(self.remove_root.iter().cloned().map(Wish::RemoveRoot));
        wishes.extend(self.threshold.map(Wish::Threshold));
        Ok(wishes)
    }
}

pub(super) fn propose(
    installation: &Installation,
    arguments: &ProposeArguments,
) -> anyhow::Result<Verdict> {
    let (configuration, environment) = (&installation.configuration, &installation.environment);
    let succession = Succession::begin(configuration, environment, SystemClock.now())?;
    let proposal = succession.propose(&arguments.wishes()?, &mut system_randomness)?;
    let output = &arguments.output;
    write_file("the proposal", output, &proposal.to_bytes()?, 0o644)?;
    let before = succession.trust().document();
    print(&if arguments.json {
        json!({
            "file": output,
            "version": proposal.document().version,
            "sha256": proposal.digest().to_string(),
            "signatures_of_the_version_before": before.threshold,
            "signatures_of_its_own": proposal.document().threshold,
        })
        .to_string()
    } else {
        format!(
            "wrote {}\n{}\n\nNext: each of {} of the present root keys' holders, and of {} of the new version's, runs `caretaker keys sign {0} --key ROOT.key` \
             after having looked at it; then `caretaker keys accept {0}` here. Until then nothing changes, and new keys wait in <use>.key.next.",
            output.display(),
            described(&proposal),
            before.threshold,
            proposal.document().threshold,
        )
    })?;
    Ok(Verdict::Done)
}

/// A version in words: what a holder looks at before signing.
fn described(proposal: &Proposal) -> String {
    let document = proposal.document();
    let mut lines = vec![
        format!(
            "trust root version {} of {}, sha256:{}, follows {}",
            document.version,
            document.org,
            proposal.digest(),
            document.prev.map_or_else(
                || "nothing".to_owned(),
                |prev| format!("sha256:{}", prev.sha256)
            ),
        ),
        format!(
            "  issued at {}, allows acting until {}, threshold {} of {} root keys",
            document.issued_at,
            document.expires_at,
            document.threshold,
            document.root_keys.len()
        ),
    ];
    for key in document.root_keys.iter() {
        lines.push(format!("  root      {}", key.keyid));
    }
    for role in Role::ALL {
        for key in document.roles.of(role) {
            let end = ending(&key.validity());
            lines.push(format!("  {:9} {}{end}", role.name(), key.keyid));
        }
    }
    for key in document.side_keys.iter().flat_map(|keys| keys.iter()) {
        let end = ending(&key.validity());
        lines.push(format!("  {:9} {}{end}", key.purpose.as_str(), key.keyid));
    }
    lines.join("\n")
}

fn ending(validity: &crate::attest::trust_root::Validity<'_>) -> String {
    match (validity.revoked, validity.not_after) {
        (Some(revocation), _) => format!(
            ", revoked from {} ({})",
            revocation.effective_from(),
            crate::attest::text::shown(revocation.reason.as_str())
        ),
        (None, Some(end)) => format!(", counts until {end}"),
        (None, None) => String::new(),
    }
}

fn read_proposal(path: &Path) -> anyhow::Result<Proposal> {
    let bytes = read_file(path)?;
    Proposal::parse(&bytes).with_context(|| format!("reading {}", path.display()))
}

pub(super) fn sign(arguments: &SignArguments) -> anyhow::Result<Verdict> {
    let mut proposal = read_proposal(&arguments.file)?;
    let key = open_root(arguments, proposal.document())?;
    let added = proposal.sign(&key)?;
    if added {
        write_file(
            "the proposal",
            &arguments.file,
            &proposal.to_bytes()?,
            0o644,
        )?;
    }
    let progress: Progress = proposal.progress(proposal.document());
    let keyid = key.public().keyid();
    print(&if arguments.json {
        json!({
            "file": arguments.file,
            "version": proposal.document().version,
            "sha256": proposal.digest().to_string(),
            "keyid": keyid,
            "added": added,
            "signed": progress.signed,
            "needed": progress.needed,
        })
        .to_string()
    } else {
        format!(
            "{}\n{keyid} {}; {} of its own root keys signed it, {} are needed (and those of the version before)\nNext: hand the file to the next \
             holder, or back for `caretaker keys accept`",
            described(&proposal),
            if added {
                "signed this"
            } else {
                "had signed this before"
            },
            progress.signed,
            progress.needed
        )
    })?;
    Ok(Verdict::Done)
}

fn open_root(arguments: &SignArguments, document: &TrustRootDocument) -> anyhow::Result<SecretKey> {
    let path = &arguments.key;
    let opening = || format!("opening the root key {}", path.display());
    let bytes = read_file(path)?;
    let file = KeyFile::parse(&bytes).with_context(opening)?;
    anyhow::ensure!(
        file.header().org == document.org,
        "opening the root key {}: it is {}'s, and the proposed trust root is that of {}",
        path.display(),
        file.header().org,
        document.org
    );
    let beside = || SecretSource::File(path.with_extension("secret"));
    let source = arguments.secret.clone().unwrap_or_else(beside);
    let secret = secret(&source)?;
    let key = file.open(KeyUse::Root, &secret);
    key.with_context(opening)
}

fn secret(source: &SecretSource) -> anyhow::Result<zeroize::Zeroizing<Vec<u8>>> {
    let environment = Environment::of_process()?;
    let found = source.resolve("the root's key", "--secret", &environment)?;
    Ok(secret_bytes(found.expose_secret()))
}

pub(super) fn new_root(arguments: &NewRootArguments) -> anyhow::Result<Verdict> {
    let environment = Environment::of_process()?;
    let found = arguments
        .secret
        .resolve("the root's key", "--secret", &environment)?;
    let (public, sealed) = seal_root_key(
        &arguments.organisation,
        found.expose_secret(),
        &mut system_randomness,
    )?;
    let output = &arguments.output;
    anyhow::ensure!(
        std::fs::symlink_metadata(output).is_err(),
        "writing the root key to {}: there is something already; name another file",
        output.display()
    );
    write_file("the root key", output, &sealed, 0o600)?;
    let text = String::from(public.clone());
    print(&if arguments.json {
        json!({"file": output, "keyid": public.keyid(), "public": text}).to_string()
    } else {
        format!(
            "wrote {}: root key {}\npublic key: {text}\nNext: give the public key to whoever runs `caretaker keys propose --add-root {text}`, and compare the \
             fingerprint with them; back the file up, and keep it and its secret offline",
            output.display(),
            public.keyid()
        )
    })?;
    Ok(Verdict::Done)
}
