//! What an auditor does with what a demo left behind: export, carry away, verify with nothing but a pinned trust root.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(program: &str, home: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments);
    match home {
        Some(home) => command.env("CARETAKER_HOME", home),
        // As on another machine: no home, no configuration.
        None => command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default()),
    };
    command.output().unwrap()
}

const CARETAKER: &str = env!("CARGO_BIN_EXE_caretaker");
const VERIFIER: &str = env!("CARGO_BIN_EXE_caretaker-verify");

#[track_caller]
fn done(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn judged(output: &Output, code: i32, verdict: &str) -> Value {
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(document["verdict"], verdict, "{told}");
    document
}

#[test]
#[allow(
    clippy::too_many_lines,
    reason = "one story, from the export to every way of changing it"
)]
fn a_stranger_verifies_what_was_carried_away() {
    let home = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (bundle, root, log, state) = (
        path("x.caretaker"),
        path("root.json"),
        path("log"),
        path("state.json"),
    );
    let home = home.path().join("home");
    let told = done(&run(CARETAKER, Some(&home), &["demo", "--json", "--keep"]));
    let demo: Value = serde_json::from_str(&told).unwrap();
    let incident = demo["incident"].as_str().unwrap();
    done(&run(
        CARETAKER,
        Some(&home),
        &["ledger", "export", incident, "-o", &bundle],
    ));
    done(&run(
        CARETAKER,
        Some(&home),
        &["keys", "export-trust-root", "-o", &root],
    ));
    done(&run(CARETAKER, Some(&home), &["log", "export", &log]));

    let both = [CARETAKER, VERIFIER];
    let words = |program: &str, what: &[&str]| {
        let mut words: Vec<String> = Vec::new();
        if program == CARETAKER {
            words.push("verify".to_owned());
        }
        words.extend(what.iter().map(|word| (*word).to_owned()));
        words
    };
    let verify = |program: &str, what: &[&str]| {
        let words = words(program, what);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        run(program, None, &words)
    };
    for program in both {
        let report = judged(
            &verify(program, &[&bundle, "--trust-root", &root, "--json"]),
            0,
            "valid",
        );
        assert_eq!(report["events"].as_array().unwrap().len(), 4);
        assert_eq!(report["ending"], "finished");
        let whole = judged(
            &verify(program, &[&log, "--trust-root", &root, "--json"]),
            0,
            "valid",
        );
        assert_eq!(whole["events"], 4);
        let nothing = verify(program, &["/dev/null", "--trust-root", &root, "--json"]);
        judged(&nothing, 3, "cannot-verify");
    }
    // The twin, written from docs/ledger.md, says the same.
    let twin = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verifier.py");
    let twin = |bundle: &str| {
        let words = [
            twin.to_str().unwrap(),
            bundle,
            "--trust-root",
            &root,
            "--json",
        ];
        run("python3", None, &words)
    };
    judged(&twin(&bundle), 0, "valid");

    // The second time only what is new is verified.
    let again = [
        log.as_str(),
        "--trust-root",
        &root,
        "--state",
        &state,
        "--json",
    ];
    let first = judged(&verify(VERIFIER, &again), 0, "valid");
    let second = judged(&verify(VERIFIER, &again), 0, "valid");
    assert_eq!(first["verified"], first["leaves"]);
    assert_eq!(second["verified"], 0);

    // One changed byte, wherever it is.
    let bytes = std::fs::read(&bundle).unwrap();
    for place in (0..bytes.len()).step_by(bytes.len() / 12) {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        let edited = path("edited.caretaker");
        std::fs::write(&edited, &changed).unwrap();
        for output in [
            verify(VERIFIER, &[&edited, "--trust-root", &root, "--json"]),
            twin(&edited),
        ] {
            let code = output.status.code();
            assert!(matches!(code, Some(1 | 3)), "byte {place}: {code:?}");
        }
    }
    let entries = Path::new(&log).join("tile/entries");
    let file = std::fs::read_dir(entries.join("000.p"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut changed = std::fs::read(&file).unwrap();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&file, &changed).unwrap();
    let edited = verify(VERIFIER, &[&log, "--trust-root", &root, "--json"]);
    judged(&edited, 1, "invalid");
}

#[test]
fn wrong_words_are_told_from_wrong_bundles() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    for words in [
        &[][..],
        &["x"],
        &["x", "--trust-root"],
        &["x", "y", "--trust-root", "z"],
        &["--nonsense"],
    ] {
        let output = run(VERIFIER, None, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("caretaker-verify: "));
    }
    assert!(done(&run(VERIFIER, None, &["--help"])).contains("--trust-root"));
    let pin = "0".repeat(64);
    let missing = path("missing.caretaker");
    for bundle in [
        missing.as_str(),
        "/dev/zero",
        place.path().to_str().unwrap(),
    ] {
        let output = run(VERIFIER, None, &[bundle, "--trust-root", &pin, "--json"]);
        judged(&output, 3, "cannot-verify");
    }
}
