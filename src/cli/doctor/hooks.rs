//! Webhooks, where they are configured: whether their secret is there, and whether anything comes.

use secrecy::ExposeSecret as _;

use super::Finding;
use crate::cli::assembly::WEBHOOK_SECRET;
use crate::clock::Millis;
use crate::config::{Configuration, Environment};
use crate::store::{Store, StoreError};

const CHECK: &str = "webhooks";
/// The shortest secret that cannot be tried out, in bytes.
const SHORTEST: usize = 20;

/// Nothing without a configured secret: webhooks are optional.
pub(super) async fn look(
    configuration: &Configuration,
    environment: &Environment,
) -> Option<Finding> {
    let source = configuration.github.webhook_secret.as_ref()?;
    let secret = match source.resolve("webhooks", WEBHOOK_SECRET, environment) {
        Ok(secret) => secret,
        Err(error) => return Some(Finding::failed(CHECK, error.to_string())),
    };
    if secret.expose_secret().len() < SHORTEST {
        let found = format!(
            "the secret ({source}) is shorter than {SHORTEST} bytes; make one of 32 random bytes, and give the same to the webhook's settings"
        );
        return Some(Finding::warning(CHECK, found));
    }
    Some(match last_delivery(configuration).await {
        Ok(Some((last, now))) => Finding::ok(CHECK, heard(last, now)),
        Ok(None) => Finding::warning(
            CHECK,
            "no delivery has come yet; have the webhook send its ping again to PUBLIC_URL/webhooks/github, and look at its recent deliveries at the hosting service",
        ),
        Err(error) => Finding::failed(CHECK, error.to_string()),
    })
}

/// When the last delivery came, and what the time is by the same clock.
async fn last_delivery(
    configuration: &Configuration,
) -> Result<Option<(Millis, Millis)>, StoreError> {
    let store = match Store::open_existing(configuration.database.secret()).await {
        Err(StoreError::Missing { .. }) => return Ok(None),
        store => store?,
    };
    let now = store.now().await?;
    let last = store.last_hook_delivery().await?;
    Ok(last.map(|last| (last, now)))
}

fn heard(last: Millis, now: Millis) -> String {
    let seconds = (now.0 - last.0).max(0) / 1_000;
    let ago = match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    };
    format!("the secret is there; the last delivery came {ago} ago")
}

#[cfg(test)]
mod tests {
    use super::{Millis, heard};

    #[test]
    fn the_last_delivery_is_told_in_the_largest_fitting_unit() {
        let after = |seconds: i64| heard(Millis(0), Millis(seconds * 1_000));
        let ends = |seconds, end: &str| {
            let told = after(seconds);
            assert!(told.ends_with(end), "{told}");
        };
        ends(-5, " 0 s ago");
        ends(119, " 119 s ago");
        ends(120, " 2 min ago");
        ends(7_200, " 2 h ago");
        ends(172_800, " 2 days ago");
    }
}
