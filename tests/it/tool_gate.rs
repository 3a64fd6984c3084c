//! The gate's decision about one call of a tool: which calls go on, which do not, and which check says so.

mod allowlist;
mod approval;
mod arguments;
mod call_pattern;
mod descriptions;
mod events;
mod failures;
mod order;
mod ordinary;
mod patch;
mod policy;
mod properties;
mod protected;
mod shell;
mod shell_differences;
mod table;

use std::collections::BTreeMap;

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::{
    Access, Answer, Below, Call, Decision, Mention, NoStages, Place, Places, Policy, Posture,
    Session, Standing, Touch, decide,
};
use serde_json::{Value, json};

/// A worktree that is only told of: its top, and its links by their place, each with where it leads.
struct Tree {
    top: String,
    links: BTreeMap<String, String>,
    folds: bool,
}

impl Tree {
    fn new() -> Self {
        Self::at("/work")
    }

    fn at(top: &str) -> Self {
        Self {
            top: top.to_owned(),
            links: BTreeMap::new(),
            folds: false,
        }
    }

    fn link(mut self, place: &str, leads_to: &str) -> Self {
        let place = format!("{}/{place}", self.top);
        self.links.insert(place, leads_to.to_owned());
        self
    }

    /// A path without `.`, `..` and, if wanted, links.
    fn resolved(&self, path: &str, follow: bool) -> String {
        let mut names: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut out: Vec<String> = Vec::new();
        let mut steps = 0;
        while let Some(name) = names.pop() {
            steps += 1;
            assert!(steps < 1000, "links go round in circles");
            match name.as_str() {
                "" | "." => {}
                ".." => drop(out.pop()),
                _ => {
                    out.push(name);
                    let here = format!("/{}", out.join("/"));
                    if let Some(target) = self.links.get(&here).filter(|_| follow) {
                        if target.starts_with('/') {
                            out.clear();
                        } else {
                            out.pop();
                        }
                        names.extend(target.split('/').rev().map(str::to_owned));
                    }
                }
            }
        }
        format!("/{}", out.join("/"))
    }

    fn below(&self, path: &str) -> Option<Vec<u8>> {
        let rest = path.strip_prefix(&self.top)?;
        (rest.is_empty() || rest.starts_with('/'))
            .then(|| rest.trim_start_matches('/').as_bytes().to_vec())
    }
}

impl Places for Tree {
    fn place(&self, folder: Option<&str>, touch: &Touch) -> Place {
        if touch.path.contains('\0') || touch.path.starts_with('~') {
            return Place::Nowhere("no such name".to_owned());
        }
        let from = match folder {
            Some(folder) if !touch.from_top => folder,
            _ => &self.top,
        };
        let whole = if touch.path.starts_with('/') {
            touch.path.clone()
        } else {
            format!("{from}/{}", touch.path)
        };
        let (real, spelled) = (self.resolved(&whole, true), self.resolved(&whole, false));
        if real.starts_with("/state") {
            return Place::GateState;
        }
        match self.below(&real) {
            Some(path) => Place::Inside {
                path,
                spelled: self.below(&spelled).unwrap_or_default(),
            },
            None => Place::Outside,
        }
    }

    fn reaches_state(&self, folder: Option<&str>, mention: &Mention) -> bool {
        let touch = Touch::new(mention.text.clone(), Access::Read);
        self.place(folder, &touch) == Place::GateState
    }

    fn below(&self, _folder: Option<&str>, _touch: &Touch) -> Below {
        Below::Harmless
    }

    fn folds(&self) -> bool {
        self.folds
    }
}

/// A policy over an allowlist, with one required producer.
fn policy(allowlist: &[&str]) -> Policy {
    let document = json!({
        "v": 1,
        "task_id": "task-1",
        "path_allowlist": allowlist,
        "producers": [{"name": "tests", "kind": "test", "command": ["cargo", "test"], "required": true}],
    });
    Policy::parse(document.to_string().as_bytes()).unwrap()
}

fn session(allowlist: &[&str], sandboxed: bool) -> Session {
    Session {
        policy: policy(allowlist),
        sandboxed,
        profile: None,
    }
}

/// The policy of the neighbour's own table.
const USUAL: [&str; 2] = ["src/", "docs/*.md"];

/// What is decided about a call outside the sandbox, by our own checks alone.
fn decided(call: &Call, allowlist: &[&str], tree: &Tree) -> Decision {
    let session = session(allowlist, false);
    decide(
        call,
        Standing::Gated(&session),
        Posture::Closed,
        tree,
        &NoStages,
    )
}

fn call(tool: &str, arguments: Value) -> Call {
    Call::new(tool, arguments)
}

fn write(path: &str) -> Call {
    call("Write", json!({"file_path": path, "content": "x"}))
}

fn bash(command: &str) -> Call {
    call("Bash", json!({"command": command}))
}

fn assert_allowed(decision: &Decision) {
    assert_eq!(
        (decision.answer, decision.reason.as_deref()),
        (Answer::Allow, None),
        "{decision:?}"
    );
}

fn assert_denied(decision: &Decision, stage: GateStage) {
    assert_eq!(
        (decision.answer, decision.stage),
        (Answer::Deny, stage),
        "{decision:?}"
    );
    let reason = decision.reason.as_deref();
    assert!(reason.is_some_and(|reason| !reason.is_empty()), "silent");
}
