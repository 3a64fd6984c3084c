//! A coder whose calls are held against the intent: every score is signed, named in the proposal, and missed when it is changed.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use caretaker::agent::{
    AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, FixSummary, GatedTool,
    Governance, Permission, ToolAccess,
};
use caretaker::attest::predicate::{GateAnswer, GateStage, IntentScore, ScoreAnswer};
use caretaker::attest::statement::Predicate;
use caretaker::attest::{Evidence, Statement};
use caretaker::change::Sha256Digest;
use caretaker::hook_gate::{Configured, Scoring};
use caretaker::incident::{SessionFact, Stage};
use caretaker::intent::action_text;
use caretaker::tool_gate::tool_description;
use serde_json::{Value, json};
use sqlx::sqlite::SqlitePool;

use super::gated::{evidence, gate, outcomes, proposal, report, write};
use super::sums;
use super::world::{Setting, World};
use crate::alignment::scene::{Fake, Scene, Stream, Wanted};
use crate::attest::ledger::payload_of;

/// Reads what has nothing to do with the task, once far from it and once so that nothing can be measured.
struct Wanders;

async fn read(session: &AgentSession, path: &str) -> Permission {
    let arguments = json!({"path": path});
    session.guard.before_call("read_file", &arguments).await
}

#[async_trait]
impl Coder for Wanders {
    fn describe(&self) -> AgentDescription {
        sums::coder().describe()
    }

    fn governance(&self) -> Governance {
        let tool = |name: &str, access| GatedTool {
            name: name.to_owned(),
            access,
        };
        Governance::Gated(vec![
            tool("read_file", ToolAccess::Reads),
            tool("write_file", ToolAccess::Writes { path: Some("path") }),
        ])
    }

    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        let session = session.unwrap();
        assert_eq!(read(session, "sums.py").await, Permission::Granted);
        session.report(report(1));
        sums::coder().diagnose(task, tree, None).await
    }

    async fn fix(
        &self,
        _: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        let session = session.unwrap();
        for (path, content) in [
            ("sums.py", sums::RIGHT_MODULE),
            ("test_more.py", sums::NEW_TEST),
        ] {
            let asked = write(session, tree, path, content).await;
            assert_eq!(asked, Permission::Granted);
        }
        // Refused by its token, before it is scored.
        let outside = write(session, tree, "README.md", "Mine.\n").await;
        assert!(matches!(outside, Permission::Refused(_)));
        for path in ["test_sums.py", "README.md"] {
            if let Permission::Refused(reason) = read(session, path).await {
                assert!(reason.contains("intent_alignment: "), "{reason}");
            }
        }
        session.report(report(5));
        Ok(FixSummary {
            title: "Add instead of subtracting".to_owned(),
            summary: "The sign was wrong.".to_owned(),
        })
    }
}

fn action(tool: &str, arguments: &Value) -> String {
    action_text(tool, tool_description(tool), &arguments.to_string())
}

/// An embedder to which the task's own calls are like any intent, one read is its opposite, and another nothing at all.
fn told(fake: &Fake) {
    let near = [
        action("read_file", &json!({"path": "sums.py"})),
        action(
            "write_file",
            &json!({"path": "sums.py", "content": sums::RIGHT_MODULE}),
        ),
        action(
            "write_file",
            &json!({"path": "test_more.py", "content": sums::NEW_TEST}),
        ),
    ];
    for text in near {
        fake.knows(&text, &[1.0; 64]);
    }
    let (far, nothing) = ("test_sums.py", "README.md");
    fake.knows(&action("read_file", &json!({"path": far})), &[-1.0; 64]);
    fake.knows(&action("read_file", &json!({"path": nothing})), &[0.0; 64]);
}

async fn world(scoring: bool) -> World {
    let mut world = World::new(Setting {
        coder: Some(Arc::new(Wanders)),
        ..Setting::sums()
    })
    .await;
    let mut answers = gate(&world, Arc::clone(&world.engine.events));
    if scoring {
        let scene = Scene::new(Wanted {
            thresholds: (0.3, 0.2),
            ..Wanted::default()
        });
        told(&scene.fake);
        let runtime = tokio::runtime::Handle::current();
        answers.configured =
            Configured::default().scored(Scoring::Here(Arc::new(scene.engine), runtime));
    }
    world.engine.gate = Some(Arc::new(answers));
    world
}

async fn fixed(world: &World) -> SessionFact {
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    let snapshot = world.snapshot().await;
    snapshot.fix().unwrap().session.clone().unwrap()
}

async fn listed(world: &World, session: &SessionFact) -> Vec<Sha256Digest> {
    let list = session.scores.unwrap();
    let names: Vec<Sha256Digest> =
        serde_json::from_slice(&evidence(world, list.sha256).await).unwrap();
    assert_eq!(names.len() as u64, list.count);
    names
}

async fn score(world: &World, name: Sha256Digest) -> IntentScore {
    let statement = Statement::parse(&payload_of(&evidence(world, name).await)).unwrap();
    let Predicate::Evidence(Evidence::IntentScore(score)) = statement.predicate() else {
        panic!("not a score");
    };
    (**score).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_score_is_signed_and_a_changed_one_is_found() {
    let world = world(true).await;
    let session = fixed(&world).await;
    let outcomes = outcomes(&world, &session).await;
    assert_eq!(outcomes.len(), 5);
    let denied = (
        "read_file".to_owned(),
        GateAnswer::Deny,
        GateStage::Alignment,
    );
    assert_eq!((&outcomes[3], &outcomes[4]), (&denied, &denied));

    let names = listed(&world, &session).await;
    let mut scores = Vec::new();
    for name in &names {
        scores.push(score(&world, *name).await);
    }
    // The third call was refused before it was scored.
    let calls: Vec<u64> = scores.iter().map(|score| score.call).collect();
    assert_eq!(calls, [0, 1, 3, 4]);
    let answers: Vec<ScoreAnswer> = scores.iter().map(|score| score.answer).collect();
    let [allow, deny] = [ScoreAnswer::Allow, ScoreAnswer::Deny];
    assert_eq!(answers, [allow, allow, deny, deny]);
    assert!(scores[0].score_micro.unwrap() > 300_000);
    assert!(scores[2].score_micro.unwrap() < 0);
    assert_eq!(scores[3].score_micro, None);
    assert!(!scores[3].reason.as_ref().unwrap().as_str().is_empty());
    let read = action("read_file", &json!({"path": "test_sums.py"}));
    let first = &scores[2];
    assert_eq!(first.action.sha256, Sha256Digest::of(read.as_bytes()));
    assert_eq!(first.session.as_str(), session.id);
    assert_eq!(
        (first.threshold_micro, first.hard_threshold_micro),
        (300_000, 200_000)
    );
    assert_eq!(
        (first.embedder.id.as_str(), first.embedder.model.as_str()),
        ("openai-compatible", "hash")
    );
    assert!(
        scores
            .iter()
            .all(|score| score.intent == first.intent && score.receipt.is_some())
    );

    let signed = proposal(&world).await["session"]["scores"].clone();
    let list = session.scores.unwrap();
    assert_eq!(
        signed,
        json!({"sha256": list.sha256.to_string(), "count": 4})
    );
    assert_eq!(world.verify().await.verdict.name(), "valid");

    let file = world.home().join("caretaker.db");
    let url = format!("sqlite://{}", file.display());
    let pool = SqlitePool::connect(&url).await.unwrap();
    sqlx::query("DROP TRIGGER evidence_no_update")
        .execute(&pool)
        .await
        .unwrap();
    let better = score_document(&evidence(&world, names[2]).await);
    let change = sqlx::query("UPDATE evidence SET bytes = $1 WHERE digest = $2")
        .bind(better)
        .bind(names[2].to_string());
    assert_eq!(change.execute(&pool).await.unwrap().rows_affected(), 1);
    let report = world.verify().await;
    assert_eq!(report.verdict.name(), "invalid");
    let words = report.failures[0].to_string();
    assert!(
        words.contains(&format!("the score {} of a call", names[2])),
        "{words}"
    );
}

/// The envelope with another score in it.
fn score_document(envelope: &[u8]) -> Vec<u8> {
    let payload = String::from_utf8(payload_of(envelope)).unwrap();
    let mut document: Value = serde_json::from_str(&payload).unwrap();
    document["predicate"]["score_micro"] = json!(900_000);
    document["predicate"]["answer"] = json!("allow");
    let payload = serde_json::to_vec(&document).unwrap();
    crate::attest::ledger::forge(
        caretaker::attest::dsse::IN_TOTO,
        &payload,
        &crate::attest::ledger::seed(caretaker::attest::Role::Policy),
    )
}

/// The tools are told, the tokens are not.
#[tokio::test(flavor = "multi_thread")]
async fn that_a_session_was_given_tokens_is_told() {
    let mut world = world(false).await;
    let stream = Arc::new(Stream::default());
    world.engine.events = Arc::clone(&stream) as Arc<_>;
    let session = fixed(&world).await;
    let told = stream.all();
    let given: Vec<_> = told
        .iter()
        .filter(|event| event.event == "credential_issued")
        .collect();
    assert_eq!(given.len(), 2, "for the diagnosis, and for the fix");
    let fields = &given[1].fields;
    assert_eq!(fields["session"], session.id);
    assert_eq!(fields["tools"], json!(["read_file", "write_file"]));
    assert_eq!(fields["sha256"], session.tokens.to_string());
    assert_eq!(given[0].fields["tools"], json!(["read_file"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_alignment_is_off_no_score_is_made() {
    let world = world(false).await;
    let session = fixed(&world).await;
    assert_eq!(session.scores, None);
    assert_eq!(proposal(&world).await["session"].get("scores"), None);
    assert_eq!(world.verify().await.verdict.name(), "valid");
}
