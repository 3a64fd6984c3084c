//! What an auditor does with what a demo left behind: export, carry away, verify with nothing but a pinned trust root.

use std::path::Path;
use std::process::{Command, Output};

use caretaker::attest::TrustRoot;
use caretaker::log::{LogPolicy, SignedCheckpoint};
use caretaker::store::{Store, StoredAnchor};
use serde_json::Value;

use crate::log::scene::{NOW, witness};
use crate::twin;

pub(crate) fn run(program: &str, home: Option<&Path>, arguments: &[&str]) -> Output {
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

pub(crate) const CARETAKER: &str = env!("CARGO_BIN_EXE_caretaker");
pub(crate) const VERIFIER: &str = env!("CARGO_BIN_EXE_caretaker-verify");

#[track_caller]
pub(crate) fn done(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
pub(crate) fn judged(output: &Output, code: i32, verdict: &str) -> Value {
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
        // With the rules that came into force.
        assert_eq!(whole["events"], 5);
        let nothing = verify(program, &["/dev/null", "--trust-root", &root, "--json"]);
        judged(&nothing, 3, "cannot-verify");
    }
    // The twin, written from docs/ledger.md, says the same.
    let twins = |bundle: &str| {
        let words = [twin::SCRIPT, bundle, "--trust-root", &root, "--json"];
        run("python3", None, &words)
    };
    judged(&twins(&bundle), 0, "valid");
    witnesses_are_asked_for(&home, incident, &root, &path("seen"));

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
            twins(&edited),
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

/// A witness sees the log's newest checkpoint; what is carried away then says so.
fn witnesses_are_asked_for(home: &Path, incident: &str, root: &str, place: &str) {
    std::fs::create_dir(place).unwrap();
    let path = |name: &str| format!("{place}/{name}");
    let (bundle, log, policy, other) = (path("x"), path("log"), path("policy"), path("other"));
    let key = done(&run(CARETAKER, Some(home), &["log", "keys"]));
    let write = |file: &str, number: u8| {
        let witness = witness(number).verifier();
        let text = format!("log {key}witness w {witness}\nquorum w\n");
        std::fs::write(file, text).unwrap();
    };
    write(&policy, 1);
    write(&other, 2);
    let export = || {
        let words = ["ledger", "export", incident, "-o", &bundle];
        done(&run(CARETAKER, Some(home), &words));
    };
    let asked = |what: &str, policy: &str, code: i32, verdict: &str| {
        let words = [what, "--trust-root", root, "--policy", policy, "--json"];
        let ours = judged(&run(VERIFIER, None, &words), code, verdict);
        let through = [&["verify"], &words[..]].concat();
        assert_eq!(judged(&run(CARETAKER, None, &through), code, verdict), ours);
        if Path::new(what).is_file() {
            let words = [&[twin::SCRIPT], &words[..]].concat();
            judged(&run("python3", None, &words), code, verdict);
        }
        ours
    };
    export();
    asked(&bundle, &policy, 3, "cannot-verify");
    let newest = ["log", "checkpoint", "--cosigned"];
    assert_eq!(run(CARETAKER, Some(home), &newest).status.code(), Some(1));
    cosign(home, root, &key);
    export();
    let report = asked(&bundle, &policy, 0, "valid");
    assert_eq!(report["cosignatures"][0]["witness"], "witness.example/w1");
    asked(&bundle, &other, 3, "cannot-verify");
    let words = ["verify", &bundle, "--trust-root", root, "--policy", &policy];
    let told = done(&run(CARETAKER, None, &words));
    assert!(
        told.contains("\ncosigned by witness.example/w1 at 2027-01-15T08:00:00Z\n"),
        "{told}"
    );
    done(&run(
        CARETAKER,
        Some(home),
        &["log", "export", &log, "--cosigned"],
    ));
    asked(&log, &policy, 0, "valid");
    asked(&log, &other, 3, "cannot-verify");
    let shown = done(&run(CARETAKER, Some(home), &newest));
    assert!(shown.contains("\n\u{2014} witness.example/w1 "), "{shown}");
    for file in ["/dev/null", &bundle, "/dev/zero"] {
        let words = [&bundle, "--trust-root", root, "--policy", file, "--json"];
        judged(&run(VERIFIER, None, &words), 3, "cannot-verify");
    }
}

/// Puts the word of witness 1 into the database of a demo, as the worker would.
fn cosign(home: &Path, root: &str, key: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let address = format!("sqlite://{}", home.join("caretaker.db").display());
        let store = Store::open(&address).await.unwrap();
        let root = TrustRoot::parse_unpinned(&std::fs::read(root).unwrap()).unwrap();
        let organisation = root.document().org.as_str().parse().unwrap();
        let newest = store.within(&organisation).newest_checkpoint().await;
        let newest = newest.unwrap().unwrap();
        let checkpoint = SignedCheckpoint::parse(newest.note.as_bytes()).unwrap();
        let policy = LogPolicy::new(vec![key.trim_end().parse().unwrap()], vec![], 0);
        let trusted = policy.unwrap().verify(&checkpoint).unwrap();
        let line = witness(1).cosign(&trusted, NOW).unwrap();
        let anchor = StoredAnchor {
            size: newest.size,
            kind: "witness".to_owned(),
            name: "auditor".to_owned(),
            receipt: format!("{line}\n").into_bytes(),
            anchored_at: NOW,
        };
        store.keep_anchor(&organisation, &anchor).await.unwrap();
    });
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
