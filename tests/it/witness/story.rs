//! What an auditor's machine makes of a log that is honest, and of one that is not.

use caretaker::log::{LogPolicy, NoteSignature};
use caretaker::witness::{Answer, Limits};
use tokio::process::Command;

use super::scene::{Place, WITNESS, body, client, cosigned, forked, post, served, status, step};
use crate::log::scene::{NOW, Stored, log};
use crate::serve::process::{Ended, Process};

#[test]
fn a_log_that_forks_gets_no_cosignature_for_its_second_history() {
    let place = Place::new();
    let witness = place.witness();
    let auditors = vec![place.key.clone()];
    let policy = LogPolicy::new(vec![log().verifier()], auditors, 1).unwrap();
    let honest = Stored::of(30);
    for (old, new) in [(0, 5), (5, 9)] {
        let mut checkpoint = honest.checkpoint(new);
        policy.verify(&checkpoint).unwrap_err();
        let signature = cosigned(witness.add_checkpoint(&step(&honest, old, new), NOW));
        checkpoint.add(signature).unwrap();
        let trusted = policy.verify(&checkpoint).unwrap();
        assert_eq!(trusted.cosignatures()[0].seconds, 1_800_000_000);
    }
    // A second history that shares seven leaves, signed by the log's own key and consistent in itself.
    let second = forked(7, 12);
    for new in [10, 11, 12] {
        let answer = witness.add_checkpoint(&step(&second, 9, new), NOW);
        assert_eq!(status(&answer), 422, "{answer:?}");
    }
    // The same size, another root: with or without a proof.
    for proof in [Vec::new(), second.consistency(7, 9)] {
        let answer = witness.add_checkpoint(&body(9, &proof, &second.checkpoint(9)), NOW);
        assert_eq!(answer, Answer::Conflict { size: 9 });
    }
    // From before the fork, as if nothing had been seen since.
    let answer = witness.add_checkpoint(&step(&second, 5, 12), NOW);
    assert_eq!(answer, Answer::Conflict { size: 9 });
    let answer = witness.add_checkpoint(&step(&second, 0, 12), NOW);
    assert_eq!(answer, Answer::Conflict { size: 9 });
    // The first one goes on.
    cosigned(witness.add_checkpoint(&step(&honest, 9, 30), NOW));
}

#[test]
fn a_witness_that_was_restarted_goes_on_where_it_was() {
    let place = Place::new();
    let stored = Stored::of(30);
    cosigned(place.witness().add_checkpoint(&step(&stored, 0, 8), NOW));
    let witness = place.witness();
    let seen = witness.logs()[0].1.unwrap();
    assert_eq!((seen.head, seen.at), (stored.head_at(8), NOW));
    let answer = witness.add_checkpoint(&step(&stored, 0, 9), NOW);
    assert_eq!(answer, Answer::Conflict { size: 8 });
    cosigned(witness.add_checkpoint(&step(&stored, 8, 9), NOW));
}

#[test]
fn a_crash_between_memory_and_answer_costs_one_question() {
    let place = Place::new();
    let stored = Stored::of(30);
    cosigned(place.witness().add_checkpoint(&step(&stored, 0, 8), NOW));
    // The power goes after the state is written: nobody hears this answer.
    drop(place.witness().add_checkpoint(&step(&stored, 8, 12), NOW));
    let witness = place.witness();
    let answer = witness.add_checkpoint(&step(&stored, 8, 12), NOW);
    assert_eq!(answer, Answer::Conflict { size: 12 });
    // The same tree again, from where the witness is: it says the same.
    cosigned(witness.add_checkpoint(&step(&stored, 12, 12), NOW));
    let other = forked(8, 12);
    let answer = witness.add_checkpoint(&step(&other, 12, 12), NOW);
    assert_eq!(answer, Answer::Conflict { size: 12 });
}

#[tokio::test]
async fn over_http_as_the_specification_says() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let stored = Stored::of(30);
    let (status, _, said) = post(&base, step(&stored, 0, 5)).await;
    assert_eq!(status, 200, "{said}");
    let line = NoteSignature::parse(said.strip_suffix('\n').unwrap()).unwrap();
    assert_eq!(line.name().as_str(), WITNESS);
    let (status, kind, said) = post(&base, step(&stored, 0, 9)).await;
    assert_eq!(
        (status, kind.as_str(), said.as_str()),
        (409, "text/x.tlog.size", "5\n")
    );
    let (status, _, said) = post(&base, body(5, &[], &stored.checkpoint(9))).await;
    assert_eq!(status, 422, "{said}");
    let (status, _, said) = post(&base, "old".to_owned()).await;
    assert_eq!(status, 400, "{said}");
    let client = client();
    let page = client.get(&base).send().await.unwrap();
    assert!(
        page.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/plain")
    );
    insta::assert_snapshot!(page.text().await.unwrap(), @r"
    witness auditor.example/witness+4ec42e4a+BDHevlXTfHInaLE3ExyqYIcICy4LYLlL14XRRXXPpJi8

    example.com/audit/caretaker: 5 leaves, root fKo0Xb2JKmZFTWxlEuo8PqPw0+whvj/C4jdXBf049nI=, cosigned at 2027-01-15T08:00:00Z
    ");
    let wrong = client
        .get(format!("{base}/add-checkpoint"))
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), 405);
}

fn caretaker(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
    // As on another machine: no home, no configuration.
    command.env_clear().args(arguments);
    command
}

#[tokio::test]
async fn an_auditor_sets_one_up_in_two_commands() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (place, told) = (path("witness"), path("told"));
    let init = ["witness", "init", "--name", WITNESS, "--dir", &place];
    let made = Ended::of(caretaker(&init)).await;
    assert_eq!((made.code, made.error.as_str()), (Some(0), ""));
    let key = made.out.trim_end().to_owned();
    assert!(key.starts_with("auditor.example/witness+"), "{key}");
    let log = log().verifier().to_string();
    let run = [
        "witness",
        "run",
        "--dir",
        &place,
        "--listen",
        "127.0.0.1:0",
        "--log",
        &log,
    ];
    let (process, line) = Process::start(caretaker(&run), told.as_ref()).await;
    let address = line
        .strip_prefix(&format!("caretaker: witness {key} at "))
        .unwrap();
    let stored = Stored::of(30);
    let (status, _, said) = post(address, step(&stored, 0, 5)).await;
    assert_eq!(status, 200, "{said}");
    // A second process would not know what the first cosigned.
    let second = Ended::of(caretaker(&run)).await;
    assert_eq!(second.code, Some(1));
    assert!(
        second.error.contains("another process runs this witness"),
        "{}",
        second.error
    );
    assert!(process.log().contains("cosigned"), "{}", process.log());
    process.kill().await;
    // After a power cut it knows what it knew.
    let (process, line) = Process::start(caretaker(&run), told.as_ref()).await;
    let address = line.rsplit(' ').next().unwrap();
    let (status, _, said) = post(address, step(&stored, 0, 9)).await;
    assert_eq!((status, said.as_str()), (409, "5\n"));
    assert_eq!(process.terminate().await, Some(0));
    // Without its memory, and without keys, it says why it does not run.
    std::fs::remove_file(folder.path().join("witness/state")).unwrap();
    let forgotten = Ended::of(caretaker(&run)).await;
    assert_eq!(forgotten.code, Some(1));
    assert!(
        forgotten.error.contains("Restore it"),
        "{}",
        forgotten.error
    );
    let none = Ended::of(caretaker(&["witness", "run", "--dir", &place])).await;
    assert_eq!(none.code, Some(2), "{}", none.error);
    let again = Ended::of(caretaker(&init)).await;
    assert_eq!(again.code, Some(1), "{}", again.error);
    let named = ["witness", "init", "--name", "a name", "--dir", &place];
    assert_eq!(Ended::of(caretaker(&named)).await.code, Some(2));
}
