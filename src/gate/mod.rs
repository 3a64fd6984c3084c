//! Decides whether a change is denied, free or needs approval. Pure: the rules and the measurements go in, a [`Decision`]
//! comes out.
//!
//! Three questions in one pass: is a path *denied* (then nothing else matters), which *class* of blast radius does the change
//! have (`functional < data < infrastructure`; where rules and second opinion disagree the stricter wins), and does anything
//! else make it *consequential* ([`matters`], sensitive paths, limits, dependencies, twins). [`Cleared`] is the proof that a
//! change was not denied; committing or pushing a fix needs one.
//!
//! A rule that needs something nobody measured asks for approval, with the reason [`NOT_MEASURED`].

mod anchors;
mod class;
mod cleared;
mod decision;
mod denied;
mod document;
mod fold;
mod glob;
pub mod matters;
mod opinion;
mod reason;
mod rules;
mod twins;
mod weigh;

pub use anchors::{AnchorDemand, Anchors};
pub use class::Class;
pub use cleared::Cleared;
pub use decision::{
    Bump, Decision, DecisionDocument, DeniedRow, MatchedRow, Measured, Verdict, evaluate,
};
pub use denied::{Denied, DeniedPath, check_paths};
pub use document::{
    Base, BinaryLimit, Checks, Dependencies, Handling, Limits, MergeMethod, PathRule,
    RequiredCheck, Reruns, RulesDocument, SecondOpinionRule, Workflows,
};
pub use fold::folded;
pub use glob::{GlobFault, MAXIMUM_GLOB_BYTES, MAXIMUM_GLOBS};
pub use opinion::{Opinion, SecondOpinion, Stricter};
pub use reason::{Capped, Measure, NOT_MEASURED, Reason};
pub use rules::{List, Rules, RulesError};
