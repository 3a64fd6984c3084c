//! Making and delivering approval links.

use secrecy::SecretString;

use super::super::Stepped;
use super::super::work::{Work, expect, unread};
use crate::approve::{ApprovalRequest, ApprovalToken};
use crate::id::ApprovalId;
use crate::incident::{AuditEvent, Fact, NewLink, Outcome, StepError};
use crate::notify::{ApprovalLink, Notification};

/// Makes a link; older ones are revoked when it is committed. Its nonce is kept nowhere: it is computed again when it is needed.
pub(super) fn mint(work: Work<'_>) -> Stepped {
    let request = expect(work.snapshot.request(), "the approval request")?;
    let approval = ApprovalId::new(work.now, work.engine.entropy()?);
    let seal = work.engine.keys.credentials();
    let token = seal.link(&approval, &request.digest(), &request.principal);
    let seconds = i64::try_from(work.engine.settings.link_ttl.as_secs()).unwrap_or(i64::MAX);
    let link = NewLink {
        approval,
        token: token.hash(),
        request: request.digest(),
        principal: request.principal.clone(),
        issued_at: work.now,
        expires_at: work
            .now
            .plus_seconds(seconds)
            .min(request.binding.expires_at),
    };
    Ok(Outcome {
        link: Some(link),
        ..Outcome::default()
    })
}

/// Delivers a link to every notifier.
pub(super) async fn send(work: Work<'_>, approval: &ApprovalId) -> Stepped {
    let request = expect(work.snapshot.request(), "the approval request")?;
    let token = kept(&work, request, approval).await?.to_link_text();
    let link = expect(work.snapshot.link.as_ref(), "the approval link")?;
    let address = format!("{}/a/{}", work.engine.settings.public_url, token.as_str());
    let notification = Notification::approval_requested(
        work.snapshot.incident.clone(),
        work.project.id.clone(),
        format!("{}: approval is needed", request.binding.title),
        ApprovalLink {
            url: SecretString::from(address),
            digest: request.binding.change_digest(),
            expires_at: link.expires_at,
        },
    );
    let delivered = work.engine.notifiers.deliver(&notification).await;
    delivered.map_err(|error| StepError::retry(std::time::Duration::from_secs(2), error))?;
    work.engine.passed("link").await;
    let mut outcome = Outcome::fact(Fact::LinkSent {
        approval: approval.clone(),
    });
    if work.engine.notifiers.is_empty() {
        outcome.audit.push(AuditEvent {
            kind: "nobody-to-notify",
            detail: "no notifier is configured, so the approval link reached nobody; add one under `notify`, then `caretaker approval resend`"
                .to_owned(),
        });
    }
    Ok(outcome)
}

/// The nonces that a link for this question may have: one, but while the key from which they follow is rotated.
pub(super) fn nonces(
    work: &Work<'_>,
    request: &ApprovalRequest,
    approval: &ApprovalId,
) -> Vec<ApprovalToken> {
    let seal = work.engine.keys.credentials();
    seal.links(approval, &request.digest(), &request.principal)
}

/// The nonce of a link that was made, by whichever key.
async fn kept(
    work: &Work<'_>,
    request: &ApprovalRequest,
    approval: &ApprovalId,
) -> Result<ApprovalToken, StepError> {
    let store = &work.engine.store;
    for token in nonces(work, request, approval) {
        let known = store.approval_by_token(&token.hash(), work.now).await;
        if known.map_err(|error| unread(&error))?.is_some() {
            return Ok(token);
        }
    }
    Err(StepError::retry(
        std::time::Duration::from_secs(1),
        "the link was made with a key that is gone by now (credential.key); when that key was not rotated here, put the one in place that it was rotated to",
    ))
}
