//! One reader, fed until it fails or enough is done.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::change::{Random, changed};
use super::targets::Target;

/// Longer than any reader may take for one input, on a busy machine and without optimisation.
const TOO_LONG: Duration = Duration::from_secs(20);
/// Inputs that are kept to be changed further.
const KEPT: usize = 2_000;

/// What a run saw.
pub(crate) struct Ran {
    pub(crate) inputs: u64,
    pub(crate) taken: u64,
    /// Different words that inputs were refused with.
    pub(crate) outcomes: usize,
    pub(crate) slowest: Duration,
    pub(crate) failure: Option<Failure>,
}

/// An input that must not have had this effect.
pub(crate) struct Failure {
    pub(crate) input: Vec<u8>,
    pub(crate) why: String,
}

/// Feeds changed inputs while `more` says so; the same seed gives the same inputs.
pub(crate) fn run(target: &Target, seed: u64, more: impl Fn(u64) -> bool) -> Ran {
    let mut random = Random::new(seed);
    let mut corpus = target.good.clone();
    let mut outcomes = BTreeSet::new();
    let mut ran = Ran {
        inputs: 0,
        taken: 0,
        outcomes: 0,
        slowest: Duration::ZERO,
        failure: None,
    };
    let mut next: Vec<Vec<u8>> = target.good.clone();
    while more(ran.inputs) {
        let input = next.pop().unwrap_or_else(|| match target.reshape {
            Some(reshape) => reshape(&mut random, &corpus),
            None => changed(&mut random, &corpus, target.longest),
        });
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(&input)));
        let took = begin.elapsed();
        ran.inputs += 1;
        ran.slowest = ran.slowest.max(took);
        let why = match outcome {
            Err(panic) => Some(words(panic.as_ref())),
            Ok(_) if took > TOO_LONG => Some(format!("took {took:?}")),
            Ok(outcome) => {
                ran.taken += u64::from(outcome.is_ok());
                let words = outcome.err().unwrap_or_default();
                if outcomes.insert(kind(&words)) && corpus.len() < KEPT {
                    corpus.push(input.clone());
                }
                None
            }
        };
        if let Some(why) = why {
            ran.failure = Some(Failure { input, why });
            break;
        }
    }
    ran.outcomes = outcomes.len();
    ran
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("panicked").to_owned()
}

/// The words of a refusal without what differs from input to input.
fn kind(words: &str) -> String {
    let plain = words
        .chars()
        .filter(|c| c.is_ascii_alphabetic() || *c == ' ');
    plain.take(60).collect()
}
