//! Timestamps in what an auditor is given: a bundle, and a folder with the whole log.

use std::path::Path;
use std::process::Output;

use caretaker::anchor::timestamp::{Nonce, request};
use caretaker::change::Sha256Digest;
use caretaker::clock::{Clock as _, SystemClock};
use caretaker::log::SignedCheckpoint;
use caretaker::store::{Store, StoredAnchor};

use super::openssl::OpenSsl;
use crate::offline::{CARETAKER, VERIFIER, done, judged, run};
use crate::twin;

const P_256: &[&str] = &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"];

/// Keeps an authority's answer about the newest checkpoint, as the worker does; its size.
async fn stamp(home: &Path, openssl: &OpenSsl) -> u64 {
    let address = format!("sqlite://{}", home.join("caretaker.db").display());
    let store = Store::open(&address).await.unwrap();
    let organisation = store.organisation().await.unwrap().unwrap();
    let newest = store.within(&organisation).newest_checkpoint().await;
    let newest = newest.unwrap().unwrap();
    let checkpoint = SignedCheckpoint::parse(newest.note.as_bytes()).unwrap();
    let imprint = Sha256Digest::of(checkpoint.without_cosignatures().as_bytes());
    let anchor = StoredAnchor {
        size: newest.size,
        kind: "timestamp".to_owned(),
        name: "one".to_owned(),
        receipt: openssl.reply(&request(&imprint, Nonce::of(7))),
        anchored_at: SystemClock.now(),
    };
    store.keep_anchor(&organisation, &anchor).await.unwrap();
    newest.size
}

#[tokio::test]
async fn an_auditor_learns_before_which_moment_events_existed() {
    let (a, b) = (
        OpenSsl::new("Authority A", P_256),
        OpenSsl::new("Authority B", P_256),
    );
    let home = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (bundle, root, log) = (path("x.caretaker"), path("root.json"), path("log"));
    let home = home.path().join("home");
    let told = done(&run(CARETAKER, Some(&home), &["demo", "--json", "--keep"]));
    let demo: serde_json::Value = serde_json::from_str(&told).unwrap();
    let incident = demo["incident"].as_str().unwrap();
    let export = |words: &[&str]| done(&run(CARETAKER, Some(&home), words));
    export(&["ledger", "export", incident, "-o", &bundle]);
    export(&["keys", "export-trust-root", "-o", &root]);
    let roots = a.path("root.pem");
    let (roots, others) = (roots.to_str().unwrap(), b.path("root.pem"));
    let verify = |what: &str, more: &[&str]| {
        let words = ["verify", what, "--trust-root", &root];
        run(CARETAKER, None, &[&words[..], more].concat())
    };
    let with_roots = ["--timestamp-roots", roots];
    // Before there is one, that is said.
    let text = done(&verify(&bundle, &with_roots));
    assert!(text.contains("\nno timestamp is in it\n"), "{text}");

    let size = stamp(&home, &a).await;
    export(&["ledger", "export", incident, "-o", &bundle]);
    export(&["log", "export", &log]);
    export(&["log", "export", &log]);
    let text = done(&verify(&bundle, &with_roots));
    assert!(text.contains("\nevents 0 to 3 existed before "), "{text}");
    assert!(
        text.contains(" according to Authority A (its key sha256:"),
        "{text}"
    );
    let text = done(&verify(&log, &with_roots));
    let leaves = format!("\nthe first {size} leaves existed before ");
    assert!(text.contains(&leaves), "{text}");
    for what in [&bundle, &log] {
        let report = judged(
            &verify(what, &["--json", with_roots[0], with_roots[1]]),
            0,
            "valid",
        );
        assert_eq!(report["timestamps"][0]["verdict"], "valid");
        assert_eq!(report["timestamps"][0]["checkpoint"], size);
        let words = ["--json", "--timestamp-roots", others.to_str().unwrap()];
        let report = judged(&verify(what, &words), 1, "invalid");
        assert_eq!(report["failures"][0]["rule"], "timestamp");
        // The small one does not know, and says so.
        let text = done(&run(VERIFIER, None, &[what, "--trust-root", &root]));
        assert!(
            text.contains(&format!(
                "a timestamp by one over the first {size} leaves is not checked here"
            )),
            "{text}"
        );
    }
    let words = [twin::SCRIPT, &bundle, "--trust-root", &root, "--json"];
    judged(&run("python3", None, &words), 0, "valid");

    what_somebody_puts_into_a_folder_is_looked_at(&a, &log, size, &|more| verify(&log, more));
    let nowhere = ["--json", "--timestamp-roots", "nowhere.pem"];
    let missing = judged(&verify(&bundle, &nowhere), 3, "cannot-verify");
    let words = missing["failures"][0]["found"].as_str().unwrap();
    assert!(words.contains("give a PEM file"), "{words}");
}

fn what_somebody_puts_into_a_folder_is_looked_at(
    a: &OpenSsl,
    log: &str,
    size: u64,
    verify: &dyn Fn(&[&str]) -> Output,
) {
    let roots = a.path("root.pem");
    let roots = roots.to_str().unwrap();
    // What the text says to type.
    let folder = Path::new(log).join("timestamps").join(size.to_string());
    let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(a.verifies(&file("checkpoint"), &file("one.tsr")));
    // What somebody puts there is looked at.
    std::fs::write(folder.join("two.tsr"), b"words").unwrap();
    judged(&verify(&["--json"]), 0, "valid");
    judged(
        &verify(&["--json", "--timestamp-roots", roots]),
        1,
        "invalid",
    );
    std::fs::remove_file(folder.join("two.tsr")).unwrap();
    std::fs::write(folder.join("words"), b"words").unwrap();
    judged(&verify(&["--json"]), 1, "invalid");
    std::fs::remove_file(folder.join("words")).unwrap();
    let mut checkpoint = file("checkpoint");
    checkpoint[0] ^= 1;
    std::fs::write(folder.join("checkpoint"), checkpoint).unwrap();
    judged(&verify(&["--json"]), 1, "invalid");
}
