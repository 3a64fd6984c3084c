//! Messages that a step leaves for delivery.

use crate::incident::{Notice, NoticeEvent};

/// A message about an event of the incident.
pub(super) fn notice(event: NoticeEvent, text: impl Into<String>) -> Notice {
    Notice {
        event,
        text: text.into(),
    }
}
