//! The folders of a coder's sessions: there as long as anything may need them, and no longer.

use caretaker::approve::HumanDecision;
use caretaker::hook_gate::SessionId;
use caretaker::incident::Stage;
use caretaker::worker::{SESSION_DAYS, sweep_sessions};

use super::gated::honest;
use super::world::World;

const DAY: i64 = 24 * 3_600_000;

fn sessions(world: &World) -> Vec<SessionId> {
    let gate = world.engine.gate.as_ref().unwrap();
    gate.home.sessions().unwrap()
}

// The line to break is named in `worker::retention`.
#[tokio::test(flavor = "multi_thread")]
async fn a_sessions_folder_stays_as_long_as_it_is_needed() {
    let world = honest().await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    assert_eq!(sessions(&world).len(), 2);
    // Somebody else's session, and one of an incident that is not in this database.
    let folder = world.home().join("hook-gate");
    let foreign = "inc-00000000000000000000000000-fix-12345678";
    for name in ["S1", foreign] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    // An incident that waits keeps them, however long.
    world.clock.advance_millis(60_000);
    world.answer(HumanDecision::Approve).await;
    assert_eq!(sweep_sessions(&world.engine).await.unwrap(), 0);
    assert_eq!(world.settle().await, Stage::Resolved);
    world
        .clock
        .advance_millis(i64::from(SESSION_DAYS) * DAY - 1_000);
    assert_eq!(sweep_sessions(&world.engine).await.unwrap(), 0);
    world.clock.advance_millis(2_000);
    assert_eq!(sweep_sessions(&world.engine).await.unwrap(), 2);
    let left = sessions(&world);
    let mut left: Vec<&str> = left.iter().map(SessionId::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["S1", foreign]);
    // The ledger does not need them.
    assert_eq!(world.verify().await.verdict.name(), "valid");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_incident_keeps_its_sessions_for_ever() {
    let mut world = honest().await;
    world.engine.settings.evidence_days = Some(1);
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    world.clock.advance_millis(1_000 * DAY);
    assert_eq!(sweep_sessions(&world.engine).await.unwrap(), 0);
    assert_eq!(sessions(&world).len(), 2);
}
