//! From a name to addresses that may be asked. The HTTP client connects to what is answered here and resolves nothing itself,
//! so that a name cannot mean one thing when it is checked and another when it is used.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{AddressRules, ProbeError};
use crate::attest::text::shown;

/// Addresses of one name that are looked at, at most.
const MOST_ADDRESSES: usize = 32;

/// Resolves names.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// Every address of a name.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found
            .take(MOST_ADDRESSES)
            .map(|address| address.ip())
            .collect())
    }
}

/// A resolver that answers with addresses that may be asked, all of them or none.
pub(super) struct Checked {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) rules: AddressRules,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, rules) = (Arc::clone(&self.lookup), self.rules);
        Box::pin(async move {
            let host = name.as_str();
            let addresses = allowed(&*lookup, rules, host).await?;
            let sockets = addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}

async fn allowed(
    lookup: &dyn Lookup,
    rules: AddressRules,
    host: &str,
) -> Result<Vec<IpAddr>, ProbeError> {
    let unknown = |reason: String| ProbeError::Name {
        host: shown(host),
        reason,
    };
    let mut addresses = lookup
        .addresses(host)
        .await
        .map_err(|error| unknown(error.to_string()))?;
    addresses.truncate(MOST_ADDRESSES);
    if addresses.is_empty() {
        return Err(unknown("it has no address".to_owned()));
    }
    for &address in &addresses {
        // Break it: look at the first address only; a name with a public address before a private one is then connected to
        // either.
        if let Some(kind) = rules.refusal(address) {
            return Err(ProbeError::Refused {
                host: format!("{} ({address})", shown(host)),
                kind,
            });
        }
    }
    Ok(addresses)
}
