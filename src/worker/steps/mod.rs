//! What each step does: at most one effect outside, looked for before it is repeated.

mod approval;
mod bind;
mod close;
mod compare;
mod diagnose;
mod evidence;
mod fix;
mod hold;
mod judge;
mod landing;
pub(super) mod let_go;
mod links;
mod merge;
mod notary;
mod propose;
mod publish;
mod read;
mod reproduce;
mod rerun;
mod screen;
mod sign;

use super::Stepped;
use super::work::Work;
use crate::incident::{Outcome, Step};

/// Runs a step. Waiting and being done are the loop's business.
pub(super) async fn perform(work: Work<'_>, step: &Step) -> Stepped {
    match step {
        Step::Reproduce => reproduce::reproduce(work).await,
        Step::Rerun => rerun::rerun(work).await,
        Step::Read => read::read(work).await,
        // Boxed: these hold more than the others, and every future of the loop would be as large.
        Step::Diagnose => Box::pin(diagnose::diagnose(work)).await,
        Step::Screen => screen::screen(work).await,
        Step::Fix => Box::pin(fix::fix(work)).await,
        Step::Propose => propose::propose(work).await,
        Step::Sign { seq } => sign::sign(work, *seq).await,
        Step::Push => publish::push(work).await,
        Step::Open => publish::open(work).await,
        Step::Bind => bind::bind(work),
        Step::MintLink => links::mint(work),
        Step::SendLink { approval } => links::send(work, approval).await,
        Step::DraftApproval => approval::draft(work).await,
        Step::Compare { comparisons } => compare::compare(work, *comparisons).await,
        Step::Merge(merge) => merge::merge(work, merge).await,
        Step::ProveLanding(merge) => landing::prove_landing(work, merge).await,
        Step::LetGo => let_go::let_go(work).await,
        Step::CleanUp => close::clean_up(work).await,
        Step::Close { reason, detail } => close::close(work, *reason, detail).await,
        Step::AwaitRecovery | Step::Wait { .. } | Step::Done => Ok(Outcome::default()),
    }
}
