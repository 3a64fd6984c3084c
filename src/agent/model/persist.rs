//! Asking again where that may help.

use tokio::time::{Instant, sleep, timeout_at};

use super::{Answer, Class, Conversation, LanguageModel, ModelError};
use crate::https::patience::Patience;

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// The next request was not allowed any more.
    Unallowed,
    /// The model gave none, and asking again does not help, or was tried often enough.
    Failed(ModelError),
}

/// Asks until there is an answer, or no point in asking again: at most [`Patience::attempts`] times, with pauses of full jitter from
/// `random`, never sooner than the model wants, and not at all when it wants more than [`Patience::longest_pause`] or more than is
/// left until `end`. `allow` is asked before each request and counts it; requests that fail count too.
///
/// # Errors
/// [`NoAnswer`].
pub async fn persist(
    model: &dyn LanguageModel,
    conversation: &Conversation,
    patience: &Patience,
    end: Instant,
    random: fn() -> u64,
    mut allow: impl FnMut() -> bool + Send,
) -> Result<Answer, NoAnswer> {
    let mut asked = 0;
    loop {
        // Break it: count answers only (`agent::builtin_budget::requests_that_fail_count`).
        if !allow() {
            return Err(NoAnswer::Unallowed);
        }
        let attempt = end.min(Instant::now() + patience.attempt);
        let failed = match timeout_at(attempt, model.ask(conversation)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failed)) => failed,
            Err(_) => late(model, patience),
        };
        asked += 1;
        let wait = match failed.class {
            Class::Permanent => return Err(NoAnswer::Failed(failed)),
            Class::Retry => std::time::Duration::ZERO,
            Class::Wait(wait) => wait,
        };
        let left = end.saturating_duration_since(Instant::now());
        // Break it: wait as long as it wants; a model then decides how long an incident stands still
        // (`agent::model_asking::who_wants_a_long_pause_is_given_up`).
        let pause = patience
            .pause(asked, wait, left, random())
            .filter(|_| wait <= patience.longest_pause);
        let Some(pause) = pause else {
            return Err(NoAnswer::Failed(failed));
        };
        sleep(pause).await;
    }
}

fn late(model: &dyn LanguageModel, patience: &Patience) -> ModelError {
    ModelError {
        model: model.name().to_owned(),
        class: Class::Retry,
        detail: format!(
            "no answer within {} seconds; is it overloaded?",
            patience.attempt.as_secs()
        ),
    }
}
