//! A decision that always comes to an end.

use std::sync::mpsc;
use std::time::Duration;

use super::reply::Reply;

/// Stack of the deciding thread, in bytes: readers' recursion is bounded, and stays far below this.
const STACK: usize = 8 << 20;

/// Decides on a thread of its own. If it panics, or has not decided within `within`, the answer is a refusal: a client takes a hook
/// that dies or is late for consent. What is late may still run; whoever asked ends the process.
pub fn guarded(within: Duration, decide: impl FnOnce() -> Reply + Send + 'static) -> Reply {
    let (sender, receiver) = mpsc::sync_channel(1);
    let started = std::thread::Builder::new()
        .name("decision".to_owned())
        .stack_size(STACK)
        .spawn(move || drop(sender.send(decide())));
    if let Err(error) = started {
        return Reply::block(format!("the gate cannot decide: {error}"));
    }
    match receiver.recv_timeout(within) {
        Ok(reply) => reply,
        // Break it: allow on either; `hook_gate::service::a_decision_that_panics_or_is_late_is_a_refusal` fails.
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Reply::block("the gate failed while it decided (gate-panicked); nothing goes on")
        }
        Err(mpsc::RecvTimeoutError::Timeout) => Reply::block(format!(
            "the gate did not decide within {} seconds (gate-deadline); nothing goes on",
            within.as_secs()
        )),
    }
}
