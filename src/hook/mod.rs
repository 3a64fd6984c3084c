//! Webhooks of the hosting service, read as hints: "there is news of this repository, look now".
//!
//! - [`HookKey`], [`Verifier`], [`Signature`]: whether the service sent exactly these bytes.
//! - [`DeliveryId`], [`EventName`]: what the headers say. No signature covers them, so nothing rests on them alone.
//! - [`Delivery`]: the numbers of the repositories to look at, and which version of which object the delivery tells of.
//!
//! Nothing else of a payload is read: what happened is found out by asking the service. A delivery that is lost, late or
//! doubled therefore changes when something is seen, never what.

mod delivery;
mod header;
mod loose;
mod signature;

pub use delivery::{Delivery, DeliveryError, MOST_REPOSITORIES, Object, Version};
pub use header::{DeliveryId, EventName, HeaderError};
pub use signature::{EmptySecret, HookKey, Signature, Verifier};
