//! A whole worker that has brought a fix to the point where a person is asked, as cheaply as that can be had.

use caretaker::approve::HumanDecision;
use caretaker::clock::Clock as _;
use caretaker::forge::{Fault, FaultAction, Moment, RepositoryHandle};
use caretaker::incident::{EscalationReason, Fact, Stage};
use caretaker::reconcile::Difference;
use caretaker::store::Consumed;

use super::bench::asked;
use crate::attest::ledger::payload_of;
use crate::worker::world::{Setting, World};

/// An incident about which a person is asked.
pub(crate) async fn waiting() -> World {
    let world = World::new(Setting::sums()).await;
    let stage = world.settle().await;
    let facts = world.snapshot().await.facts;
    assert_eq!(stage, Stage::AwaitingApproval, "{facts:#?}");
    world
}

/// The same after the person has said yes and before the worker has seen it.
pub(crate) async fn approved() -> World {
    let world = waiting().await;
    world.answer(HumanDecision::Approve).await;
    world
}

impl World {
    /// The owner tries to use the newest link.
    pub(crate) async fn try_answer(&self, decision: HumanDecision) -> Consumed {
        let (link, now) = (self.inbox.link().unwrap(), self.clock.now());
        let store = &self.engine.store;
        let consumed = store.consume(&link, decision, None, now).await;
        consumed.unwrap()
    }

    pub(crate) fn repository(&self) -> RepositoryHandle {
        self.planted.repository.clone()
    }

    /// What happens to the nth request to merge from now on.
    pub(crate) fn merge_fails(&self, nth: usize, action: FaultAction) {
        self.fails("PUT", "/merge", nth, action);
    }

    /// What happens to the nth request of this kind from now on.
    pub(crate) fn fails(&self, method: &str, path: &str, nth: usize, action: FaultAction) {
        self.forge.fault(Fault {
            method: method.to_owned(),
            path: path.to_owned(),
            nth,
            action,
        });
    }

    /// The provider carries out what it was asked with this execution, late.
    pub(crate) async fn merge_late(&self, execution: &str) {
        let binding = self.snapshot().await.binding().unwrap().clone();
        let body = serde_json::json!({
            "merge_method": binding.merge_method.as_str(),
            "commit_title": binding.title,
            "commit_message": format!("{}\n\nCaretaker-Execution: {execution}\n", binding.body),
        });
        let url = self.forge.url();
        let url = format!("{url}/repos/acme/sums/pulls/1/merge");
        let request = reqwest::Client::new()
            .put(url)
            .bearer_auth(self.forge.token())
            .header("user-agent", "late")
            .body(body.to_string());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
    }

    /// The nth request to merge is answered with this, and has no effect.
    pub(crate) fn merge_answers(&self, nth: usize, code: u16, message: &str) {
        let body = serde_json::json!({"message": message}).to_string();
        let headers = Vec::new();
        self.merge_fails(
            nth,
            FaultAction::Status {
                code,
                body,
                headers,
            },
        );
    }

    /// Somebody does something when the first request to merge has arrived and before it takes effect.
    pub(crate) fn meanwhile(&self, act: impl FnOnce(&RepositoryHandle) + Send + 'static) {
        let repository = self.repository();
        let act = move || {
            act(&repository);
            Ok(())
        };
        self.forge.on("PUT", "/merge", 1, Moment::Before, act);
    }

    pub(crate) fn merges_asked(&self) -> usize {
        asked(&self.forge)
    }

    /// The branch of the fix.
    pub(crate) async fn branch(&self) -> String {
        self.snapshot().await.fix().unwrap().branch.clone()
    }

    /// Why it was handed over, and the rules that said no.
    pub(crate) async fn handed_over(&self) -> (EscalationReason, String, Vec<String>) {
        let snapshot = self.snapshot().await;
        let found = snapshot.facts.iter().find_map(|fact| match &fact.fact {
            Fact::Escalated {
                reason,
                detail,
                differences,
            } => Some((*reason, detail.clone(), rules(differences))),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("not handed over: {:#?}", snapshot.facts))
    }

    /// The predicate of the only signed event of this kind.
    pub(crate) async fn signed(&self, kind: &str) -> serde_json::Value {
        let scoped = self.engine.store.within(&self.project.organisation);
        let ledger = scoped.ledger(&self.incident).await.unwrap().unwrap();
        let position = self.events().await.iter().position(|name| *name == kind);
        let envelope = &ledger.rows[position.expect("it is signed")].envelope;
        let statement: serde_json::Value = serde_json::from_slice(&payload_of(envelope)).unwrap();
        statement["predicate"].clone()
    }

    /// Nothing of the fix is on the base branch, and the pull request is not merged.
    pub(crate) fn assert_unmerged(&self) {
        let pulls = self.planted.repository.pulls().unwrap();
        assert_eq!(pulls.len(), 1);
        assert_eq!(pulls[0].merge_commit, None);
        let text = self.text_on_main();
        assert!(text.contains(self.planted.wrong), "{text}");
    }

    /// The fix is on the base branch, once.
    pub(crate) fn assert_merged(&self) {
        let pulls = self.planted.repository.pulls().unwrap();
        assert_eq!(pulls.len(), 1);
        assert!(pulls[0].merge_commit.is_some());
        let text = self.text_on_main();
        assert!(text.contains(self.planted.right), "{text}");
    }

    pub(crate) fn text_on_main(&self) -> String {
        let file = self.planted.repository.file("main", self.planted.file);
        String::from_utf8(file.unwrap().unwrap()).unwrap()
    }
}

fn rules(differences: &[Difference]) -> Vec<String> {
    let mut rules: Vec<String> = differences.iter().map(|it| it.rule.clone()).collect();
    rules.dedup();
    rules
}
