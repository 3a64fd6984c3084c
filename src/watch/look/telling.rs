//! Telling people what a look showed, where they should know.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::super::poll::PollReport;
use super::super::standing::Standing;
use super::{Means, Watched};
use crate::clock::Millis;
use crate::connector::Condition;
use crate::incident::AuditEvent;
use crate::store::{Look, Project};

/// A limit that lasts this long is told, in milliseconds: nothing is seen meanwhile.
const LONG_LIMIT: i64 = 10 * 60 * 1000;

/// The credentials of whose limits people were told, each with when that limit ends.
#[derive(Default)]
pub(in crate::watch) struct LimitsTold(Mutex<BTreeMap<String, Millis>>);

impl LimitsTold {
    /// Notes that people are told of a credential's limit that ends at `until`. False when they know of it already: one limit stops
    /// every project of its credential.
    fn note(&self, credential: &str, until: Millis, now: Millis) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever told of it looks again when it ends, and says then whether it goes on.
        let goes_on = |end: &mut Millis| end.plus_millis(LONG_LIMIT) > now;
        told.retain(|_, end| goes_on(end));
        // Break it: answer true; a limit is then told as often as there are projects
        // (`watch::conditions::one_limit_is_told_once_however_many_projects_it_stops`).
        let known = told.insert(credential.to_owned(), until);
        known.is_none()
    }

    fn ended(&self, credential: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.remove(credential);
    }
}

impl Watched {
    /// Whether people are told of a limit now: that it lasts, once, and that it is over if they were told.
    fn tell_of_limit(
        &mut self,
        condition: Condition,
        until: Option<Millis>,
        look: &Look,
        (told, credential): (&LimitsTold, &str),
        now: Millis,
    ) -> bool {
        if condition != Condition::Limited {
            told.ended(credential);
            return std::mem::take(&mut self.limit_told);
        }
        let began = look.since.filter(|_| look.condition == condition);
        let end = until.unwrap_or(now);
        // Break it: always answer false; nobody then learns that nothing is seen
        // (`watch::conditions::a_limit_that_lasts_is_told_once_with_its_mend`).
        let lasts = end.0.saturating_sub(began.unwrap_or(now).0) >= LONG_LIMIT;
        let news = lasts && told.note(credential, end, now);
        self.limit_told |= news;
        news
    }
}

/// Tells people what changed about a project, and logs what was found. A history that cannot be written is logged. `credential` names
/// that with which the project is watched.
pub(super) async fn tell(
    means: &Means,
    look: &Look,
    watched: &mut Watched,
    (standing, until, credential): (&Standing, Option<Millis>, &str),
    report: Option<&PollReport>,
    now: Millis,
) {
    let project = &look.project;
    for incident in report.into_iter().flat_map(|report| &report.opened) {
        tracing::info!(project = %project.id, %incident, "a failure became an incident");
    }
    let remarks = report.into_iter().flat_map(|report| &report.remarks);
    let mut messages: Vec<(&'static str, String)> = remarks
        .map(|remark| ("watch-remark", format!("{}: {remark}", project.full_name)))
        .collect();
    let changed = standing.condition != look.condition;
    let told = (&*means.limits_told, credential);
    let lasting = watched.tell_of_limit(standing.condition, until, look, told, now);
    if changed || lasting {
        let mut text = in_words(project, standing);
        if lasting && standing.condition == Condition::Limited {
            text.push_str("; every other project with the same credential waits, too");
        }
        messages.push(("condition-changed", text));
    }
    for (kind, text) in messages {
        tracing::warn!(project = %project.id, "{text}");
        // A limit passes by itself and comes back; the list of projects shows it. One that lasts keeps failures from being seen.
        let limit = [standing.condition, look.condition].contains(&Condition::Limited);
        let quiet = limit && !lasting;
        let told = if kind == "condition-changed" && quiet {
            let event = AuditEvent { kind, detail: text };
            let organisation = &project.organisation;
            let store = &means.store;
            store
                .record(organisation, None, Some(&project.id), &event, now)
                .await
        } else {
            let organisation = &project.organisation;
            let store = &means.store;
            store
                .tell_of_project(organisation, &project.id, kind, &text, now)
                .await
        };
        if let Err(error) = told {
            tracing::error!(project = %project.id, %error, "the project's history cannot be written");
        }
    }
}

fn in_words(project: &Project, standing: &Standing) -> String {
    let name = &project.full_name;
    let Standing {
        condition,
        detail,
        mend,
    } = standing;
    if *condition == Condition::Fine {
        return format!("{name} can be watched again");
    }
    let detail = detail.as_deref().unwrap_or_default();
    let mend = mend
        .as_deref()
        .map_or_else(String::new, |mend| format!("; {mend}"));
    format!("{name} is {}: {detail}{mend}", condition.as_str())
}
