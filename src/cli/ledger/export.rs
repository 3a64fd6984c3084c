//! `caretaker ledger export`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::super::files::replace;
use super::super::installation::Installation;
use super::super::runtime::block_on;
use super::super::{Verdict, print};
use crate::attest::chain::Verdict as Validity;
use crate::attest::text::shown;
use crate::audit::{StoredLedger, verify};
use crate::clock::{Clock as _, SystemClock};
use crate::id::{IncidentId, OrganisationId};
use crate::log::{ProofPlan, SignedCheckpoint};
use crate::signer::{CheckpointSigner, Keyring, trust_history};
use crate::store::{Scoped, Store};

/// Of what, and where to.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArguments {
    /// The incident, as `caretaker incident list` prints it.
    incident: IncidentId,
    /// The file to write, replacing what is there.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A checkpoint that the auditor has seen: the proof that the log extends it goes with the bundle.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
}

pub(super) fn run(
    arguments: &ExportArguments,
    installation: &Installation,
) -> anyhow::Result<Verdict> {
    let exported = block_on(export(arguments, installation))?;
    let Some((bytes, checkpoint)) = exported else {
        return Ok(Verdict::Refused);
    };
    replace("the bundle", &arguments.output, &bytes)?;
    let head = checkpoint.claimed().head();
    print(&format!(
        "wrote {}: {} bytes, under the checkpoint of {} leaves; verify it with `caretaker verify {0} --trust-root FILE`",
        shown(&arguments.output.display().to_string()),
        bytes.len(),
        head.size()
    ))?;
    Ok(Verdict::Done)
}

/// The bundle and the checkpoint it is under; none when the ledger does not verify, which is said.
async fn export(
    arguments: &ExportArguments,
    installation: &Installation,
) -> anyhow::Result<Option<(Vec<u8>, SignedCheckpoint)>> {
    let trust = trust_history(&installation.configuration)?;
    let (store, organisation) = installation.open_database().await?;
    let scoped = store.within(&organisation);
    let ledger = scoped.ledger(&arguments.incident).await?;
    let ledger = ledger.with_context(|| {
        format!(
            "there is no incident {}; `caretaker incident list` shows those there are",
            arguments.incident
        )
    })?;
    let report = verify(&trust, &ledger);
    if report.verdict != Validity::Valid {
        super::super::complain(&format!(
            "the ledger of {} is {}, so nothing is exported; `caretaker ledger verify {0}` says why",
            arguments.incident,
            report.verdict.name()
        ));
        return Ok(None);
    }
    let checkpoint = covering(installation, &store, &organisation, &ledger).await?;
    let mut contents = scoped
        .bundle(&ledger, ledger.evidence.documents(), &checkpoint)
        .await?;
    for root in trust.versions() {
        let bytes = root.to_bytes()?;
        contents.trust_roots.push((root.document().version, bytes));
    }
    if let Some(path) = &arguments.checkpoint {
        let seen = consistency(&scoped, path, &checkpoint).await?;
        contents.consistency.extend(seen);
    }
    Ok(Some((contents.write()?, checkpoint)))
}

/// A checkpoint over all events of the ledger: one that witnesses cosigned, else the newest, else one that is made now.
async fn covering(
    installation: &Installation,
    store: &Store,
    organisation: &OrganisationId,
    ledger: &StoredLedger,
) -> anyhow::Result<SignedCheckpoint> {
    let scoped = store.within(organisation);
    let places = scoped.log_places(&ledger.incident).await?;
    let last = places.iter().map(|(_, place)| place + 1).max().unwrap_or(0);
    if places.len() == ledger.rows.len() {
        // What witnesses have seen is worth more than what is newest.
        if let Some(cosigned) = scoped.best_cosigned(last).await? {
            return Ok(cosigned);
        }
        if let Some(newest) = scoped.newest_checkpoint().await?
            && newest.size >= last
        {
            return Ok(SignedCheckpoint::parse(newest.note.as_bytes())?);
        }
    }
    let now = SystemClock.now();
    let configuration = &installation.configuration;
    let keys = Keyring::open(configuration, &installation.environment, now).context(
        "the log has no checkpoint over this incident yet, and none can be made here; the worker makes one every second",
    )?;
    let signer = CheckpointSigner::of(&keys, &configuration.home)
        .context("the trust root lists no key of the log; `caretaker keys add log` makes one")?;
    while store.log_what_is_not_logged(organisation, 200, now).await? > 0 {}
    let made = signer.cover(store, now).await?;
    made.context("nothing was logged yet")
}

/// The proof that the log of the bundle's checkpoint and the one that was seen are one, whichever is the later.
async fn consistency(
    scoped: &Scoped<'_>,
    path: &Path,
    checkpoint: &SignedCheckpoint,
) -> anyhow::Result<Vec<(u64, u64, Vec<crate::log::TreeHash>)>> {
    let reading = || format!("reading the checkpoint {}", path.display());
    let bytes = crate::verifier::read(path, "the checkpoint", crate::log::MAX_NOTE as u64)?;
    let seen = SignedCheckpoint::parse(&bytes).with_context(reading)?;
    let (seen, covering) = (
        seen.claimed().head().size(),
        checkpoint.claimed().head().size(),
    );
    let newest = scoped.newest_checkpoint().await?;
    let newest = newest.map_or(covering, |newest| newest.size.max(covering));
    anyhow::ensure!(
        seen <= newest,
        "the checkpoint {} is over {seen} leaves and this log has {newest}: it is another log, or this one was cut",
        path.display()
    );
    let (old, new) = (seen.min(covering), seen.max(covering));
    if old == 0 || old == new {
        return Ok(Vec::new());
    }
    let proof = scoped.log_proof(&ProofPlan::consistency(old, new)?).await?;
    Ok(vec![(old, new, proof)])
}
