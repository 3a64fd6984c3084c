//! What an honest program needs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use super::*;

#[tokio::test]
async fn a_program_runs_and_says_how_it_ended() {
    for mode in [Mode::Auto, Mode::Bubblewrap, Mode::Landlock, Mode::None] {
        let outcome = shell(mode, "echo out; echo err >&2; exit 3").await;
        assert_eq!(outcome.status, Status::Exited(3), "{mode}: {outcome:?}");
        assert_eq!(
            (outcome.stdout.text(), outcome.stderr.text()),
            ("out\n".into(), "err\n".into())
        );
        assert!(shell(mode, "exit 0").await.status.success());
        assert_eq!(
            shell(mode, "kill -TERM $$").await.status,
            Status::Signalled(15),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn the_boundary_has_a_name_and_the_configuration_words_are_known() {
    assert_eq!(sandbox(Mode::Auto).await.describe(), "bubblewrap+landlock");
    assert_eq!(sandbox(Mode::Landlock).await.describe(), "landlock");
    assert_eq!(sandbox(Mode::None).await.describe(), "none");
    assert!(!sandbox(Mode::None).await.confines());
    assert_eq!("none".parse::<Mode>().unwrap(), Mode::None);
    assert!(
        "off"
            .parse::<Mode>()
            .unwrap_err()
            .to_string()
            .contains("auto, bubblewrap, landlock or none")
    );
}

#[tokio::test]
async fn standard_input_arrives_whole_whether_it_is_read_or_not() {
    let tree = place();
    for mode in [Mode::Bubblewrap, Mode::Landlock, Mode::None] {
        let mut command = Command::new(["sha256sum"], tree.path());
        command.stdin = vec![b'x'; 3 << 20];
        let outcome = run(mode, &command).await.unwrap();
        let expected = hex::encode(Sha256::digest(&command.stdin));
        assert_eq!(outcome.stdout.text(), format!("{expected}  -\n"), "{mode}");
        command.argv = vec!["wc".into(), "-c".into()];
        assert_eq!(
            run(mode, &command).await.unwrap().stdout.text().trim(),
            "3145728"
        );
        command.argv = vec!["true".into()];
        assert!(
            run(mode, &command).await.unwrap().status.success(),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn a_missing_program_is_told_apart_from_one_that_fails() {
    let tree = place();
    for mode in [Mode::Bubblewrap, Mode::Landlock, Mode::None] {
        let missing = run(mode, &Command::new(["no-such-program"], tree.path()))
            .await
            .unwrap_err();
        assert!(
            matches!(missing, SandboxError::NotStarted { .. }),
            "{mode}: {missing}"
        );
        assert_eq!(
            shell(mode, "exit 125").await.status,
            Status::Exited(125),
            "{mode}"
        );
        let empty: [&str; 0] = [];
        for argv in [&empty[..], &[""], &["a\0b"]] {
            let refused = run(mode, &Command::new(argv.iter().copied(), tree.path())).await;
            assert!(
                matches!(refused, Err(SandboxError::BadCommand { .. })),
                "{refused:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_sandbox_needs_a_binary_that_confines() {
    let missing = Sandbox::detect(Mode::Auto, "/no/such/caretaker".into())
        .await
        .unwrap_err();
    assert!(missing.to_string().contains("/no/such/caretaker"));
    let other = Sandbox::detect(Mode::None, "/bin/true".into())
        .await
        .unwrap_err();
    assert!(
        matches!(
            other,
            SandboxError::Lost { .. } | SandboxError::Supervisor { .. }
        ),
        "{other}"
    );
}

#[tokio::test]
async fn runs_side_by_side_do_not_meet() {
    let sandbox = sandbox(Mode::Auto).await;
    let runs: Vec<_> = (0..8)
        .map(|number| {
            let sandbox = sandbox.clone();
            tokio::spawn(async move {
                let tree = place();
                let text = format!(
                    "echo {number} > /tmp/mine; cat /tmp/mine; ls /proc | grep -c '^[0-9]'"
                );
                sandbox
                    .run(&script(&text, tree.path()))
                    .await
                    .unwrap()
                    .stdout
                    .text()
                    .into_owned()
            })
        })
        .collect();
    for (number, run) in runs.into_iter().enumerate() {
        let printed = run.await.unwrap();
        let (own, processes) = printed.trim().split_once('\n').unwrap();
        assert_eq!(own, number.to_string());
        assert!(processes.parse::<u32>().unwrap() < 8, "{printed}");
    }
}

/// Cargo, where the person running these tests has it: behind rustup's proxies or as the plain toolchain.
fn with_cargo(command: &mut Command) {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let (cargo, rustup) = (home.join(".cargo"), home.join(".rustup"));
    let mut set = |name: &str, value: &Path| {
        command
            .environment
            .push((name.to_owned(), value.display().to_string()));
    };
    if cargo.join("bin/cargo").exists() && rustup.join("toolchains").exists() {
        set("CARGO_HOME", &cargo);
        set("RUSTUP_HOME", &rustup);
        set(
            "PATH",
            Path::new(&format!(
                "{}:/usr/local/bin:/usr/bin:/bin",
                cargo.join("bin").display()
            )),
        );
        command.readable = vec![cargo, rustup];
    } else {
        let asked = std::process::Command::new("rustc")
            .args(["--print", "sysroot"])
            .output()
            .unwrap();
        let sysroot = PathBuf::from(String::from_utf8(asked.stdout).unwrap().trim());
        set(
            "PATH",
            Path::new(&format!(
                "{}:/usr/local/bin:/usr/bin:/bin",
                sysroot.join("bin").display()
            )),
        );
        command.readable = vec![sysroot];
    }
}

#[tokio::test]
async fn the_tests_of_a_crate_run_without_a_network() {
    for mode in CONFINED {
        let tree = place();
        std::fs::create_dir(tree.path().join("src")).unwrap();
        let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
        std::fs::write(tree.path().join("Cargo.toml"), manifest).unwrap();
        let source =
            "#[test] fn adds() { assert_eq!(1 + 1, 2) }\n#[test] fn fails() { assert_eq!(1, 2) }\n";
        std::fs::write(tree.path().join("src/lib.rs"), source).unwrap();
        // Not only `--lib`: the plain library is written by renaming between folders, which a ruleset can forbid.
        let mut command = Command::new(["cargo", "test", "--offline"], tree.path());
        with_cargo(&mut command);
        let outcome = run(mode, &command).await.unwrap();
        assert_eq!(
            outcome.status,
            Status::Exited(101),
            "{mode}: {}",
            outcome.stderr.text()
        );
        assert!(
            outcome.stdout.text().contains("1 passed; 1 failed"),
            "{mode}: {}",
            outcome.stdout.text()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn arguments_and_variables_arrive_byte_for_byte(
        words in prop::collection::vec(prop::collection::vec(1..=u8::MAX, 0..40), 0..6),
        value in "[^\0]{0,40}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tree = place();
        let fixed = ["sh", "-c", "printf '%s\\0' \"$@\" \"$VALUE\"", "sh"];
        let arguments = words.iter().cloned().map(OsString::from_vec);
        let mut command = Command::new(fixed.into_iter().map(OsString::from).chain(arguments), tree.path());
        command.environment = vec![("VALUE".to_owned(), value.clone())];
        let outcome = runtime.block_on(async { run(Mode::Bubblewrap, &command).await.unwrap() });
        let expected: Vec<u8> = words.iter().map(Vec::as_slice).chain([value.as_bytes()])
            .flat_map(|word| word.iter().copied().chain([0]))
            .collect();
        prop_assert_eq!(outcome.stdout.bytes, expected);
    }
}
