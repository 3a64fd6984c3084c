//! Signed statements: envelopes, roles, keys, the trust root and the chain. Everything here is a function of bytes.
//!
//! - [`dsse`]: envelopes and what is signed of them; [`json`]: strict reading; [`text`]: bounded values.
//! - [`role`]: who signs what; [`keys`]: Ed25519 keys and key files; [`signer`]: the typed notary of a role.
//! - [`predicate`], [`statement`]: what is said.
//! - [`export`]: what a verified chain says, in other programs' formats.
//! - `schema` (feature `schemas`): JSON Schemas made from these types.
//! - [`trust_root`]: whose keys count; [`chain`]: whether an incident's envelopes are a sound chain.
//!
//! A signed document is named by the SHA-256 of its pre-authentication encoding. Formats: `docs/ledger.md`.

pub mod chain;
pub mod digest;
pub mod dsse;
pub mod export;
pub mod json;
pub mod keys;
pub mod predicate;
pub mod role;
#[cfg(feature = "schemas")]
pub mod schema;
pub mod signer;
pub mod statement;
pub mod text;
pub mod trust_root;

pub use chain::{ChainReport, Expectation, Link, authenticate, verify_chain};
pub use digest::DigestRef;
pub use dsse::{Envelope, EnvelopeError, ForeignEnvelope, SignedDocument, Verified};
pub use export::{Export, ExportError, ExportKind, exports};
pub use keys::{KeyFile, KeyFileError, KeyId, KeyUse, PublicKey, SecretKey};
pub use role::{PredicateType, Role};
pub use signer::{FileSigner, SignError, Signer};
pub use statement::{
    Event, Evidence, OrganisationEvent, Predicate, Statement, StatementError, Subject,
};
pub use text::{Label, List, Text, TextError};
pub use trust_root::{TrustHistory, TrustRoot, TrustRootDocument, TrustRootError};
