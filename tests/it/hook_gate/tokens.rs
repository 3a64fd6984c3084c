//! Sessions that hold capability tokens: what is outside of them is refused, on record, whatever the policy says.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caretaker::approvals::Approvals;
use caretaker::change::Sha256Digest;
use caretaker::clock::{FixedClock, Millis};
use caretaker::hook_gate::service::Answers as _;
use caretaker::hook_gate::{
    BLOCKS, Configured, ConfiguredAnswers, Found, Home, HookEvent, HookGate, NewSession, Question,
    Reply, Scoring, SessionId, SessionTokens, ToolGrant, look_up, receipts, register,
};
use caretaker::id::OrganisationId;
use caretaker::receipts::{Constraints, Door, Intent, ToolName};
use caretaker::store::Store;
use caretaker::tool_gate::Posture;
use serde_json::{Value, json};

use super::Desk;
use crate::alignment::scene::{Scene, Stream, Wanted};

pub(super) const NOW: Millis = Millis(1_800_000_000_000);

fn strict<T>(value: &Value, read: impl FnOnce(&caretaker::attest::json::Json<'_>) -> T) -> T {
    let bytes = serde_json::to_vec(value).unwrap();
    read(&caretaker::attest::json::read(&bytes, 1 << 20).unwrap())
}

fn grant(tool: &str, constraints: &Value) -> ToolGrant {
    ToolGrant {
        tool: ToolName::parse(tool).unwrap(),
        constraints: strict(constraints, |json| Constraints::from_json(json).unwrap()),
    }
}

/// A desk whose session may read, and write `src/a` alone, for an hour.
pub(super) fn held(desk: &Desk, worktree: &Path) -> Home {
    let home = Home::new(&desk.home());
    let tokens = mint(&home, &json!({"allowed_values": {"file_path": ["src/a"]}}));
    opened(&home, "S2", worktree, &tokens);
    home
}

fn mint(home: &Home, written: &Value) -> SessionTokens {
    let intent = json!({"statement": "Mend src/a", "tools": ["Read", "Write"]});
    let intent = strict(&intent, |json| Intent::from_json(json).unwrap());
    let grants = [grant("Read", &json!({})), grant("Write", written)];
    SessionTokens::mint(home, &grants, &intent, 3_600, NOW).unwrap()
}

fn opened(home: &Home, session: &str, worktree: &Path, tokens: &SessionTokens) {
    let policy = json!({"v": 1, "task_id": "t", "path_allowlist": ["src/"], "producers": []});
    let new = NewSession {
        session: &SessionId::parse(session).unwrap(),
        policy: &serde_json::to_vec(&policy).unwrap(),
        worktree,
        intent: Some("Mend src/a"),
        sandboxed: true,
        posture: Posture::Closed,
        blocks: BLOCKS,
        tokens: Some(tokens),
        profile: None,
        now: NOW,
    };
    register(home, &new).unwrap();
}

fn asked(home: &Home, worktree: &Path, event: &Value, now: Millis) -> Reply {
    let stream = Stream::default();
    let gate = HookGate::plain(home, &stream);
    let input = serde_json::to_vec(event).unwrap();
    gate.before_tool(&question(worktree, &input, now))
}

const fn question<'a>(folder: &'a Path, input: &'a [u8], now: Millis) -> Question<'a> {
    Question {
        session: "S2",
        event: HookEvent::PreToolUse,
        input,
        folder,
        compatible: false,
        role: "worker",
        door: Door::HookGate,
        now,
    }
}

fn write(path: &str) -> Value {
    json!({"tool_name": "Write", "tool_input": {"file_path": path, "content": ""}})
}

fn last(home: &Home) -> Value {
    let folder = home.session(&SessionId::parse("S2").unwrap());
    receipts(&folder).unwrap().pop().unwrap().payload
}

#[test]
fn a_call_outside_of_its_token_is_refused() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    let allowed = asked(&home, &work, &write("src/a"), NOW);
    assert!(!allowed.blocked, "{}", allowed.reason);
    let on_record = last(&home);
    let gate = &on_record["x_gate"];
    assert_eq!(gate["decision"], "ALLOW");
    assert_eq!(gate["intent"]["statement"], "Mend src/a");
    assert_eq!(gate["intent_check"]["tool"], "Write");
    assert!(gate["token_id"].as_str().unwrap().starts_with("cap:"));

    // The policy allows all of src, the token does not.
    let refused = asked(&home, &work, &write("src/b"), NOW);
    assert!(refused.blocked);
    assert!(
        refused
            .reason
            .starts_with("capability token (constraints): constraint violated"),
        "{}",
        refused.reason
    );
    assert_eq!(last(&home)["x_gate"]["stage"], "capability-token");
    // Nor is a constrained argument under another name a way around it.
    let other = json!({"tool_name": "Write", "tool_input": {"path": "src/b", "content": ""}});
    assert!(asked(&home, &work, &other, NOW).blocked);
}

#[test]
fn a_tool_without_a_token_is_refused() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    for tool in ["Bash", "write", "mcp__x__y"] {
        let event = json!({"tool_name": tool, "tool_input": {"file_path": "src/a"}});
        let refused = asked(&home, &work, &event, NOW);
        assert!(refused.blocked);
        let expected = format!("holds no capability token for the tool {tool}");
        assert!(refused.reason.contains(&expected), "{}", refused.reason);
    }
}

#[test]
fn after_its_time_a_token_allows_nothing() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    let last_second = Millis(NOW.0 + 3_599_000);
    assert!(!asked(&home, &work, &write("src/a"), last_second).blocked);
    for wrong in [Millis(NOW.0 + 3_600_000), Millis(NOW.0 - 1_000)] {
        let refused = asked(&home, &work, &write("src/a"), wrong);
        assert!(
            refused.reason.starts_with("capability token (time)"),
            "{}",
            refused.reason
        );
    }
}

#[test]
fn a_revoked_token_allows_nothing_and_a_damaged_list_refuses_everything() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    assert!(!asked(&home, &work, &write("src/a"), NOW).blocked);
    let token = last(&home)["x_gate"]["token_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let list = desk.home().join("hook-gate/revoked-tokens");
    std::fs::write(&list, format!("# stolen\n{token}\n")).unwrap();
    let refused = asked(&home, &work, &write("src/a"), NOW);
    assert!(
        refused.reason.starts_with("capability token (revoked)"),
        "{}",
        refused.reason
    );
    std::fs::write(&list, "no token\n").unwrap();
    let read = json!({"tool_name": "Read", "tool_input": {"file_path": "src/a"}});
    let refused = asked(&home, &work, &read, NOW);
    assert!(
        refused
            .reason
            .starts_with("capability token (revocation-list)"),
        "{}",
        refused.reason
    );
}

#[test]
fn a_sub_agent_holds_a_child_of_the_token() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    assert!(!asked(&home, &work, &write("src/a"), NOW).blocked);
    let own = last(&home)["x_gate"]["token_id"].clone();
    let called = |subagent: &str, path: &str| {
        let mut event = write(path);
        event["agent_id"] = json!(subagent);
        asked(&home, &work, &event, NOW)
    };
    assert!(!called("reviewer", "src/a").blocked);
    let child = last(&home)["x_gate"]["token_id"].clone();
    assert_ne!(child, own);
    assert!(!called("writer", "src/a").blocked);
    assert_ne!(last(&home)["x_gate"]["token_id"], child);
    let refused = called("agent:../root", "src/b");
    assert!(
        refused.reason.contains("constraint violated"),
        "{}",
        refused.reason
    );
    // Who revokes the parent revokes what came from it.
    let list = desk.home().join("hook-gate/revoked-tokens");
    std::fs::write(list, own.as_str().unwrap()).unwrap();
    assert!(called("reviewer", "src/a").blocked);
}

#[test]
fn tokens_that_were_exchanged_refuse_everything() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    let file = home
        .session(&SessionId::parse("S2").unwrap())
        .join("tokens.json");
    let whole = std::fs::read(&file).unwrap();
    for other in [b"{}".as_slice(), b"", &whole[1..], b"{\"Write\":\"\"}"] {
        std::fs::write(&file, other).unwrap();
        assert!(asked(&home, &work, &write("src/a"), NOW).blocked);
    }
    std::fs::remove_file(&file).unwrap();
    assert!(asked(&home, &work, &write("src/a"), NOW).blocked);
    // Another session's, which the same key signed and which allow more.
    let wider = mint(&home, &json!({}));
    opened(&home, "S3", &work, &wider);
    let theirs = home.session(&SessionId::parse("S3").unwrap());
    std::fs::copy(theirs.join("tokens.json"), &file).unwrap();
    let refused = asked(&home, &work, &write("src/b"), NOW);
    assert!(
        refused
            .reason
            .contains("not the tokens that the session was registered with"),
        "{}",
        refused.reason
    );
    std::fs::write(&file, whole).unwrap();
    assert!(!asked(&home, &work, &write("src/a"), NOW).blocked);
}

/// A worker's own sessions work in a scratch tree below the state; the rest of the state stays closed to them.
#[test]
fn a_worktree_below_the_state_can_be_worked_in() {
    let desk = Desk::empty();
    let work = desk.home().join("scratch/step-1/fix");
    std::fs::create_dir_all(work.join("src")).unwrap();
    let home = held(&desk, &work);
    let allowed = asked(&home, &work, &write("src/a"), NOW);
    assert!(!allowed.blocked, "{}", allowed.reason);
    let state = desk.home().join("hook-gate/token.key");
    for path in [
        state.to_str().unwrap(),
        "../home/x",
        "../../../caretaker.db",
    ] {
        let read = json!({"tool_name": "Read", "tool_input": {"file_path": path}});
        let refused = asked(&home, &work, &read, NOW);
        assert!(
            refused.reason.starts_with("protected path refused"),
            "{path}: {}",
            refused.reason
        );
    }
}

const WRITES: &str = "Writes a whole file, replacing what was there.\n\nargs: {\"content\":\"\",\"file_path\":\"src/a\"}";

/// What a worker answers with, calls scored by this scene.
async fn scored(desk: &Desk, home: &Home, scene: Scene) -> ConfiguredAnswers {
    let file = format!("sqlite://{}", desk.path("q.db").display());
    let organisation = OrganisationId::new(NOW, [3; 10]);
    let stream = Arc::new(Stream::default());
    let clock = Arc::new(FixedClock::at(NOW));
    let runtime = tokio::runtime::Handle::current();
    ConfiguredAnswers {
        home: home.clone(),
        configured: Configured::default()
            .scored(Scoring::Here(Arc::new(scene.engine), runtime.clone())),
        approvals: Approvals::new(
            Store::open(&file).await.unwrap(),
            organisation,
            stream.clone(),
            clock.clone(),
            caretaker::signer::system_randomness,
            60,
        ),
        runtime,
        events: stream,
        clock,
        profile: None,
        launcher: PathBuf::from(super::program()),
        within: Duration::from_mins(1),
    }
}

/// What a running worker answers with: tokens, the configured checks, and the score in the receipt.
#[tokio::test(flavor = "multi_thread")]
async fn a_score_is_in_the_receipt_as_a_whole_number() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    let scene = Scene::new(Wanted::default());
    scene.fake.knows("Mend src/a", &[1.0, 0.0, 0.0]);
    scene.fake.knows(WRITES, &[0.6, 0.8, 0.0]);
    scene.fake.knows(
        "Reads the contents of a file.\n\nargs: {\"file_path\":\"src/a\"}",
        &[0.0, 1.0, 0.0],
    );
    let answers = scored(&desk, &home, scene).await;
    let ask = |event: Value| {
        let (answers, work) = (answers.clone(), work.clone());
        tokio::task::spawn_blocking(move || {
            let input = serde_json::to_vec(&event).unwrap();
            answers.answer(&question(&work, &input, NOW))
        })
    };
    let allowed = ask(write("src/a")).await.unwrap();
    assert!(!allowed.blocked, "{}", allowed.reason);
    let alignment = &last(&home)["x_gate"]["alignment"];
    let digest = |text: &str| format!("sha256:{}", Sha256Digest::of(text.as_bytes()));
    assert_eq!(
        alignment,
        &json!({
            "action": digest(WRITES),
            "dimensions": 0,
            "embedder": "openai-compatible:hash",
            "hard_threshold_micro": 300_000,
            "intent": digest("Mend src/a"),
            "reason": "score 0.600 above threshold 0.500",
            "score_micro": 600_000,
            "threshold_micro": 500_000,
        })
    );
    let read = json!({"tool_name": "Read", "tool_input": {"file_path": "src/a"}});
    let refused = ask(read).await.unwrap();
    assert!(
        refused.reason.starts_with("intent_alignment: "),
        "{}",
        refused.reason
    );
    assert_eq!(last(&home)["x_gate"]["alignment"]["score_micro"], 0);
    let Found::Registered(session) = look_up(&home, &SessionId::parse("S2").unwrap()) else {
        panic!("not registered");
    };
    assert!(session.tokens.is_some());
}

/// What was not measured, or not by its score, does not look as if it were.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_has_no_score_that_did_not_decide() {
    let desk = Desk::empty();
    let (home, work) = (held(&desk, &desk.work()), desk.work());
    let asked = async |scene: Scene| {
        let answers = scored(&desk, &home, scene).await;
        let work = work.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let input = serde_json::to_vec(&write("src/a")).unwrap();
            answers.answer(&question(&work, &input, NOW))
        });
        asked.await.unwrap()
    };
    let known = |wanted: Wanted| {
        let scene = Scene::new(wanted);
        scene.fake.knows("Mend src/a", &[1.0, 0.0, 0.0]);
        scene.fake.knows(WRITES, &[1.0, 0.0, 0.0]);
        scene
    };
    let exempt = known(Wanted {
        exempt: &["Write"],
        ..Wanted::default()
    });
    assert!(!asked(exempt).await.blocked);
    assert_eq!(last(&home)["x_gate"].get("alignment"), None);

    let unrecorded = known(Wanted::default());
    unrecorded
        .stream
        .full
        .store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(asked(unrecorded).await.blocked);
    let said = last(&home)["x_gate"]["alignment"].clone();
    assert_eq!(said.get("score_micro"), None, "{said}");
    assert_eq!(
        said["intent"],
        format!("sha256:{}", Sha256Digest::of(b"Mend src/a"))
    );
}
