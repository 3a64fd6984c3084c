//! Webhooks as a test plays them: nothing is delivered until somebody says so.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::Forge;
use super::error::ForgeError;
use super::state::{Delivery, HookFaults, NewHook, Outcome, Record};

/// How long a receiver may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of an answer is kept, in bytes.
const KEPT_ANSWER: usize = 10_000;
/// The block length of SHA-256, in bytes.
const BLOCK: usize = 64;

impl Forge {
    /// A person sets up a webhook; its number. It hears of what happens from now on.
    pub fn add_hook(&self, hook: NewHook) -> u64 {
        let id = self.shared.ids.next();
        self.shared.outbox.add_hook(id, hook);
        id
    }

    /// What goes wrong with deliveries from now on.
    pub fn hook_faults(&self, faults: HookFaults) {
        self.shared.outbox.set_faults(faults);
    }

    /// Delivers everything that waits, one after another; how many requests were made. A receiver that cannot be reached
    /// makes no error: GitHub only notes it.
    pub async fn deliver(&self) -> Result<usize, ForgeError> {
        let outbox = &self.shared.outbox;
        let faults = outbox.faults();
        let mut waiting = outbox.waiting();
        if faults.reverse {
            waiting.reverse();
        }
        let client = client()?;
        let mut requests = 0;
        for record in waiting {
            let number = outbox.next_attempt();
            let mut outcome = Outcome {
                at: (self.shared.now)(),
                status: None,
                answer: String::new(),
            };
            if !(faults.lose)(number) {
                let times = if (faults.duplicate)(number) { 2 } else { 1 };
                for _ in 0..times {
                    requests += 1;
                    if let Ok((status, answer)) = sent(&client, &record).await {
                        outcome.status = Some(status);
                        outcome.answer = answer;
                    }
                }
            }
            outbox.settle(record.id, outcome);
        }
        Ok(requests)
    }

    /// Every delivery so far, oldest first, also what waits and what was lost.
    pub fn deliveries(&self) -> Vec<Delivery> {
        let delivery = |record: Record| Delivery {
            guid: record.guid,
            event: record.event.to_owned(),
            body: record.body,
            status: record.outcome.and_then(|outcome| outcome.status),
        };
        self.shared
            .outbox
            .records()
            .into_iter()
            .map(delivery)
            .collect()
    }

    /// A person lets a delivery be made again, under the same guid; it waits for [`Forge::deliver`].
    pub fn redeliver(&self, guid: &str) -> Result<(), ForgeError> {
        if self.shared.outbox.repeat(|record| record.guid == guid) {
            return Ok(());
        }
        Err(ForgeError::Absent {
            what: format!("the delivery {guid}"),
        })
    }
}

fn client() -> Result<reqwest::Client, ForgeError> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may be faster; one is as good as the other.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    reqwest::Client::builder()
        .user_agent("GitHub-Hookshot/forge")
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .build()
        .map_err(|error| ForgeError::Refused {
            act: "preparing the delivery of webhooks".to_owned(),
            reason: error.to_string(),
        })
}

/// Sends one delivery; the status and the beginning of the answer.
async fn sent(client: &reqwest::Client, record: &Record) -> Result<(u16, String), reqwest::Error> {
    let hook = &record.hook;
    let (target, kind) = match hook.to.repository {
        Some(id) => (id, "repository"),
        None => (hook.id, "integration"),
    };
    let mut response = client
        .post(&hook.to.url)
        .header("content-type", "application/json")
        .header("x-github-delivery", &record.guid)
        .header("x-github-event", record.event)
        .header("x-github-hook-id", hook.id.to_string())
        .header("x-github-hook-installation-target-id", target.to_string())
        .header("x-github-hook-installation-target-type", kind)
        .header(
            "x-hub-signature-256",
            signature(hook.to.secret.as_bytes(), record.body.as_bytes()),
        )
        .body(record.body.clone())
        .send()
        .await?;
    let status = response.status().as_u16();
    let mut answer = Vec::new();
    while let Some(part) = response.chunk().await? {
        answer.extend(part);
        if answer.len() >= KEPT_ANSWER {
            break;
        }
    }
    answer.truncate(KEPT_ANSWER);
    Ok((status, String::from_utf8_lossy(&answer).into_owned()))
}

/// `sha256=` and the HMAC-SHA256 (RFC 2104) of a body in hex.
pub(super) fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut key = [0_u8; BLOCK];
    let digest = Sha256::digest(secret);
    let short = if secret.len() > BLOCK {
        &digest[..]
    } else {
        secret
    };
    key[..short.len()].copy_from_slice(short);
    let padded = |pad: u8| key.map(|byte| byte ^ pad);
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update(body)
        .finalize();
    let outer = Sha256::new()
        .chain_update(padded(0x5c))
        .chain_update(inner)
        .finalize();
    let digits: Vec<String> = outer.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={}", digits.concat())
}

#[cfg(test)]
mod tests {
    /// GitHub's own example.
    #[test]
    fn the_published_example_is_signed_alike() {
        assert_eq!(
            super::signature(b"It's a Secret to Everybody", b"Hello, World!"),
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
    }
}
