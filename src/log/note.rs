//! Signed notes (C2SP signed-note): a text, an empty line, and signature lines.

use std::fmt;

use thiserror::Error;

use super::encoding::{from_base64, to_base64};
use super::key::{KeyHash, KeyName, SignatureType, VerifierKey};
use crate::attest::keys::SecretKey;
use crate::attest::text::shown;
use crate::clock::Millis;

/// The longest note, in bytes.
pub const MAX_NOTE: usize = 65_536;
/// The most signature lines.
pub const MAX_SIGNATURES: usize = 100;
/// What a signature line begins with: an em dash and a space.
const MARK: &str = "\u{2014} ";

/// Why bytes are not a signed note, or why it does not verify.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoteError {
    /// Too long.
    #[error("a signed note of {length} bytes: at most {MAX_NOTE} are read")]
    TooLong {
        /// Bytes.
        length: usize,
    },
    /// Not text.
    #[error("the signed note is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// A control character, as a carriage return.
    #[error(
        "the signed note has the control character {found} at byte {at}; lines end in a line feed alone, so fetch it \
         without conversion of line ends"
    )]
    Control {
        /// The character, made printable.
        found: String,
        /// Its offset.
        at: usize,
    },
    /// No text, empty line and signature lines.
    #[error(
        "a signed note is a text, an empty line and at least one signature line, each ending in a line feed; it may have \
         been cut off"
    )]
    Parts,
    /// Too many signature lines.
    #[error("the signed note has more than {MAX_SIGNATURES} signature lines")]
    TooManySignatures,
    /// A line that is not a signature.
    #[error(
        "{line} is not a signature line: an em dash, a name and base64 of a key id and a signature"
    )]
    SignatureLine {
        /// The line, made printable.
        line: String,
    },
    /// A known key, but not its signature.
    #[error(
        "the signature said to be of {name} ({hash}) is not its signature over this text: the text, the time or the \
         signature was changed"
    )]
    BadSignature {
        /// The key's name.
        name: KeyName,
        /// The key's id.
        hash: KeyHash,
    },
    /// Two known keys that signature lines cannot tell apart.
    #[error("two different keys are known as {name} ({hash}); remove one")]
    Ambiguous {
        /// The shared name.
        name: KeyName,
        /// The shared id.
        hash: KeyHash,
    },
    /// No signature by a known key.
    #[error("none of the known keys signed this note; check the name and the key of the log")]
    Unsigned,
    /// A moment that a cosignature cannot state.
    #[error("a cosignature cannot state the moment {at}: it is before 1970")]
    Time {
        /// The moment.
        at: Millis,
    },
}

/// One signature line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    name: KeyName,
    hash: KeyHash,
    bytes: Vec<u8>,
}

impl NoteSignature {
    /// Who is said to have signed.
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// Which of its keys.
    pub const fn hash(&self) -> KeyHash {
        self.hash
    }

    /// Reads one line without its line feed.
    pub fn parse(line: &str) -> Result<Self, NoteError> {
        let refused = || NoteError::SignatureLine { line: shown(line) };
        let (name, encoded) = line
            .strip_prefix(MARK)
            .and_then(|rest| rest.split_once(' '))
            .ok_or_else(refused)?;
        let name = KeyName::new(name).map_err(|_| refused())?;
        let decoded = from_base64(encoded).ok_or_else(refused)?;
        match decoded.split_first_chunk() {
            Some((hash, bytes)) if !bytes.is_empty() => Ok(Self {
                name,
                hash: KeyHash(*hash),
                bytes: bytes.to_vec(),
            }),
            _ => Err(refused()),
        }
    }

    /// A log's signature over `text`.
    pub(super) fn of_log(name: &KeyName, secret: &SecretKey, text: &str) -> Self {
        let key = VerifierKey::new(name.clone(), SignatureType::Log, secret.public());
        Self {
            name: name.clone(),
            hash: key.hash(),
            bytes: secret.sign(text.as_bytes()).to_vec(),
        }
    }

    /// A witness's signature over `text` at a moment, which is stated in whole seconds.
    pub(super) fn of_witness(
        name: &KeyName,
        secret: &SecretKey,
        text: &str,
        at: Millis,
    ) -> Result<Self, NoteError> {
        let seconds = u64::try_from(at.0).map_err(|_| NoteError::Time { at })? / 1000;
        let key = VerifierKey::new(name.clone(), SignatureType::Witness, secret.public());
        let mut bytes = seconds.to_be_bytes().to_vec();
        bytes.extend_from_slice(&secret.sign(cosigned(seconds, text).as_bytes()));
        Ok(Self {
            name: name.clone(),
            hash: key.hash(),
            bytes,
        })
    }

    /// What the signature says beside the text, if it is `key`'s over `text`.
    fn check(&self, key: &VerifierKey, text: &str) -> Option<SignedAt> {
        match key.signature_type() {
            SignatureType::Log => {
                let signature = self.bytes.as_slice().try_into().ok()?;
                key.public()
                    .verifies(text.as_bytes(), signature)
                    .then_some(SignedAt::Untimed)
            }
            SignatureType::Witness => {
                let (seconds, signature) = self.bytes.split_first_chunk()?;
                let seconds = u64::from_be_bytes(*seconds);
                // Break it: drop this and `log::checkpoints::a_cosignatures_time_cannot_be_changed` fails.
                if i64::try_from(seconds).is_err() {
                    return None;
                }
                key.public()
                    .verifies(
                        cosigned(seconds, text).as_bytes(),
                        signature.try_into().ok()?,
                    )
                    .then_some(SignedAt::Seconds(seconds))
            }
        }
    }
}

/// What a witness signs. The first line keeps it apart from what logs sign.
// Break it: leave the time out and `log::checkpoints::the_signed_bytes_are_those_of_the_specification` fails.
fn cosigned(seconds: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {seconds}\n{text}")
}

/// The line without its line feed.
impl fmt::Display for NoteSignature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.hash.0.to_vec();
        bytes.extend_from_slice(&self.bytes);
        write!(formatter, "{MARK}{} {}", self.name, to_base64(&bytes))
    }
}

/// The moment a verified signature states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignedAt {
    /// A log's signature states none.
    Untimed,
    /// A witness's: seconds since 1970, by the witness's clock.
    Seconds(u64),
}

/// A key whose signature was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signer<'k> {
    /// The key, out of those that were given.
    pub key: &'k VerifierKey,
    /// When it signed; of several times the last.
    pub at: SignedAt,
}

/// A text with signature lines. Nothing in it is to be believed before [`Self::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl SignedNote {
    /// Reads a note. Sizes are looked at first, so that 10⁶ signature lines cost nothing.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        // Break it: drop this and `log::hostile::a_million_signature_lines_cost_nothing` fails.
        if bytes.len() > MAX_NOTE {
            return Err(NoteError::TooLong {
                length: bytes.len(),
            });
        }
        let note = str::from_utf8(bytes).map_err(|error| NoteError::NotUtf8 {
            at: error.valid_up_to(),
        })?;
        if let Some(at) = note.bytes().position(|byte| byte < 0x20 && byte != b'\n') {
            return Err(NoteError::Control {
                found: shown(&note[at..=at]),
                at,
            });
        }
        let empty_line = note.rfind("\n\n").ok_or(NoteError::Parts)?;
        let (text, rest) = note.split_at(empty_line + 1);
        let lines = rest[1..].strip_suffix('\n').ok_or(NoteError::Parts)?;
        if lines.split('\n').nth(MAX_SIGNATURES).is_some() {
            return Err(NoteError::TooManySignatures);
        }
        let signatures = lines.split('\n').map(NoteSignature::parse);
        Ok(Self {
            text: text.to_owned(),
            signatures: signatures.collect::<Result<_, _>>()?,
        })
    }

    /// A text with one signature. The caller made the text, which ends in a line feed and has no control character else.
    pub(super) fn signed(text: String, signature: NoteSignature) -> Self {
        Self {
            text,
            signatures: vec![signature],
        }
    }

    /// Adds a signature, in place of one that the same key made before. Whose it is, and whether it is good, shows when
    /// the note is verified.
    pub(super) fn add(&mut self, signature: NoteSignature) -> Result<(), NoteError> {
        let same = |other: &&mut NoteSignature| {
            (&other.name, other.hash) == (&signature.name, signature.hash)
        };
        if let Some(before) = self.signatures.iter_mut().find(same) {
            *before = signature;
            return Ok(());
        }
        if self.signatures.len() >= MAX_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        self.signatures.push(signature);
        let length = self.to_string().len();
        if length > MAX_NOTE {
            self.signatures.pop();
            return Err(NoteError::TooLong { length });
        }
        Ok(())
    }

    /// The text with its last line feed, unverified.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signature lines, unverified.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Which of `keys` signed this, in the order of the signature lines and each once. Lines of other keys are passed over,
    /// whatever they hold; a line of a known key that does not verify refuses the whole note. The order of the lines says
    /// nothing about who the log is.
    pub fn verify<'k>(&self, keys: &'k [VerifierKey]) -> Result<Vec<Signer<'k>>, NoteError> {
        let mut signers: Vec<Signer<'k>> = Vec::new();
        for signature in &self.signatures {
            let known = |key: &&VerifierKey| {
                // Break it: leave out the name and `log::checkpoints::unknown_signatures_are_passed_over` fails.
                (key.name(), key.hash()) == (&signature.name, signature.hash)
            };
            let Some(key) = keys.iter().find(known) else {
                continue;
            };
            let (name, hash) = (key.name().clone(), key.hash());
            if keys.iter().filter(known).any(|other| other != key) {
                return Err(NoteError::Ambiguous { name, hash });
            }
            // Break it: `continue` here and `log::checkpoints::a_known_keys_bad_signature_refuses_the_note` fails.
            let Some(at) = signature.check(key, &self.text) else {
                return Err(NoteError::BadSignature { name, hash });
            };
            // Break it: always push and `log::checkpoints::a_witness_counts_once` fails.
            match signers.iter_mut().find(|signer| signer.key == key) {
                Some(before) => before.at = before.at.max(at),
                None => signers.push(Signer { key, at }),
            }
        }
        if signers.is_empty() {
            Err(NoteError::Unsigned)
        } else {
            Ok(signers)
        }
    }
}

/// The note as it is stored and served.
impl fmt::Display for SignedNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.text)?;
        for signature in &self.signatures {
            writeln!(formatter, "{signature}")?;
        }
        Ok(())
    }
}
