//! What an auditor asks of witnesses, as a file (C2SP tlog-policy): logs, witnesses, groups of them, and a quorum.
//!
//! It is asked beside everything else, so that a file can only make a verdict worse.

use std::collections::BTreeSet;

use thiserror::Error;

use super::checkpoint::SignedCheckpoint;
use super::encoding::from_decimal;
use super::key::{KeyName, LogKeyError, SignatureType, VerifierKey};
use super::note::{NoteError, SignedAt};
use super::policy::Cosigned;
use crate::attest::keys::KeyId;
use crate::attest::text::shown;

/// The longest file, in bytes.
pub const MAX_POLICY: usize = 65_536;
/// The most logs, witnesses, and groups, of each.
const MOST: usize = 64;

/// Why a file is no policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuditorPolicyError {
    /// Too long.
    #[error("a policy of {length} bytes: at most {MAX_POLICY} are read")]
    TooLong {
        /// Bytes.
        length: usize,
    },
    /// A byte that is not text.
    #[error(
        "line {line} of the policy has the control character {byte:#04x}; write it with tabs, spaces and line feeds alone"
    )]
    Control {
        /// From 1.
        line: usize,
        /// The byte.
        byte: u8,
    },
    /// The last line is cut.
    #[error("the policy does not end in a line feed; it may have been cut off")]
    Cut,
    /// A line of another form.
    #[error("line {line} of the policy: {expected} was expected, found {found}")]
    Line {
        /// From 1.
        line: usize,
        /// What would have been right.
        expected: &'static str,
        /// What was found, made printable.
        found: String,
    },
    /// Not a key.
    #[error("line {line} of the policy: {reason}")]
    Key {
        /// From 1.
        line: usize,
        /// Why not.
        reason: LogKeyError,
    },
    /// One key in two places.
    #[error(
        "line {line} of the policy: the key {keyid} stands there a second time; each counts once, under one name"
    )]
    Repeated {
        /// From 1.
        line: usize,
        /// The key.
        keyid: KeyId,
    },
    /// More than is read.
    #[error("line {line} of the policy: more than {MOST} of a kind")]
    TooMany {
        /// From 1.
        line: usize,
    },
    /// No quorum.
    #[error("the policy has no line `quorum`; write `quorum none` if no witness is asked for")]
    NoQuorum,
}

/// Why a checkpoint does not meet a policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unmet {
    /// A line of a known key that is not its signature: somebody changed it.
    #[error(transparent)]
    Signature(NoteError),
    /// A log that the policy does not list, or none of whose listed keys signed.
    #[error("no key that the policy lists for the log {origin} signed the checkpoint")]
    Log {
        /// The checkpoint's log.
        origin: KeyName,
    },
    /// Not the witnesses that are asked for.
    #[error("the quorum of the policy is not met: {found} of its {known} witnesses cosigned")]
    Quorum {
        /// Witnesses that did.
        found: usize,
        /// Witnesses listed.
        known: usize,
    },
}

/// Who is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Witness(usize),
    Group(usize),
}

/// So many of these.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    threshold: usize,
    members: Vec<Member>,
}

/// An auditor's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditorPolicy {
    logs: Vec<VerifierKey>,
    witnesses: Vec<VerifierKey>,
    groups: Vec<Group>,
    quorum: Quorum,
}

/// Who has to have cosigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quorum {
    Nobody,
    Member(Member),
}

impl AuditorPolicy {
    /// Reads the file. Names are bytes, whatever they spell; addresses are of no meaning here.
    ///
    /// # Errors
    /// Anything that C2SP tlog-policy does not say, the first of it.
    pub fn parse(bytes: &[u8]) -> Result<Self, AuditorPolicyError> {
        if bytes.len() > MAX_POLICY {
            return Err(AuditorPolicyError::TooLong {
                length: bytes.len(),
            });
        }
        let text = bytes.strip_suffix(b"\n").ok_or(AuditorPolicyError::Cut)?;
        let mut reading = Reading::default();
        for line in text.split(|byte| *byte == b'\n') {
            reading.line += 1;
            reading.take(line)?;
        }
        let quorum = reading.quorum.ok_or(AuditorPolicyError::NoQuorum)?;
        Ok(Self {
            logs: reading.logs,
            witnesses: reading.witnesses,
            groups: reading.groups,
            quorum,
        })
    }

    /// Which of its witnesses cosigned a checkpoint, if that is enough, and if a log that it lists signed; it may list none.
    ///
    /// # Errors
    /// It is not met, or a line of a known key does not verify.
    pub fn judge(&self, signed: &SignedCheckpoint) -> Result<Vec<Cosigned>, Unmet> {
        let origin = signed.claimed().origin();
        let logs = self.logs.iter().filter(|key| key.name() == origin);
        let keys: Vec<_> = logs.chain(&self.witnesses).cloned().collect();
        let signers = match signed.note().verify(&keys) {
            Ok(signers) => signers,
            Err(NoteError::Unsigned) => Vec::new(),
            Err(error) => return Err(Unmet::Signature(error)),
        };
        let by_log = signers
            .iter()
            .any(|signer| signer.key.signature_type() == SignatureType::Log);
        // Break it: leave this out and `audit::cosigned::a_log_that_the_policy_does_not_list_is_not_vouched_for` fails.
        if !self.logs.is_empty() && !by_log {
            return Err(Unmet::Log {
                origin: origin.clone(),
            });
        }
        let cosigned = signers.iter().filter_map(|signer| match signer.at {
            SignedAt::Untimed => None,
            SignedAt::Seconds(seconds) => Some(Cosigned {
                witness: signer.key.name().clone(),
                seconds,
            }),
        });
        let cosigned: Vec<_> = cosigned.collect();
        let witnessed = self.witnesses.iter();
        let witnessed: Vec<bool> = witnessed
            .map(|key| signers.iter().any(|signer| signer.key == key))
            .collect();
        // Break it: answer true always; a bundle that no witness has seen is then valid
        // (`audit::cosigned::a_quorum_that_is_not_met_is_never_valid`).
        if self.is_met(&witnessed) {
            Ok(cosigned)
        } else {
            Err(Unmet::Quorum {
                found: cosigned.len(),
                known: self.witnesses.len(),
            })
        }
    }

    fn is_met(&self, witnessed: &[bool]) -> bool {
        let mut groups: Vec<bool> = Vec::new();
        let holds = |member: Member, groups: &[bool]| match member {
            Member::Witness(index) => witnessed.get(index) == Some(&true),
            // Those before it, which are all that it can name.
            Member::Group(index) => groups.get(index) == Some(&true),
        };
        for group in &self.groups {
            let members = group.members.iter();
            let count = members.filter(|member| holds(**member, &groups)).count();
            groups.push(count >= group.threshold);
        }
        match self.quorum {
            Quorum::Nobody => true,
            Quorum::Member(quorum) => holds(quorum, &groups),
        }
    }
}

/// A file that is being read.
#[derive(Debug, Default)]
struct Reading {
    line: usize,
    logs: Vec<VerifierKey>,
    witnesses: Vec<VerifierKey>,
    groups: Vec<Group>,
    names: Vec<(Vec<u8>, Member)>,
    /// Names that are members of a group.
    grouped: BTreeSet<Vec<u8>>,
    quorum: Option<Quorum>,
}

impl Reading {
    fn take(&mut self, line: &[u8]) -> Result<(), AuditorPolicyError> {
        let control = |byte: &&u8| (**byte < 0x20 && **byte != b'\t') || **byte == 0x7f;
        if let Some(byte) = line.iter().find(control) {
            let (line, byte) = (self.line, *byte);
            return Err(AuditorPolicyError::Control { line, byte });
        }
        let items = line.split(|byte| matches!(byte, b' ' | b'\t'));
        let items: Vec<&[u8]> = items.filter(|item| !item.is_empty()).collect();
        match items.as_slice() {
            [] => Ok(()),
            [first, ..] if first.starts_with(b"#") => Ok(()),
            [b"log", key] | [b"log", key, _] => self.log(key),
            [b"witness", name, key] | [b"witness", name, key, _] => self.witness(name, key),
            [b"group", name, threshold, members @ ..] => self.group(name, threshold, members),
            [b"quorum", name] => self.quorum(name),
            _ => Err(self.unlike("a line `log`, `witness`, `group` or `quorum`", line)),
        }
    }

    fn unlike(&self, expected: &'static str, found: &[u8]) -> AuditorPolicyError {
        AuditorPolicyError::Line {
            line: self.line,
            expected,
            found: shown(&String::from_utf8_lossy(found)),
        }
    }

    fn key(&self, text: &[u8], of: SignatureType) -> Result<VerifierKey, AuditorPolicyError> {
        let line = self.line;
        let utf8 = str::from_utf8(text).map_err(|_| self.unlike("a key", text))?;
        let key = utf8.parse::<VerifierKey>();
        let key = key.map_err(|reason| AuditorPolicyError::Key { line, reason })?;
        if key.signature_type() != of {
            let expected = match of {
                SignatureType::Log => "a key of type 0x01",
                SignatureType::Witness => "a key of type 0x04",
            };
            return Err(self.unlike(expected, text));
        }
        let mut known = self.logs.iter().chain(&self.witnesses);
        // Break it: leave this out and `log::auditor::one_key_counts_once_whatever_its_names` fails.
        if known.any(|other| other.public() == key.public()) {
            let keyid = key.public().keyid();
            return Err(AuditorPolicyError::Repeated { line, keyid });
        }
        Ok(key)
    }

    fn room(&self, count: usize) -> Result<(), AuditorPolicyError> {
        let line = self.line;
        if count < MOST {
            Ok(())
        } else {
            Err(AuditorPolicyError::TooMany { line })
        }
    }

    fn log(&mut self, key: &[u8]) -> Result<(), AuditorPolicyError> {
        self.room(self.logs.len())?;
        let key = self.key(key, SignatureType::Log)?;
        self.logs.push(key);
        Ok(())
    }

    fn witness(&mut self, name: &[u8], key: &[u8]) -> Result<(), AuditorPolicyError> {
        self.room(self.witnesses.len())?;
        let key = self.key(key, SignatureType::Witness)?;
        self.name(name, Member::Witness(self.witnesses.len()))?;
        self.witnesses.push(key);
        Ok(())
    }

    fn name(&mut self, name: &[u8], member: Member) -> Result<(), AuditorPolicyError> {
        if name == b"none" || self.names.iter().any(|(known, _)| known == name) {
            return Err(self.unlike("a name of its own, and not `none`", name));
        }
        self.names.push((name.to_vec(), member));
        Ok(())
    }

    /// What a name stands for that was defined before.
    fn known(&self, name: &[u8]) -> Result<Member, AuditorPolicyError> {
        let found = self.names.iter().find(|(known, _)| known == name);
        found
            .map(|(_, member)| *member)
            .ok_or_else(|| self.unlike("a name that was defined before", name))
    }

    fn group(
        &mut self,
        name: &[u8],
        threshold: &[u8],
        names: &[&[u8]],
    ) -> Result<(), AuditorPolicyError> {
        self.room(self.groups.len())?;
        let mut members = Vec::new();
        for member in names {
            members.push(self.known(member)?);
            // Break it: leave this out; one witness then counts in two groups
            // (`log::auditor::one_key_counts_once_whatever_its_names`).
            if !self.grouped.insert(member.to_vec()) {
                return Err(self.unlike("a name that is in no group yet", member));
            }
        }
        let decimal = || {
            let number = from_decimal(str::from_utf8(threshold).ok()?)?;
            usize::try_from(number).ok()
        };
        let threshold = match threshold {
            b"any" => Some(1),
            b"all" => Some(members.len()),
            _ => decimal(),
        };
        // Break it: allow 0 and `log::auditor::what_is_no_policy_is_refused` fails.
        let threshold = threshold.filter(|threshold| (1..=members.len()).contains(threshold));
        let threshold = threshold
            .ok_or_else(|| self.unlike("`any`, `all`, or a number of the members", name))?;
        self.name(name, Member::Group(self.groups.len()))?;
        self.groups.push(Group { threshold, members });
        Ok(())
    }

    fn quorum(&mut self, name: &[u8]) -> Result<(), AuditorPolicyError> {
        let quorum = match name {
            b"none" => Quorum::Nobody,
            _ => Quorum::Member(self.known(name)?),
        };
        match self.quorum.replace(quorum) {
            None => Ok(()),
            Some(_) => Err(self.unlike("one line `quorum`", name)),
        }
    }
}
