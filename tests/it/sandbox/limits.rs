//! Using up the machine.

use std::time::Duration;

use super::*;

async fn limited(
    mode: Mode,
    text: &str,
    change: impl Fn(&mut caretaker::sandbox::Limits),
) -> Outcome {
    let tree = place();
    let mut command = script(text, tree.path());
    command.limits.wall = Duration::from_mins(1);
    change(&mut command.limits);
    run(mode, &command).await.unwrap()
}

// Break: the `overflow.notify_one()` of `run::collect`.
#[tokio::test]
async fn endless_output_ends_the_run_and_is_cut_at_the_limit() {
    for mode in CONFINED {
        for stream in ["1", "2"] {
            let outcome = limited(mode, &format!("yes >&{stream}"), |limits| {
                limits.output = 100_000;
            })
            .await;
            assert_eq!(outcome.status, Status::OutputLimit, "{mode}");
            let (loud, quiet) = match stream {
                "1" => (outcome.stdout, outcome.stderr),
                _ => (outcome.stderr, outcome.stdout),
            };
            assert_eq!((loud.bytes.len(), loud.cut), (100_000, true), "{mode}");
            assert!(!quiet.cut, "{mode}");
        }
    }
}

#[tokio::test]
async fn a_program_that_prints_too_much_and_ends_at_once_has_printed_too_much() {
    let outcome = limited(Mode::Landlock, "head -c 1001 /dev/zero", |limits| {
        limits.output = 1000;
    })
    .await;
    assert_eq!(
        (outcome.status, outcome.stdout.bytes.len()),
        (Status::OutputLimit, 1000)
    );
    let outcome = limited(Mode::Landlock, "head -c 1000 /dev/zero", |limits| {
        limits.output = 1000;
    })
    .await;
    assert_eq!(
        (outcome.status, outcome.stdout.cut),
        (Status::Exited(0), false)
    );
}

async fn forks(mode: Mode, text: &str) {
    let outcome = limited(mode, text, |limits| {
        limits.processes = 60;
        limits.wall = Duration::from_secs(3);
    })
    .await;
    assert_eq!(outcome.stdout.text(), "", "{mode}: {:?}", outcome.status);
    let refused = outcome.stderr.text().to_lowercase().contains("fork");
    assert!(
        refused || outcome.status == Status::ProcessLimit,
        "{mode}: {outcome:?}"
    );
}

// Break: `Resource::Nproc` in `confine::limit`; as root, the count in `supervise::await_end_counting`.
#[tokio::test]
async fn the_number_of_processes_is_bounded() {
    let many = "i=0; while [ $i -lt 500 ]; do sleep 600 & i=$((i+1)); done; echo all; wait";
    for mode in CONFINED {
        forks(mode, many).await;
    }
}

// Break: the limit of the same name in `confine::limit`.
#[tokio::test]
async fn files_time_memory_and_descriptors_are_bounded() {
    for mode in CONFINED {
        let outcome = limited(
            mode,
            "head -c 200000 /dev/zero > file; wc -c < file",
            |limits| {
                limits.file_size = 100_000;
            },
        )
        .await;
        assert_eq!(outcome.stdout.text().trim(), "100000", "{mode}");
        let outcome = limited(mode, "while :; do :; done", |limits| limits.cpu_seconds = 1).await;
        assert!(
            matches!(outcome.status, Status::Signalled(9 | 24)),
            "{mode}: {:?}",
            outcome.status
        );
        let eat = "perl -e '$x = q(x) x 500_000_000; print qq(had it\\n)'";
        let outcome = limited(mode, eat, |limits| limits.address_space = Some(300 << 20)).await;
        assert_eq!(outcome.stdout.text(), "", "{mode}");
        let outcome = limited(mode, "ulimit -n; ulimit -c", |limits| {
            limits.open_files = 77;
        })
        .await;
        assert_eq!(outcome.stdout.text(), "77\n0\n", "{mode}");
        let outcome = limited(mode, "ulimit -n 78", |limits| limits.open_files = 77).await;
        assert!(!outcome.status.success(), "{mode}");
    }
}

// Break: `--size` in `bubblewrap::arguments`.
#[tokio::test]
async fn the_private_temporary_directory_is_bounded_and_private() {
    let text = "head -c 3000000 /dev/zero > $TMPDIR/big; head -c 3000000 /dev/zero > /dev/shm/big; ls /tmp";
    let outcome = limited(Mode::Bubblewrap, text, |limits| limits.temporary = 1 << 20).await;
    assert_eq!(
        outcome.stderr.text().matches("No space left").count(),
        2,
        "{}",
        outcome.stderr.text()
    );
    assert!(
        outcome.stdout.text().starts_with("big\n"),
        "only its own file and tree: {}",
        outcome.stdout.text()
    );
    let outcome = shell(
        Mode::Landlock,
        "echo x > $TMPDIR/mine && cat $TMPDIR/mine; ls /tmp",
    )
    .await;
    assert_eq!(outcome.stdout.text(), "x\n");
}
