//! What every connector of a process shares: connections, what was read before, and the budget of each credential.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::budget::{Admission, Budget, Cost, Heard, Standing, Ticket, Wait};
use super::credential::{CredentialIdentity, Use};
use super::etags::EtagStore;
use super::options::GithubSetupError;
use super::transport::http_client;
use crate::clock::{Clock, Millis};

/// How many bytes of what was read before are kept. A page of a hundred runs takes about 45 kB, so that a page of each of a
/// thousand repositories fits.
const KEPT_BYTES: usize = 64 << 20;
/// Requests under way at the same time with one credential; the provider allows a hundred.
const CONCURRENT: usize = 32;

/// The part of the GitHub connector that one process has once, however many repositories it looks after.
#[derive(Clone)]
pub struct GithubClient {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    random: fn() -> u64,
    /// With proxies from the environment, and without.
    http: Mutex<[Option<reqwest::Client>; 2]>,
    etags: EtagStore,
    allowances: Mutex<BTreeMap<(String, CredentialIdentity), Arc<Allowance>>>,
}

impl GithubClient {
    /// Makes the shared part; nothing is sent. `random` gives 64 random bits, with which repeated requests are spread.
    pub fn new(clock: Arc<dyn Clock>, random: fn() -> u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                clock,
                random,
                http: Mutex::default(),
                etags: EtagStore::new(KEPT_BYTES),
                allowances: Mutex::default(),
            }),
        }
    }

    /// With the randomness of the operating system.
    pub fn of_system(clock: Arc<dyn Clock>) -> Self {
        // Without randomness every pause is as long as it may be.
        Self::new(clock, || getrandom::u64().unwrap_or(u64::MAX))
    }

    pub(super) fn now(&self) -> Millis {
        self.shared.clock.now()
    }

    pub(super) fn random(&self) -> u64 {
        (self.shared.random)()
    }

    pub(super) fn etags(&self) -> &EtagStore {
        &self.shared.etags
    }

    /// The connections; one pool for everything on this machine and one for everything else.
    pub(super) fn http(&self, direct: bool) -> Result<reqwest::Client, GithubSetupError> {
        let mut pools = locked(&self.shared.http);
        let [proxied, unproxied] = &mut *pools;
        let pool = if direct { unproxied } else { proxied };
        if let Some(client) = pool {
            return Ok(client.clone());
        }
        let made = http_client(direct).map_err(|reason| GithubSetupError::Client { reason })?;
        Ok(pool.insert(made).clone())
    }

    /// The budget of a credential at an interface. It is kept for as long as somebody has the credential.
    pub(super) fn allowance(&self, api: &str, credential: CredentialIdentity) -> Arc<Allowance> {
        let mut allowances = locked(&self.shared.allowances);
        // Break it: keep them all; what a process remembers then grows with every token that is replaced
        // (`connector::github::client::tests::budgets_of_replaced_tokens_are_forgotten`).
        allowances.retain(|_, allowance| Arc::strong_count(allowance) > 1);
        Arc::clone(allowances.entry((api.to_owned(), credential)).or_default())
    }
}

/// A credential's budget, with which requests of many connectors are weighed.
pub(super) struct Allowance {
    budget: Mutex<Budget>,
    places: Semaphore,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            budget: Mutex::default(),
            places: Semaphore::new(CONCURRENT),
        }
    }
}

impl Allowance {
    /// Waits until fewer requests are under way. Never an error: the places are not closed.
    pub(super) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.acquire().await.ok()
    }

    /// Books a request, or says when it may be sent.
    pub(super) fn admit(&self, now: Millis, task: Use, cost: Cost) -> Result<Booking<'_>, Wait> {
        match locked(&self.budget).admit(now, task, cost) {
            Admission::Go(ticket) => Ok(Booking {
                allowance: self,
                ticket: Some(ticket),
            }),
            Admission::Wait(wait) => Err(wait),
        }
    }

    pub(super) fn standing(&self, now: Millis) -> Standing {
        locked(&self.budget).standing(now)
    }
}

/// A booked request. Dropped without an answer, it counts as sent.
pub(super) struct Booking<'a> {
    allowance: &'a Allowance,
    ticket: Option<Ticket>,
}

impl Booking<'_> {
    /// Takes the answer in. When it is a limit, the wait that it makes is given back.
    pub(super) fn answered(mut self, now: Millis, heard: &Heard) -> Option<Wait> {
        let ticket = self.ticket.take()?;
        locked(&self.allowance.budget).answered(now, ticket, heard)
    }
}

impl Drop for Booking<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            locked(&self.allowance.budget).unanswered(ticket);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FixedClock;

    #[test]
    fn budgets_of_replaced_tokens_are_forgotten() {
        let client = GithubClient::new(Arc::new(FixedClock::at(Millis(1))), || 0);
        let of = |token: &str| client.allowance("api", CredentialIdentity::Personal(token.into()));
        let kept = of("kept");
        for number in 0..100 {
            drop(of(&format!("token {number}")));
        }
        assert!(Arc::ptr_eq(&kept, &of("kept")));
        assert!(locked(&client.shared.allowances).len() <= 2);
    }
}
