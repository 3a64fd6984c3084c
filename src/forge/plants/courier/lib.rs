//! Hands messages to a thread and waits for receipts.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;

/// A thread that answers each message with its length in bytes.
pub struct Courier {
    messages: Sender<String>,
    receipts: Receiver<usize>,
}

impl Courier {
    /// Starts the thread; it ends with the courier.
    pub fn start() -> Courier {
        let (messages, inbox) = channel::<String>();
        let (outbox, receipts) = channel();
        thread::spawn(move || {
            for message in inbox {
                if outbox.send(message.len()).is_err() {
                    return;
                }
            }
        });
        Courier { messages, receipts }
    }

    /// Hands a message over and waits for its receipt.
    pub fn send(&self, message: &str) -> usize {
        self.messages.send(message.to_string()).expect("the thread runs");
        self.receipts.recv().expect("the thread answers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_receipt_says_how_long_the_message_is() {
        assert_eq!(Courier::start().send("hello"), 5);
    }

    #[test]
    fn a_receipt_comes_soon() {
        let courier = Courier::start();
        let begun = Instant::now();
        courier.send("hello");
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(2), "it took too long");
    }
}
