//! The audit stream.

use std::path::Path;
use std::sync::Arc;

use caretaker::audit_stream::AuditStream;
use caretaker::clock::{FixedClock, Millis};
use caretaker::events::Event;
use serde_json::json;

mod command;
mod verify;
mod writer;

/// 2026-11-30 12:00:00 UTC.
const NOON: Millis = Millis(1_796_040_000_000);

/// The stream in a folder, with a key of its own that is the same in every run.
fn stream(folder: &Path) -> AuditStream {
    let fill = &mut |bytes: &mut [u8]| {
        bytes.fill(7);
        Ok(())
    };
    AuditStream::open(folder, Arc::new(FixedClock::at(NOON)), fill).unwrap()
}

fn event(number: u64) -> Event {
    let fields = json!({"tool": "Write", "number": number, "score": 0.847});
    let fields = fields.as_object().unwrap().clone();
    Event::new("gate_decision", "task-1", fields)
}

/// A stream of so many events, in files of at most so many bytes.
fn written(folder: &Path, events: u64, bytes: u64) -> AuditStream {
    let stream = stream(folder).rotating_at(bytes);
    for number in 0..events {
        stream.write(&event(number)).unwrap();
    }
    stream
}
