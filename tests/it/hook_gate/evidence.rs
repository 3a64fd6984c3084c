//! What producers came to, inside a session and after it: one schema, sealed, verified by `caretaker evidence`.

use std::time::Duration;

use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::hook_gate::{
    Found, Home, Run, RunPlace, SessionId, Surroundings, look_up, read_evidence, run_and_seal,
};
use caretaker::sandbox::{Mode, Sandbox};
use serde_json::Value;

use super::{Desk, program};

fn sealed(desk: &Desk) -> Vec<Sha256Digest> {
    std::fs::read_dir(desk.session_folder().join("evidence"))
        .unwrap()
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.trim_end_matches(".json").parse().unwrap()
        })
        .collect()
}

async fn outside(desk: &Desk) {
    let home = Home::new(&desk.home());
    let id = SessionId::parse("S1").unwrap();
    let Found::Registered(session) = look_up(&home, &id) else {
        panic!("not registered");
    };
    let sandbox = Sandbox::detect(Mode::Bubblewrap, program().into())
        .await
        .unwrap();
    let evidence = run_and_seal(
        &home,
        &session,
        &sandbox,
        Surroundings::unknown(),
        Run {
            place: RunPlace::Outside,
            within: Duration::from_mins(1),
            now: Millis(1_800_000_000_000),
        },
    );
    assert!(evidence.await.unwrap().passed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_inside_and_the_authoritative_one_seal_the_same_schema() {
    let desk = Desk::new();
    desk.stop().allowed();
    outside(&desk).await;
    let mut shapes = Vec::new();
    let mut places = Vec::new();
    for digest in sealed(&desk) {
        let evidence = read_evidence(&desk.session_folder(), digest).unwrap();
        places.push(format!("{:?}", evidence.place));
        let value = serde_json::to_value(&evidence).unwrap();
        shapes.push(
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>(),
        );
    }
    places.sort();
    assert_eq!(places, ["Inside", "Outside"]);
    assert_eq!(shapes[0], shapes[1]);
    let doors: Vec<Value> = desk
        .receipts()
        .iter()
        .map(|gate| gate["door"].clone())
        .collect();
    assert_eq!(doors, ["hook-gate", "hook-gate", "library"]);
}

#[test]
fn two_refusals_in_one_second_are_two_pieces_of_evidence() {
    let mut policy = super::policy();
    policy["producers"][0]["command"] = serde_json::json!(["false"]);
    let desk = Desk::with(&policy, &[]);
    for _ in 0..2 {
        desk.run(
            &[
                "hook-gate",
                "check",
                "--session",
                "S1",
                "--event",
                "Stop",
                "--timestamp",
                "1800000000",
            ],
            b"{}",
        )
        .blocked();
    }
    assert_eq!(desk.receipts().len(), 3);
}

#[test]
fn a_whole_chain_is_valid_an_altered_one_is_not_and_one_without_its_key_cannot_be_told() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    desk.write("secrets/a").blocked();
    desk.stop().allowed();
    let verify = || desk.run(&["evidence", "verify", "S1", "--json"], b"");
    let verdict =
        |ran: &super::Ran| serde_json::from_str::<Value>(&ran.stdout).unwrap()["verdict"].clone();
    let good = verify();
    assert_eq!((good.code, verdict(&good)), (0, "valid".into()), "{good:?}");
    let shown = desk.run(&["evidence", "show", "S1"], b"");
    assert_eq!(shown.code, 0);
    assert!(
        shown.stdout.contains("path-policy") && shown.stdout.contains("tests"),
        "{}",
        shown.stdout
    );

    let file = desk.session_folder().join("receipts.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    for altered in [
        lines[..3].concat(),
        [lines[0], lines[2], lines[3]].concat(),
        [lines[0], lines[1], lines[3], lines[2]].concat(),
        whole.replacen("eyJ", "eyK", 1),
        lines[1..].concat(),
    ] {
        std::fs::write(&file, altered).unwrap();
        let bad = verify();
        assert_eq!((bad.code, verdict(&bad)), (1, "invalid".into()), "{bad:?}");
    }
    std::fs::write(&file, &whole).unwrap();
    for digest in sealed(&desk) {
        let sealed = desk
            .session_folder()
            .join(format!("evidence/{digest}.json"));
        let text = std::fs::read_to_string(&sealed).unwrap();
        std::fs::write(&sealed, text.replace("\"passed\":true", "\"passed\":false")).unwrap();
        assert_eq!(verify().code, 1, "altered evidence");
        std::fs::remove_file(&sealed).unwrap();
        assert_eq!(verify().code, 3, "evidence that is gone");
        std::fs::write(&sealed, text).unwrap();
    }
    assert_eq!(verify().code, 0);
    std::fs::remove_file(desk.home().join("hook-gate/receipt.key")).unwrap();
    let unknown = verify();
    assert_eq!(
        (unknown.code, verdict(&unknown)),
        (3, "cannot-verify".into())
    );
    assert_eq!(desk.run(&["evidence", "verify", "other"], b"").code, 3);
}
