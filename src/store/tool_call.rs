//! Calls of tools that a person is asked about: one queue for every process, answered once, expiring finally.

use serde::Serialize;
use sqlx::any::AnyRow;

use super::call_pattern::NewPattern;
use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{AlwaysId, OrganisationId, ToolCallId};
use crate::tool_gate::always_allow::Pattern;
use crate::tool_gate::call_pattern::CallOrigin;
use crate::tool_gate::decider::Decider;

statements! {
    /// Puts a call into the queue, unless it is full.
    ASK = "INSERT INTO tool_call (id, organisation, session, task, role, tool, arguments, arguments_sha256, nonce, created_at, \
        expires_at, origin) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, CAST($10 AS BIGINT), CAST($11 AS BIGINT), $13 WHERE \
        (SELECT COUNT(*) FROM tool_call WHERE organisation = $2 AND decision IS NULL AND expires_at > $10) < $12";
    /// What waits.
    PENDING_CALLS = "SELECT id, session, task, role, tool, arguments, arguments_sha256, nonce, created_at, expires_at, decision, decider, \
        reason, resolved_at, origin FROM tool_call WHERE organisation = $1 AND decision IS NULL AND expires_at > $2 \
        ORDER BY created_at, id LIMIT 1000";
    /// One of them, whatever became of it.
    TOOL_CALL = "SELECT id, session, task, role, tool, arguments, arguments_sha256, nonce, created_at, expires_at, decision, decider, \
        reason, resolved_at, origin FROM tool_call WHERE organisation = $1 AND id = $2";
    /// The one statement that answers. All of its conditions stand in its predicate: of any number of simultaneous answers one
    /// finds them true.
    RESOLVE = "UPDATE tool_call SET decision = $1, decider = $2, reason = $3, resolved_at = $4 WHERE organisation = $5 AND id = $6 \
        AND nonce = $7 AND decision IS NULL AND expires_at > $4 RETURNING tool, arguments, arguments_sha256, session, task";
    /// The one that ends a question that nobody answered.
    EXPIRE = "UPDATE tool_call SET decision = 'reject', decider = $1, reason = $2, resolved_at = $3 WHERE organisation = $4 \
        AND id = $5 AND decision IS NULL AND expires_at <= $3";
    /// Those whose time is over.
    OVERDUE = "SELECT id FROM tool_call WHERE organisation = $1 AND decision IS NULL AND expires_at <= $2 ORDER BY expires_at, id LIMIT 100";
    /// Allows a pattern from now on.
    ALWAYS = "INSERT INTO always_allow (id, organisation, tool, arguments, arguments_sha256, decider, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (organisation, tool, arguments_sha256) WHERE revoked_at IS NULL DO NOTHING";
    /// Whether a call is one that is always allowed.
    IS_ALWAYS = "SELECT id FROM always_allow WHERE organisation = $1 AND tool = $2 AND arguments_sha256 = $3 AND revoked_at IS NULL";
    /// The patterns.
    ALWAYS_LIST = "SELECT id, tool, arguments, arguments_sha256, decider, created_at, revoked_by, revoked_at FROM always_allow \
        WHERE organisation = $1 ORDER BY created_at, id LIMIT 1000";
    /// Takes one back.
    REVOKE_ALWAYS = "UPDATE always_allow SET revoked_at = $1, revoked_by = $2 WHERE organisation = $3 AND id = $4 AND revoked_at IS NULL";
}

/// Questions that may wait at once in an organisation: more are an agent out of hand, and nobody reads them.
const MOST_PENDING: i64 = 1_000;
/// The longest arguments that are shown, in bytes; of longer ones the beginning.
const LONGEST_SHOWN: usize = 16 << 10;
/// The longest reason, in bytes.
const LONGEST_REASON: usize = 500;

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallDecision {
    /// This once.
    Allow,
    /// No.
    Reject,
    /// This and every later call of the tool with the same arguments.
    Always,
}

/// A call that a person is asked about.
#[derive(Debug, Clone)]
pub struct NewCall<'a> {
    /// Its name.
    pub id: ToolCallId,
    /// The session.
    pub session: &'a str,
    /// Its task.
    pub task: &'a str,
    /// The role of the agent.
    pub role: &'a str,
    /// The tool with its arguments.
    pub pattern: Pattern,
    /// The arguments as text.
    pub arguments: &'a str,
    /// What an answer has to repeat: 32 random digits.
    pub nonce: &'a str,
    /// How long an answer is waited for, in seconds.
    pub ttl_seconds: u32,
    /// What it belongs to.
    pub origin: &'a CallOrigin,
}

/// A call as it stands in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Its name.
    pub id: ToolCallId,
    /// The session.
    pub session: String,
    /// Its task.
    pub task: String,
    /// The role of the agent.
    pub role: String,
    /// The tool.
    pub tool: String,
    /// The arguments as a person is shown them.
    pub arguments: String,
    /// SHA-256 of all of them.
    pub arguments_digest: Sha256Digest,
    /// What an answer has to repeat.
    pub nonce: String,
    /// When it was asked.
    pub created_at: Millis,
    /// When it is refused if nobody answers.
    pub expires_at: Millis,
    /// The answer.
    pub resolution: Option<Resolution>,
    /// What it belongs to.
    pub origin: CallOrigin,
}

/// An answer that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What was decided.
    pub decision: CallDecision,
    /// By whom.
    pub decider: Decider,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub at: Millis,
}

/// An answer to a call.
#[derive(Debug, Clone, Copy)]
pub struct CallAnswer<'a> {
    /// What was decided.
    pub decision: CallDecision,
    /// The call's nonce, as whoever answers repeats it.
    pub nonce: Option<&'a str>,
    /// By whom.
    pub decider: &'a Decider,
    /// Why.
    pub reason: Option<&'a str>,
    /// With `Always`: the pattern that is allowed instead of exactly this call. Whoever answers has looked at it
    /// ([`crate::tool_gate::call_pattern::CallPattern`]).
    pub pattern: Option<&'a str>,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Resolved {
    /// It counts.
    Done(Box<ToolCall>),
    /// There is no such call.
    Unknown,
    /// It repeats no nonce, or another one.
    WrongNonce,
    /// It was answered already, or its time is over. Nothing was written.
    Gone,
}

/// A pattern that is always allowed, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlwaysAllowed {
    /// Its name.
    pub id: AlwaysId,
    /// The tool.
    pub tool: String,
    /// The arguments as a person is shown them.
    pub arguments: String,
    /// SHA-256 of all of them.
    pub arguments_digest: Sha256Digest,
    /// Who allowed it.
    pub decider: Decider,
    /// When.
    pub created_at: Millis,
    /// Who took it back and when.
    pub revoked: Option<(Decider, Millis)>,
}

/// What is put on record about an answer before it counts. An error leaves the call as it was.
pub type Recording<'a> = &'a mut (dyn FnMut(&ToolCall) -> Result<(), String> + Send);

impl Store {
    /// Asks about a call.
    ///
    /// # Errors
    /// The database; or too many questions wait already.
    pub async fn ask_about_call(
        &self,
        organisation: &OrganisationId,
        call: &NewCall<'_>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("asking about a tool call").await?;
        let ask = sqlx::query(ASK)
            .bind(call.id.as_str())
            .bind(organisation.as_str())
            .bind(value::exact("the session's name", call.session)?)
            .bind(value::exact("the task's name", call.task)?)
            .bind(value::exact("the role", call.role)?)
            .bind(value::exact("the tool's name", &call.pattern.tool)?)
            .bind(value::message(shown(call.arguments)).into_owned())
            .bind(call.pattern.arguments.to_string())
            .bind(call.nonce)
            .bind(now.0)
            .bind(now.plus_seconds(i64::from(call.ttl_seconds)).0)
            .bind(MOST_PENDING)
            .bind(value::json("where it is made", call.origin)?);
        if work.execute(ask).await? == 0 {
            return Err(StoreError::Refused {
                doing: work.doing,
                reason: format!("{MOST_PENDING} calls wait for an answer already"),
            });
        }
        work.commit().await
    }

    /// The calls that wait for an answer, oldest first.
    pub async fn pending_calls(
        &self,
        organisation: &OrganisationId,
        now: Millis,
    ) -> Result<Vec<ToolCall>, StoreError> {
        let mut work = self.reading("listing the tool calls that wait").await?;
        let pending = sqlx::query(PENDING_CALLS)
            .bind(organisation.as_str())
            .bind(now.0);
        work.all(pending).await?.iter().map(from_row).collect()
    }

    /// One call, whatever became of it.
    pub async fn tool_call(
        &self,
        organisation: &OrganisationId,
        id: &ToolCallId,
    ) -> Result<Option<ToolCall>, StoreError> {
        let mut work = self.reading("looking at a tool call").await?;
        work.tool_call(organisation, id).await
    }

    /// Answers a call, once. With `Always` the pattern is kept in the same transaction. `record` is told what is about to count.
    pub async fn resolve_call(
        &self,
        organisation: &OrganisationId,
        id: &ToolCallId,
        answer: &CallAnswer<'_>,
        pattern: &AlwaysId,
        now: Millis,
        record: Recording<'_>,
    ) -> Result<Resolved, StoreError> {
        if answer
            .reason
            .is_some_and(|reason| reason.len() > LONGEST_REASON)
        {
            return Err(StoreError::Refused {
                doing: "answering a tool call",
                reason: format!("the reason has more than {LONGEST_REASON} bytes"),
            });
        }
        let mut work = self.writing("answering a tool call").await?;
        let Some(before) = work.tool_call(organisation, id).await? else {
            return Ok(Resolved::Unknown);
        };
        // Break it: take the stored nonce where none was sent (`store::tool_call::an_answer_repeats_the_nonce`).
        let Some(nonce) = answer.nonce else {
            return Ok(Resolved::WrongNonce);
        };
        if before.nonce != nonce {
            return Ok(Resolved::WrongNonce);
        }
        let decider = value::json("the decider", answer.decider)?;
        let resolve = sqlx::query(RESOLVE)
            .bind(value::spelling("the decision", &answer.decision)?)
            .bind(&decider)
            .bind(
                answer
                    .reason
                    .map(|reason| value::message(reason).into_owned()),
            )
            .bind(now.0)
            .bind(organisation.as_str())
            .bind(id.as_str())
            .bind(nonce);
        // Break it: answer although none was written (`store::tool_call::one_of_many_answers_counts`).
        if work.optional(resolve).await?.is_none() {
            return Ok(Resolved::Gone);
        }
        if answer.decision == CallDecision::Always {
            match answer.pattern {
                None => {
                    work.always(organisation, pattern, &before, &decider, now)
                        .await?;
                }
                Some(text) => {
                    let new = NewPattern {
                        id: pattern,
                        scope: &before.origin.scope,
                        tool: &before.tool,
                        pattern: text,
                        decider: &decider,
                    };
                    work.allow_pattern(organisation, &new, now).await?;
                }
            }
        }
        let Some(call) = work.tool_call(organisation, id).await? else {
            return Ok(Resolved::Unknown);
        };
        // What is decided without being on record has no author; so first the record.
        record(&call).map_err(|reason| StoreError::Refused {
            doing: work.doing,
            reason,
        })?;
        work.commit().await?;
        Ok(Resolved::Done(Box::new(call)))
    }

    /// Ends a question that nobody answered in time: a refusal, by software, and final. The call as it stands then.
    pub async fn expire_call(
        &self,
        organisation: &OrganisationId,
        id: &ToolCallId,
        decider: &Decider,
        now: Millis,
        record: Recording<'_>,
    ) -> Result<Option<ToolCall>, StoreError> {
        let mut work = self.writing("ending a tool call's question").await?;
        let expire = sqlx::query(EXPIRE)
            .bind(value::json("the decider", decider)?)
            .bind("nobody answered in time")
            .bind(now.0)
            .bind(organisation.as_str())
            .bind(id.as_str());
        let ended = work.execute(expire).await? == 1;
        let call = work.tool_call(organisation, id).await?;
        if let Some(call) = call.as_ref().filter(|_| ended) {
            record(call).map_err(|reason| StoreError::Refused {
                doing: work.doing,
                reason,
            })?;
            work.commit().await?;
        }
        Ok(call)
    }

    /// The calls whose time is over and that nobody has ended: their agents are gone.
    pub async fn overdue_calls(
        &self,
        organisation: &OrganisationId,
        now: Millis,
    ) -> Result<Vec<ToolCallId>, StoreError> {
        let mut work = self.reading("looking for overdue tool calls").await?;
        let overdue = sqlx::query(OVERDUE).bind(organisation.as_str()).bind(now.0);
        let rows = work.all(overdue).await?;
        rows.iter().map(|row| value::parsed(row, "id")).collect()
    }

    /// Whether a person always allows this call: the pattern's name.
    pub async fn always_allowed(
        &self,
        organisation: &OrganisationId,
        pattern: &Pattern,
    ) -> Result<Option<AlwaysId>, StoreError> {
        let mut work = self.reading("looking for an always-allow pattern").await?;
        let found = sqlx::query(IS_ALWAYS)
            .bind(organisation.as_str())
            .bind(value::exact("the tool's name", &pattern.tool)?)
            .bind(pattern.arguments.to_string());
        let row = work.optional(found).await?;
        row.map(|row| value::parsed(&row, "id")).transpose()
    }

    /// Every pattern, oldest first.
    pub async fn always_list(
        &self,
        organisation: &OrganisationId,
    ) -> Result<Vec<AlwaysAllowed>, StoreError> {
        let mut work = self.reading("listing the always-allow patterns").await?;
        let rows = work
            .all(sqlx::query(ALWAYS_LIST).bind(organisation.as_str()))
            .await?;
        rows.iter().map(pattern_from_row).collect()
    }

    /// Takes a pattern back. False when there is none that is in force.
    pub async fn revoke_always(
        &self,
        organisation: &OrganisationId,
        id: &AlwaysId,
        decider: &Decider,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let mut work = self.writing("taking back an always-allow pattern").await?;
        let revoke = sqlx::query(REVOKE_ALWAYS)
            .bind(now.0)
            .bind(value::json("the decider", decider)?)
            .bind(organisation.as_str())
            .bind(id.as_str());
        let revoked = work.execute(revoke).await? == 1;
        work.commit().await?;
        Ok(revoked)
    }
}

impl Work {
    async fn tool_call(
        &mut self,
        organisation: &OrganisationId,
        id: &ToolCallId,
    ) -> Result<Option<ToolCall>, StoreError> {
        let look = sqlx::query(TOOL_CALL)
            .bind(organisation.as_str())
            .bind(id.as_str());
        let row = self.optional(look).await?;
        row.as_ref().map(from_row).transpose()
    }

    async fn always(
        &mut self,
        organisation: &OrganisationId,
        id: &AlwaysId,
        call: &ToolCall,
        decider: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let always = sqlx::query(ALWAYS)
            .bind(id.as_str())
            .bind(organisation.as_str())
            .bind(&call.tool)
            .bind(&call.arguments)
            .bind(call.arguments_digest.to_string())
            .bind(decider)
            .bind(now.0);
        self.execute(always).await.map(|_| ())
    }
}

fn from_row(row: &AnyRow) -> Result<ToolCall, StoreError> {
    let decision: Option<CallDecision> = value::optional_word(row, "decision")?;
    let resolution = match decision {
        Some(decision) => Some(Resolution {
            decision,
            decider: value::document(row, "decider")?,
            reason: value::optional_text(row, "reason")?,
            at: Millis(value::integer(row, "resolved_at")?),
        }),
        None => None,
    };
    Ok(ToolCall {
        id: value::parsed(row, "id")?,
        session: value::text(row, "session")?,
        task: value::text(row, "task")?,
        role: value::text(row, "role")?,
        tool: value::text(row, "tool")?,
        arguments: value::text(row, "arguments")?,
        arguments_digest: value::parsed(row, "arguments_sha256")?,
        nonce: value::text(row, "nonce")?,
        created_at: Millis(value::integer(row, "created_at")?),
        expires_at: Millis(value::integer(row, "expires_at")?),
        resolution,
        origin: value::document(row, "origin")?,
    })
}

fn pattern_from_row(row: &AnyRow) -> Result<AlwaysAllowed, StoreError> {
    let revoked = match value::optional_integer(row, "revoked_at")? {
        Some(at) => Some((value::document(row, "revoked_by")?, Millis(at))),
        None => None,
    };
    Ok(AlwaysAllowed {
        id: value::parsed(row, "id")?,
        tool: value::text(row, "tool")?,
        arguments: value::text(row, "arguments")?,
        arguments_digest: value::parsed(row, "arguments_sha256")?,
        decider: value::document(row, "decider")?,
        created_at: Millis(value::integer(row, "created_at")?),
        revoked,
    })
}

/// The beginning of long arguments, cut at a character.
fn shown(arguments: &str) -> &str {
    let mut end = arguments.len().min(LONGEST_SHOWN);
    while !arguments.is_char_boundary(end) {
        end -= 1;
    }
    arguments.get(..end).unwrap_or_default()
}
