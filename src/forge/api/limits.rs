//! Limits, in GitHub's words.

use super::super::state::{Cost, Excess, Grant, Shared, TOKEN_OWNER};
use super::{Call, Credentials, Refusal};

/// Where GitHub explains secondary limits.
const SECONDARY: &str = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits";

/// Whose account a request goes to.
pub(crate) fn account(call: &Call) -> String {
    match &call.credentials {
        Credentials::Token(token) => token.text.clone(),
        Credentials::App(app) => format!("app {}", app.id),
        Credentials::None | Credentials::Refused(_) => String::new(),
    }
}

/// Whether the request is one of those that people are notified of.
fn makes_content(call: &Call) -> bool {
    let rest = call.behind_repository().unwrap_or_default();
    matches!(
        (call.method.as_str(), rest.as_slice()),
        ("POST", ["pulls"] | ["issues", _, "comments"]) | ("PUT", ["pulls", _, "merge"])
    )
}

/// Takes the request's cost from its credential's account, or refuses.
pub(crate) fn charge(shared: &Shared, call: &Call) -> Result<(), Refusal> {
    let crowded = shared
        .meter
        .limits()
        .concurrent
        .is_some_and(|limit| call.together > limit);
    if crowded {
        return Err(refusal(shared, call, Excess::Secondary(1)));
    }
    let free = call
        .segments
        .first()
        .is_some_and(|first| first == "rate_limit");
    if free || !shared.meter.counts() {
        return Ok(());
    }
    let cost = Cost {
        points: if call.method == "GET" { 1 } else { 5 },
        content: makes_content(call),
    };
    shared
        .meter
        .charge(&account(call), cost, (shared.now)())
        .map_err(|excess| refusal(shared, call, excess))
}

fn refusal(shared: &Shared, call: &Call, excess: Excess) -> Refusal {
    let limits = shared.meter.limits();
    let request = format!("FORGE:{:X}", shared.ids.next());
    let support = format!(
        "If you reach out to GitHub Support for help, please include the request ID {request}."
    );
    let (message, seconds) = match excess {
        Excess::Primary => {
            let who = match &call.credentials {
                Credentials::Token(token) => match token.grant {
                    Grant::Installation { id, .. } => format!("installation ID {id}"),
                    _ => format!("user ID {}", TOKEN_OWNER.id),
                },
                Credentials::App(app) => format!("app ID {}", app.id),
                Credentials::None | Credentials::Refused(_) => "127.0.0.1".to_owned(),
            };
            (
                format!("API rate limit exceeded for {who}. {support}"),
                None,
            )
        }
        Excess::Secondary(seconds) => (
            format!(
                "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. {support}"
            ),
            Some(seconds),
        ),
        Excess::Content(seconds) => (
            format!(
                "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later. {support}"
            ),
            Some(seconds),
        ),
    };
    let mut refusal = Refusal::new(limits.status, message);
    if let Some(seconds) = seconds {
        refusal.documentation = SECONDARY;
        if limits.retry_after {
            refusal.headers.push(("retry-after", seconds.to_string()));
        }
    }
    refusal
}
