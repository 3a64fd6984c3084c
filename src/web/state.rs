//! What every page is given.

use std::sync::Arc;

use super::{ToolCalls, Webhooks};
use crate::attest::TrustHistory;
use crate::clock::{Clock, Millis};
use crate::id::OrganisationId;
use crate::store::{Store, StoreError};

/// Where the pages' "now" comes from. It decides whether a link has expired.
#[derive(Clone)]
pub enum Now {
    /// The database's clock, the one that workers go by.
    Database,
    /// Another one, for tests.
    Clock(Arc<dyn Clock>),
}

/// The means of the web server. Clones share the database's connections.
#[derive(Clone)]
pub struct WebState {
    /// The database.
    pub store: Store,
    /// Whose incidents are shown; those of others do not exist here.
    pub organisation: OrganisationId,
    /// Whose signatures count.
    pub trust: Arc<TrustHistory>,
    /// What "now" is.
    pub time: Now,
    /// The address that links carry, when it is not the one that browsers name in `Host`: forms sent from there are accepted.
    pub public_url: Option<String>,
    /// How deliveries of webhooks are checked; none when they are not received.
    pub webhooks: Option<Arc<Webhooks>>,
    /// The queue of tool calls that wait for a person; none where it cannot be written on record who answered.
    pub tool_calls: Option<ToolCalls>,
}

impl WebState {
    /// Pages over a database, with the database's clock, no other public address and no webhooks.
    pub fn new(store: Store, organisation: OrganisationId, trust: TrustHistory) -> Self {
        Self {
            store,
            organisation,
            trust: Arc::new(trust),
            time: Now::Database,
            public_url: None,
            webhooks: None,
            tool_calls: None,
        }
    }

    /// The present.
    ///
    /// # Errors
    /// The database does not answer.
    pub(super) async fn now(&self) -> Result<Millis, StoreError> {
        match &self.time {
            Now::Database => self.store.now().await,
            Now::Clock(clock) => Ok(clock.now()),
        }
    }
}
