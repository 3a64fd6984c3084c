//! What every client of another's server here has in common: it follows no redirect, repeats nothing, and says in full why
//! something failed.

pub mod patience;

use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, StatusCode};
use url::{Host, Url};

/// Who is asking.
pub const AGENT: &str = concat!("caretaker/", env!("CARGO_PKG_VERSION"));

/// A client that follows nothing and repeats nothing. `direct` leaves out any proxy, which would only be in the way of a
/// server on this machine, and would see what is sent.
pub fn builder(direct: bool) -> ClientBuilder {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race to another thread leaves a provider installed, which is all that is needed.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let builder = reqwest::Client::builder()
        .user_agent(AGENT)
        // Break it: follow redirects; a receiver can then pass an approval link on to any other host
        // (`notify::a_redirect_is_not_followed_since_the_message_may_carry_a_link`, `anchor::witness::a_redirect_is_not_followed`).
        .redirect(Policy::none())
        .retry(reqwest::retry::never());
    if direct { builder.no_proxy() } else { builder }
}

/// The same for single messages to an address: no connection is kept.
///
/// # Errors
/// There are no root certificates.
pub fn client(url: &Url) -> Result<reqwest::Client, reqwest::Error> {
    builder(is_loopback(url)).pool_max_idle_per_host(0).build()
}

/// Whether an address stays on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Statuses that speak of the moment, not of the message.
pub fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        )
}

/// An error with its causes, each said once, without the address, which may hold a secret.
pub fn words(error: reqwest::Error) -> String {
    chain(&error.without_url())
}

/// Any error with its causes, each said once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}
