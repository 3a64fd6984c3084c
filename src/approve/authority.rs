//! The right to merge, as a type.

use thiserror::Error;

use super::standing::{Grant, Standing};
use super::{Binding, MergeMethod};
use crate::attest::chain::{ChainReport, Verdict};
use crate::attest::predicate::{self, Answer, Approval, BoundChange, PolicyDecision, Target};
use crate::attest::text::shown;
use crate::attest::{Expectation, TrustHistory, verify_chain};
use crate::change::{CHANGE_SET_ALGORITHM, ChangeError, ChangeSet, Sha256Digest};

/// Why a ledger gives no authority to merge. Nothing is merged then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuthorityError {
    /// It is not known which chain is to be read and where it ends, so that a later rejection could be missing.
    #[error(
        "looking for the authority to merge: the ledger's incident and end are not known, so that a later rejection could be missing; read them with the ledger from the store"
    )]
    EndUnknown,
    /// The ledger is not valid.
    #[error(
        "looking for the authority to merge: the ledger is {verdict} ({failure}); see `caretaker ledger verify`"
    )]
    Ledger {
        /// Its verdict.
        verdict: Verdict,
        /// The first failure, with its position.
        failure: String,
    },
    /// The binding contradicts itself.
    #[error("looking for the authority to merge: the binding is not of one change: {0}")]
    Binding(#[from] ChangeError),
    /// Something landed already.
    #[error("looking for the authority to merge: commit {commit} has landed already")]
    Executed {
        /// The landed commit.
        commit: String,
    },
    /// The last answer is a no.
    #[error("looking for the authority to merge: {principal} rejected the change")]
    Rejected {
        /// Who.
        principal: String,
    },
    /// A blocking escalation came after what allowed the merge.
    #[error(
        "looking for the authority to merge: an escalation voided what allowed it; a person has to be asked again"
    )]
    Voided,
    /// Nobody approved and no decision says that nobody has to.
    #[error(
        "looking for the authority to merge: the ledger holds neither an approval nor a decision `free` about the newest proposal"
    )]
    Missing,
    /// What is allowed is another change than the one that is bound.
    #[error(
        "looking for the authority to merge: {member} is {bound}, but what is allowed is {allowed}; a person has to be asked about what is there now"
    )]
    OtherBinding {
        /// The member that differs.
        member: &'static str,
        /// What is allowed.
        allowed: String,
        /// What is bound.
        bound: String,
    },
}

/// Which signed event gives the authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthoritySource {
    /// A named person's approval: SHA-256 of its PAE.
    Approval(Sha256Digest),
    /// A policy decision that the change is free: SHA-256 of its PAE.
    FreeDecision(Sha256Digest),
}

/// Possession means that a signed approval, or a signed decision `free`, was found in a ledger that verified just now.
///
/// ```compile_fail
/// use caretaker::approve::Authority;
/// let forged = Authority { source: unreachable!(), proposal: unreachable!(), binding: unreachable!() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    source: AuthoritySource,
    proposal: Sha256Digest,
    binding: Sha256Digest,
}

impl Authority {
    /// Verifies the stored envelopes of an incident, in order, and finds what allows the merge of exactly `binding` at
    /// the end of its story: the last answer, if the newest decision asks for one, else that decision, if it is `free`.
    pub fn from_ledger(
        trust: &TrustHistory,
        expected: &Expectation,
        envelopes: impl IntoIterator<Item: AsRef<[u8]>>,
        binding: &Binding,
    ) -> Result<Self, AuthorityError> {
        if expected.incident.is_none() || expected.head.is_none() {
            return Err(AuthorityError::EndUnknown);
        }
        let report = verify_chain(trust, expected, envelopes);
        check_sound(&report)?;
        ChangeSet::try_from(&binding.change)?;
        let events = report
            .events
            .iter()
            .filter_map(|event| Some((event.digest?, event.event.as_ref()?)));
        let standing = Standing::of(events);
        if let Some(execution) = standing.execution {
            let commit = execution.landed.commit.to_string();
            return Err(AuthorityError::Executed { commit });
        }
        let (source, terms) = match standing.grant() {
            Some(Grant::Approval(digest, approval)) => (
                AuthoritySource::Approval(digest),
                approved(&approval.binding, binding),
            ),
            Some(Grant::Free(digest, decision)) => (
                AuthoritySource::FreeDecision(digest),
                free(&standing, decision, binding),
            ),
            None => return Err(why_nothing(&standing)),
        };
        check_terms(terms)?;
        let proposal = standing.proposal.ok_or(AuthorityError::Missing)?.digest;
        Ok(Self {
            source,
            proposal,
            binding: binding.digest(),
        })
    }

    /// Digest of the binding that is authorised.
    pub const fn binding_digest(&self) -> Sha256Digest {
        self.binding
    }

    /// The event that gives it.
    pub const fn source(&self) -> &AuthoritySource {
        &self.source
    }

    /// The proposal that it is about: SHA-256 of its PAE.
    pub const fn proposal(&self) -> Sha256Digest {
        self.proposal
    }
}

/// Only a valid ledger gives authority; one that cannot be verified gives none either.
fn check_sound(report: &ChainReport) -> Result<(), AuthorityError> {
    if report.verdict == Verdict::Valid && report.failures.is_empty() {
        return Ok(());
    }
    let failure = report.failures.first().map_or_else(
        || "no failure named".to_owned(),
        |failure| {
            format!(
                "event {}: {}: expected {}, found {}",
                failure.seq, failure.rule, failure.expected, failure.found
            )
        },
    );
    Err(AuthorityError::Ledger {
        verdict: report.verdict,
        failure,
    })
}

fn why_nothing(standing: &Standing<'_>) -> AuthorityError {
    let rejected = |approval: &Approval| AuthorityError::Rejected {
        principal: shown(approval.approver.principal.as_str()),
    };
    match (&standing.answered, &standing.decided) {
        (Some(answered), _) if answered.event.answer == Answer::Reject => rejected(answered.event),
        (Some(answered), _) if answered.void => AuthorityError::Voided,
        (None, Some(decided))
            if decided.void && decided.event.verdict == predicate::Verdict::Free =>
        {
            AuthorityError::Voided
        }
        _ => AuthorityError::Missing,
    }
}

/// A member of a binding: its name, what is allowed and what is bound.
type Term = (&'static str, String, String);

fn check_terms(terms: Vec<Term>) -> Result<(), AuthorityError> {
    let differs = terms
        .into_iter()
        .find(|(_, allowed, bound)| allowed != bound);
    differs.map_or(Ok(()), |(member, allowed, bound)| {
        Err(AuthorityError::OtherBinding {
            member,
            allowed: shown(&allowed),
            bound: shown(&bound),
        })
    })
}

/// What a person approved, member by member and by the digest of the whole. Taken apart without `..`, so that no member
/// can be forgotten.
fn approved(allowed: &BoundChange, binding: &Binding) -> Vec<Term> {
    let BoundChange {
        repository_id,
        host,
        pull_request,
        base_ref,
        merge_base,
        head_ref,
        head_commit,
        head_tree,
        count,
        change,
        merge_method,
        title,
        body,
        expires_at,
        sha256,
    } = allowed;
    let text = |member, allowed: &dyn ToString, bound: &dyn ToString| {
        (member, allowed.to_string(), bound.to_string())
    };
    vec![
        text("repository_id", repository_id, &binding.repository_id),
        text("host", host, &binding.host),
        text("pull_request", pull_request, &binding.pull_request),
        text("base_ref", base_ref, &binding.base_ref),
        text("merge_base", merge_base, &binding.merge_base),
        text("head_ref", head_ref, &binding.head_ref),
        text("head_commit", head_commit, &binding.head_commit),
        text("head_tree", head_tree, &binding.head_tree),
        text("change.count", count, &binding.change.count),
        text("change.digest", &change.sha256, &binding.change.digest),
        text(
            "merge_method",
            &method(*merge_method).as_str(),
            &binding.merge_method.as_str(),
        ),
        text("title", &title.sha256, &digest(&binding.title)),
        text("body", &body.sha256, &digest(&binding.body)),
        text("expires_at", &expires_at.0, &binding.expires_at.0),
        // The whole, byte for byte: this alone covers what the members above do not name.
        text("binding", sha256, &binding.digest()),
    ]
}

/// What a decision `free` and the proposal under it fix. Pull request, branch, method and expiry are signed by nobody
/// when nobody is asked.
fn free(standing: &Standing<'_>, decision: &PolicyDecision, binding: &Binding) -> Vec<Term> {
    let text = |member, allowed: &dyn ToString, bound: &dyn ToString| {
        (member, allowed.to_string(), bound.to_string())
    };
    let mut terms = vec![text(
        "repository_id",
        &decision.event.project.repository_id,
        &binding.repository_id,
    )];
    match &decision.target {
        Target::Commit { change, head } => terms.extend([
            text("change.algorithm", &change.algorithm, &CHANGE_SET_ALGORITHM),
            text("change.count", &change.count, &binding.change.count),
            text("change.digest", &change.sha256, &binding.change.digest),
            text("head_commit", &head.commit, &binding.head_commit),
            text("head_tree", &head.tree, &binding.head_tree),
        ]),
        Target::Files(_) => terms.push(text(
            "change",
            &"files without a commit",
            &binding.change.digest,
        )),
    }
    let Some(proposal) = standing.proposal.as_ref().map(|proposal| proposal.event) else {
        terms.push(text("proposal", &"none", &binding.change.digest));
        return terms;
    };
    let signed = |digest: Option<crate::attest::DigestRef>| {
        digest.map_or_else(|| "none".to_owned(), |digest| digest.sha256.to_string())
    };
    terms.extend([
        text("base_ref", &proposal.base.branch, &binding.base_ref),
        text("merge_base", &proposal.base.commit, &binding.merge_base),
        text("title", &signed(proposal.title), &digest(&binding.title)),
        text("body", &signed(proposal.body), &digest(&binding.body)),
    ]);
    terms
}

fn digest(text: &str) -> Sha256Digest {
    Sha256Digest::of(text.as_bytes())
}

const fn method(method: predicate::MergeMethod) -> MergeMethod {
    match method {
        predicate::MergeMethod::Merge => MergeMethod::Merge,
        predicate::MergeMethod::Squash => MergeMethod::Squash,
        predicate::MergeMethod::Rebase => MergeMethod::Rebase,
    }
}
