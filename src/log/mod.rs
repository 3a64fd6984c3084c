//! The log: one Merkle tree over everything an organisation's caretaker has said. Everything here is a function of bytes.
//!
//! - [`leaf`]: what is logged; [`tree`]: the tree of RFC 6962 and how it grows; [`proof`]: inclusion and consistency.
//! - [`key`], [`note`], [`checkpoint`]: names, keys and signatures of the log and its witnesses; [`policy`]: when a
//!   checkpoint counts; [`auditor`]: what an auditor asks of witnesses, as a file; [`inclusion`]: a proof to keep.
//! - [`tile`], [`bundle`]: tree and entries as files.
//!
//! Two uses in mind. A writer appends to a [`Frontier`] within a transaction and stores every [`Node`] that this
//! completes; proofs then need few reads ([`ProofPlan`]). A verifier streams entry bundles through a [`Frontier`] and
//! compares its head with a [`TrustedCheckpoint`]. Formats are C2SP's and RFC 6962's; leaves: `docs/log.md`.

mod anchor;
pub mod auditor;
pub mod bundle;
pub mod checkpoint;
mod encoding;
pub mod inclusion;
pub mod key;
pub mod leaf;
pub mod note;
pub mod policy;
pub mod proof;
pub mod tile;
pub mod tree;

pub use anchor::AnchorKind;
pub use auditor::{AuditorPolicy, AuditorPolicyError, MAX_POLICY, Unmet};
pub use bundle::{BundleError, MAX_BUNDLE, MAX_ENTRY, read_entries, write_entries};
pub use checkpoint::{Checkpoint, CheckpointError, LogSigner, SignedCheckpoint, WitnessSigner};
pub use inclusion::{Included, LogProof, LogProofError};
pub use key::{
    KeyHash, KeyName, LogKeyError, SignatureType, VerifierKey, new_signing_key, read_signing_key,
};
pub use leaf::{Leaf, LeafError, LeafKind, Record};
pub use note::{MAX_NOTE, NoteError, NoteSignature, SignedAt, SignedNote};
pub use policy::{Cosigned, LogPolicy, PolicyError, TrustedCheckpoint};
pub use proof::{MAX_PROOF, ProofError, ProofPlan, verify_consistency, verify_inclusion};
pub use tile::{HashTile, TILE_WIDTH, TileError, TileId, TileKind};
pub use tree::{Frontier, MAX_SIZE, Node, TreeError, TreeHash, TreeHead};
