//! Projects in words and in JSON.

use serde_json::{Value, json};

use super::health::Standing;
use crate::attest::text::shown;
use crate::store::Project;

/// Every project, one a line.
pub(super) fn list(projects: &[Project], as_json: bool) -> String {
    if as_json {
        let list: Vec<Value> = projects.iter().map(summary).collect();
        return json!({ "projects": list }).to_string();
    }
    if projects.is_empty() {
        return "no projects; register one with `caretaker project register`".to_owned();
    }
    let line = |project: &Project| {
        let frozen = project.frozen.as_ref().map_or("", |_| "  frozen");
        format!(
            "{}  {:<9}  {}{frozen}",
            project.id,
            project.state.as_str(),
            shown(&project.url)
        )
    };
    projects.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One project whole.
pub(super) fn one(project: &Project, checks: &[Standing], as_json: bool) -> String {
    if as_json {
        let mut document = summary(project);
        if !checks.is_empty() {
            document["health"] = checks.iter().map(Standing::json).collect();
        }
        document["rules"] = project.rules.as_str().into();
        document["intent"] = project.intent.as_str().into();
        return document.to_string();
    }
    let time = |at: Option<crate::clock::Millis>| at.map_or("-".to_owned(), |at| at.to_string());
    let lines = [
        ("project", project.id.to_string()),
        ("state", project.state.as_str().to_owned()),
        ("repository", shown(&project.url)),
        ("number", shown(&project.repository_id)),
        ("owner", project.owner.to_string()),
        ("registered", project.created_at.to_string()),
        ("confirmed", time(project.confirmed_at)),
        ("draft digest", project.draft_digest.to_string()),
        ("rules digest", project.rules_digest.to_string()),
        (
            "frozen",
            project.frozen.as_deref().map_or("-".to_owned(), shown),
        ),
    ];
    let mut text: Vec<String> = lines
        .iter()
        .map(|(name, value)| format!("{name:<13}{value}"))
        .collect();
    text.extend(checks.iter().flat_map(Standing::lines));
    for (name, body) in [("rules", &project.rules), ("intent", &project.intent)] {
        text.push(format!("\n{name}:"));
        // Line by line: what a stranger wrote must not steer the terminal.
        text.extend(body.lines().map(|line| format!("  {}", shown(line))));
    }
    text.join("\n")
}

fn summary(project: &Project) -> Value {
    json!({
        "id": project.id,
        "state": project.state,
        "url": project.url,
        "full_name": project.full_name,
        "host": project.host,
        "repository_id": project.repository_id,
        "owner": project.owner,
        "watch": project.watch,
        "draft_digest": project.draft_digest,
        "rules_digest": project.rules_digest,
        "frozen": project.frozen,
        "created_at": project.created_at.to_string(),
        "confirmed_at": project.confirmed_at.map(|at| at.to_string()),
    })
}
