//! The lists of deliveries of webhooks, and their repetition.

use super::super::render;
use super::super::state::{Record, Shared};
use super::{Answer, Call, Credentials, Refusal, Reply};

/// GitHub's defaults for lists with a cursor.
const USUAL: usize = 30;
const MOST: usize = 100;

/// Whose deliveries are meant: those of a repository's hook, or those of the App's.
#[derive(Clone, Copy)]
pub(crate) struct Hooks<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) call: &'a Call,
    /// The repository and the number of its hook.
    pub(crate) of: Option<(u64, &'a str)>,
}

/// The App's deliveries, for an App that asks.
pub(crate) fn of_app<'a>(shared: &'a Shared, call: &'a Call) -> Result<Hooks<'a>, Refusal> {
    match call.credentials {
        Credentials::App(_) => Ok(Hooks {
            shared,
            call,
            of: None,
        }),
        _ => Err(Refusal::new(401, "A JSON web token could not be decoded")),
    }
}

impl Hooks<'_> {
    /// What was delivered, newest first.
    fn delivered(self) -> Result<Vec<Record>, Refusal> {
        let (repository, hook) = match self.of {
            None => (None, None),
            Some((repository, hook)) => (
                Some(repository),
                Some(hook.parse::<u64>().map_err(|_| Refusal::not_found())?),
            ),
        };
        if !self.shared.outbox.has_hook(hook, repository) {
            return Err(Refusal::not_found());
        }
        let mut records = self.shared.outbox.records();
        records.retain(|record| {
            record.outcome.is_some()
                && record.hook.to.repository == repository
                && hook.is_none_or(|hook| record.hook.id == hook)
        });
        records.reverse();
        Ok(records)
    }

    /// `GET …/deliveries`, in pages that a cursor leads through.
    pub(crate) fn list(self) -> Answer {
        let records = self.delivered()?;
        let number = |name: &str| {
            self.call
                .query_value(name)
                .and_then(|text| text.parse::<usize>().ok())
        };
        let size = number("per_page").unwrap_or(USUAL).clamp(1, MOST);
        let start = match self.call.query_value("cursor") {
            None => 0,
            Some(cursor) => records
                .iter()
                .position(|record| format!("v1_{}", record.id) == cursor)
                .ok_or_else(|| Refusal::new(422, "Invalid cursor"))?,
        };
        let rows = records[start..].iter().take(size).map(render::delivery);
        let reply = Reply::ok(rows.collect());
        let Some(next) = records.get(start + size) else {
            return Ok(reply);
        };
        let link = format!(
            "<{}/{}?per_page={size}&cursor=v1_{}>; rel=\"next\"",
            self.shared.api(),
            self.call.segments.join("/"),
            next.id
        );
        Ok(reply.with("link", link))
    }

    /// `GET …/deliveries/{delivery_id}`
    pub(crate) fn show(self, id: &str) -> Answer {
        let records = self.delivered()?;
        let record = records
            .iter()
            .find(|record| record.id.to_string() == id)
            .ok_or_else(Refusal::not_found)?;
        Ok(Reply::ok(render::whole_delivery(record)))
    }

    /// `POST …/deliveries/{delivery_id}/attempts`
    pub(crate) fn repeat(self, id: &str) -> Answer {
        let records = self.delivered()?;
        let known = records.iter().any(|record| record.id.to_string() == id);
        if known
            && self
                .shared
                .outbox
                .repeat(|record| record.id.to_string() == id)
        {
            Ok(Reply::json(202, serde_json::json!({})))
        } else {
            Err(Refusal::not_found())
        }
    }
}
