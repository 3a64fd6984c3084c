//! Witnesses (C2SP tlog-witness): somebody else's machine signs a checkpoint if it extends the last one that it signed.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Response, StatusCode};
use url::Url;

use super::{Anchor, AnchorError, AnchorKind, LogReader, Receipt};
use crate::attest::text::shown;
use crate::clock::Millis;
use crate::https;
use crate::log::{
    LogKeyError, NoteSignature, SignatureType, SignedAt, SignedCheckpoint, TreeHash, VerifierKey,
};

/// How long one request may take, its answer included.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// How much of an answer is read, in bytes.
const MOST: usize = 16 * 1024;
/// How far the witness's clock may be from ours, in seconds.
const SKEW: i64 = 600;

/// Why a witness cannot be asked at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WitnessSetupError {
    /// Not a witness's key.
    #[error("setting up the witness {name}: {reason}; `caretaker witness init` prints its key")]
    Key {
        /// Its name in the configuration.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The HTTP client could not be made.
    #[error(
        "setting up the witness {name}: the HTTPS client cannot be made ({reason}); are root certificates installed (Debian: ca-certificates)?"
    )]
    Client {
        /// Its name in the configuration.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// A witness. A receipt is the line of its cosignature, with its line feed.
pub struct Witness {
    client: reqwest::Client,
    name: String,
    /// Without a slash at its end.
    base: String,
    key: VerifierKey,
    deadline: Duration,
}

impl Witness {
    /// A witness by its name in the configuration, its address and its key, `NAME+ID+KEY`. Each request is given up after
    /// `deadline`, usually [`DEADLINE`].
    ///
    /// # Errors
    /// The key is not a witness's, or there are no root certificates.
    pub fn new(
        name: &str,
        url: &Url,
        key: &str,
        deadline: Duration,
    ) -> Result<Self, WitnessSetupError> {
        let name = name.to_owned();
        let unusable = |reason: String| WitnessSetupError::Key {
            name: name.clone(),
            reason,
        };
        let key = key.parse::<VerifierKey>();
        let key = key.map_err(|error: LogKeyError| unusable(error.to_string()))?;
        if key.signature_type() != SignatureType::Witness {
            return Err(unusable("it is the key of a log".to_owned()));
        }
        let client = https::client(url).map_err(|error| WitnessSetupError::Client {
            name: name.clone(),
            reason: https::words(error),
        })?;
        Ok(Self {
            client,
            name,
            base: url.as_str().trim_end_matches('/').to_owned(),
            key,
            deadline,
        })
    }
}

#[async_trait]
impl Anchor for Witness {
    fn kind(&self) -> AnchorKind {
        AnchorKind::Witness
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn confirm(
        &self,
        checkpoint: &SignedCheckpoint,
        receipt: &Receipt,
    ) -> Result<(), AnchorError> {
        let asking = Asking {
            witness: self,
            checkpoint,
            action: format!(
                "looking at the kept cosignature of the witness {}",
                self.name
            ),
        };
        let text = str::from_utf8(&receipt.bytes).unwrap_or_default();
        asking.own_lines(text).map(drop)
    }

    async fn anchor(
        &self,
        checkpoint: &SignedCheckpoint,
        log: &dyn LogReader,
        last: Option<&Receipt>,
        now: Millis,
    ) -> Result<Receipt, AnchorError> {
        let size = checkpoint.claimed().head().size();
        let asking = Asking {
            witness: self,
            checkpoint,
            action: format!(
                "showing the checkpoint of {size} leaves to the witness {} at {}",
                self.name, self.base
            ),
        };
        let believed = last.map_or(0, |last| last.size);
        // What was anchored beyond this checkpoint has its say in the witness's answer.
        let old = if believed > size { 0 } else { believed };
        let cosigned = match asking.ask(log, old).await? {
            Reply::Cosigned(cosigned) => cosigned,
            Reply::Holds(held) => asking.again(log, old, held).await?,
        };
        // Break it: leave this out; a cosignature of last year then counts as one of now
        // (`anchor::witness::a_cosignature_far_from_now_is_refused`).
        if !near(cosigned.seconds, now) {
            return Err(asking.refused(
                format!(
                    "it states the time {}, and it is {now}",
                    told(cosigned.seconds)
                ),
                "set the clocks of both machines",
            ));
        }
        Ok(Receipt {
            size,
            bytes: format!("{}\n", cosigned.line).into_bytes(),
        })
    }
}

/// A witness answered in its own words.
enum Reply {
    /// It cosigned.
    Cosigned(CosignatureLine),
    /// Its last checkpoint has so many leaves.
    Holds(u64),
}

/// A line that verified, and the time that it states.
struct CosignatureLine {
    line: NoteSignature,
    seconds: u64,
}

/// One checkpoint on its way to one witness.
struct Asking<'a> {
    witness: &'a Witness,
    checkpoint: &'a SignedCheckpoint,
    action: String,
}

impl Asking<'_> {
    fn size(&self) -> u64 {
        self.checkpoint.claimed().head().size()
    }

    /// The witness holds another size than was taken for its last. Once more from there; what it says then is the last word.
    async fn again(
        &self,
        log: &dyn LogReader,
        asked: u64,
        held: u64,
    ) -> Result<CosignatureLine, AnchorError> {
        let size = self.size();
        // Break it: take it for unanswered; a log that was cut is then a bad moment
        // (`anchor::witness::a_log_that_was_rolled_back_contradicts_its_witness`).
        if held > size {
            return Err(self.beyond(log, held).await);
        }
        let forked = || {
            let evidence = format!("the witness has cosigned another tree of {size} leaves");
            self.contradiction(evidence)
        };
        if held == asked {
            return Err(if held == size {
                forked()
            } else {
                self.unlike(&format!(
                    "a conflict over the size {held} that it was given"
                ))
            });
        }
        match self.ask(log, held).await? {
            Reply::Cosigned(cosigned) => Ok(cosigned),
            // Break it: drop this; a second tree of one size is then taken for a race
            // (`anchor::witness::a_log_that_forks_contradicts_its_witness`).
            Reply::Holds(now) if now == held && held == size => Err(forked()),
            Reply::Holds(now) if now > size => Err(self.beyond(log, now).await),
            Reply::Holds(now) => Err(self.unanswered(format!(
                "the witness said that it holds {held} leaves, and then {now}"
            ))),
        }
    }

    /// The witness holds more leaves than this checkpoint has: the log was cut, or somebody showed it a later checkpoint meanwhile.
    /// A log that was cut and has grown anew will contradict itself with its next checkpoint.
    async fn beyond(&self, log: &dyn LogReader, held: u64) -> AnchorError {
        let size = self.size();
        // Break it: leave this out; two workers at once then look like a log that was cut
        // (`anchor::witness::a_later_checkpoint_that_was_shown_meanwhile_is_no_contradiction`).
        if log.consistency(size.max(1), held).await.is_ok() {
            return self.unanswered(format!(
                "the witness has cosigned {held} leaves, which the log has by now: a later checkpoint was shown meanwhile"
            ));
        }
        // A log that cannot be read at all says nothing.
        if size > 1
            && let Err(unread) = log.consistency(1, size).await
        {
            return unread;
        }
        self.contradiction(format!(
            "the witness has cosigned {held} leaves, and this checkpoint has {size}"
        ))
    }

    async fn ask(&self, log: &dyn LogReader, old: u64) -> Result<Reply, AnchorError> {
        let size = self.size();
        let proof = if old == 0 || old == size {
            Vec::new()
        } else {
            log.consistency(old, size).await?
        };
        let sent = self.send(body(old, &proof, self.checkpoint));
        tokio::time::timeout(self.witness.deadline, sent)
            .await
            .unwrap_or_else(|_| {
                let milliseconds = self.witness.deadline.as_millis();
                Err(self.unanswered(format!("no answer within {milliseconds} ms")))
            })
    }

    async fn send(&self, body: String) -> Result<Reply, AnchorError> {
        let url = format!("{}/add-checkpoint", self.witness.base);
        let request = self.witness.client.post(url).body(body);
        let unanswered = |error: reqwest::Error| self.unanswered(shown(&https::words(error)));
        let mut response = request.send().await.map_err(unanswered)?;
        let mut answer = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(unanswered)? {
            // Break it: leave the bound out; a witness that never ends fills the memory
            // (`anchor::witness::a_witness_that_answers_anything_else_is_not_believed`).
            if piece.len() > MOST.saturating_sub(answer.len()) {
                return Err(self.unlike(&format!("more than {MOST} bytes")));
            }
            answer.extend_from_slice(&piece);
        }
        self.read(&response, &answer)
    }

    fn read(&self, response: &Response, answer: &[u8]) -> Result<Reply, AnchorError> {
        let status = response.status();
        let text = str::from_utf8(answer);
        let said = || match text.map(str::trim_end) {
            Ok("") => "and nothing else".to_owned(),
            Ok(text) => shown(text),
            Err(_) => "and bytes that are no text".to_owned(),
        };
        match status {
            StatusCode::OK => {
                let text = text.map_err(|_| self.unlike("bytes that are no text"))?;
                self.own_lines(text).map(Reply::Cosigned)
            }
            StatusCode::CONFLICT => {
                let kind = response.headers().get(CONTENT_TYPE);
                let size = text.ok().and_then(|text| number(text.strip_suffix('\n')?));
                match (kind.map(HeaderValue::as_bytes), size) {
                    (Some(b"text/x.tlog.size"), Some(size)) => Ok(Reply::Holds(size)),
                    _ => Err(self.unlike(&format!("status 409 without a size, {}", said()))),
                }
            }
            StatusCode::UNPROCESSABLE_ENTITY => Err(self.contradiction(format!(
                "the witness holds another history, since the proof does not lead from there to here ({})",
                said()
            ))),
            StatusCode::NOT_FOUND => Err(self.refused(
                format!("it does not know the log, or it is none ({})", said()),
                "give it the log's key (`caretaker log keys`), and the configuration its right address",
            )),
            StatusCode::FORBIDDEN => Err(self.refused(
                format!("it does not trust the log's key ({})", said()),
                "give it the log's present key as `caretaker log keys` prints it",
            )),
            _ if https::may_pass(status) => Err(self.unanswered(format!("status {status}"))),
            _ => Err(self.unlike(&format!("status {status}, {}", said()))),
        }
    }

    /// The last line of the witness's key; each of its lines has to verify, whatever other lines there are.
    fn own_lines(&self, text: &str) -> Result<CosignatureLine, AnchorError> {
        let key = &self.witness.key;
        let whole = text.strip_suffix('\n');
        let whole = whole.ok_or_else(|| self.unlike("a last line without its end"))?;
        let lines = whole.split('\n').map(NoteSignature::parse);
        let lines: Vec<_> = lines
            .collect::<Result<_, _>>()
            .map_err(|error| self.unlike(&error.to_string()))?;
        let own = |line: &NoteSignature| (line.name(), line.hash()) == (key.name(), key.hash());
        let mut found = None;
        for line in lines.into_iter().filter(own) {
            let seconds = self.verified(line.clone())?;
            found = Some(CosignatureLine { line, seconds });
        }
        found.ok_or_else(|| {
            self.refused(
                format!("none of its lines is of the key {}+{}", key.name(), key.hash()),
                "check the key of the witness in the configuration; `caretaker witness init` printed it",
            )
        })
    }

    /// The time that the line states, in seconds since 1970, if it is the witness's word for this very checkpoint.
    fn verified(&self, line: NoteSignature) -> Result<u64, AnchorError> {
        let mut cosigned = self.checkpoint.clone();
        let wrong = |reason: String| {
            self.refused(
                reason,
                "check the key of the witness in the configuration; if it is right, the witness or the way to it is not to be trusted",
            )
        };
        cosigned
            .add(line)
            .map_err(|error| wrong(error.to_string()))?;
        // Break it: return the time unverified; anybody on the way can then vouch for anything
        // (`anchor::witness::only_the_witness_s_own_word_for_this_checkpoint_counts`).
        let signers = cosigned
            .note()
            .verify(std::slice::from_ref(&self.witness.key));
        match signers.map_err(|error| wrong(error.to_string()))?.first() {
            Some(signer) => match signer.at {
                SignedAt::Seconds(seconds) => Ok(seconds),
                SignedAt::Untimed => Err(wrong("a signature without a time".to_owned())),
            },
            None => Err(wrong("no signature".to_owned())),
        }
    }

    fn unanswered(&self, reason: String) -> AnchorError {
        AnchorError::Unanswered {
            action: self.action.clone(),
            reason,
        }
    }

    fn refused(&self, reason: String, mend: &str) -> AnchorError {
        AnchorError::Refused {
            action: self.action.clone(),
            reason,
            mend: mend.to_owned(),
        }
    }

    /// It does not speak as a witness does.
    fn unlike(&self, found: &str) -> AnchorError {
        self.refused(
            format!("no witness answers this: {found}"),
            "check the address; `/add-checkpoint` follows it",
        )
    }

    fn contradiction(&self, evidence: String) -> AnchorError {
        AnchorError::Contradiction {
            action: self.action.clone(),
            evidence,
        }
    }
}

/// The body of `add-checkpoint`.
fn body(old: u64, proof: &[TreeHash], checkpoint: &SignedCheckpoint) -> String {
    use std::fmt::Write as _;
    let mut body = format!("old {old}\n");
    for hash in proof {
        // Writing to a string does not fail.
        writeln!(body, "{hash}").unwrap_or(());
    }
    write!(body, "\n{checkpoint}").unwrap_or(());
    body
}

/// A decimal number in its one spelling.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn near(seconds: u64, now: Millis) -> bool {
    i64::try_from(seconds)
        .is_ok_and(|seconds| seconds.abs_diff(now.0 / 1000) <= SKEW.unsigned_abs())
}

fn told(seconds: u64) -> Millis {
    Millis(
        i64::try_from(seconds)
            .unwrap_or(i64::MAX)
            .saturating_mul(1000),
    )
}
