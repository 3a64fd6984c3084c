//! What strangers and people write: webhooks, logs of test runs, changes, rules, configuration, links.

use caretaker::agent::reader;
use caretaker::approve::{ApprovalToken, Principal};
use caretaker::change::{
    ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, RepoPath, Sha256Digest, Side,
};
use caretaker::config::{Configuration, Environment, rules_from_yaml, yaml_value};
use caretaker::gate::Rules;
use caretaker::hook::{Delivery, DeliveryId, EventName, Signature};
use caretaker::provenance::{ContextEntry, ContextManifest};

use super::super::ledger::oid;
use super::{Target, text, words};

pub(super) fn targets() -> Vec<Target> {
    vec![
        webhook(),
        header(),
        log(),
        change(),
        manifest(),
        rules(),
        configuration(),
        token(),
    ]
}

const RUN: &str = r#"{"action":"completed","workflow_run":{"id":30433642,"run_attempt":1,"status":"completed","updated_at":"2027-01-15T08:00:00Z"},"repository":{"id":1296269,"full_name":"octo/hello"}}"#;
const PUSH: &str = r#"{"ref":"refs/heads/main","after":"6113728f27ae82c7b1a177c8d03f9e96e0adf246","repository":{"id":1}}"#;
const ADDED: &str = r#"{"repositories_added":[{"id":1},{"id":2}],"repositories_removed":[]}"#;

fn webhook() -> Target {
    let good = [RUN, PUSH, ADDED]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
    let events = [
        "workflow_run",
        "push",
        "installation_repositories",
        "check_run",
        "status",
    ];
    let events: Vec<EventName> = events
        .iter()
        .filter_map(|event| event.parse().ok())
        .collect();
    Target::new("webhook", good, move |bytes| {
        let mut told = Err("no event".to_owned());
        for event in &events {
            told = Delivery::read(event, bytes).map_err(words).map(|delivery| {
                assert!(delivery.repositories.len() <= caretaker::hook::MOST_REPOSITORIES);
                assert!(delivery.repositories.is_sorted());
            });
        }
        told
    })
}

fn header() -> Target {
    let good = [
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "workflow_run",
    ];
    Target::new(
        "header",
        good.map(|text| text.as_bytes().to_vec()).to_vec(),
        |bytes| {
            let signature = Signature::parse(bytes).is_some();
            let text = text(bytes)?;
            let name = text
                .parse::<EventName>()
                .map(|name| assert_eq!(name.as_str(), text));
            let id = text
                .parse::<DeliveryId>()
                .map(|id| assert_eq!(id.as_str(), text));
            if signature || id.is_ok() {
                Ok(())
            } else {
                name.map_err(words)
            }
        },
    )
}

/// No fact of a log is anything but what stands in it.
fn log() -> Target {
    let good = [
        "running 1 test\ntest tests::eq ... FAILED\n\nfailures:\n\n---- tests::eq stdout ----\nthread 'tests::eq' panicked at src/lib.rs:4:5:\nassertion failed\n\nfailures:\n    tests::eq\n\ntest result: FAILED. 0 passed; 1 failed\n",
        "=== short test summary info ===\nFAILED test_x.py::test_eq - AssertionError: assert 1 == 2\n=== 1 failed in 0.01s ===\n",
        "FAIL: test_eq (test_x.T)\nTraceback (most recent call last):\n  File \"test_x.py\", line 4, in test_eq\nAssertionError: 1 != 2\n\nFAILED (failures=1)\n",
    ];
    let tracked = |path: &str| ["src/lib.rs", "test_x.py"].contains(&path);
    Target::new(
        "ci-log",
        good.map(|text| text.as_bytes().to_vec()).to_vec(),
        move |bytes| {
            let (extraction, report) = reader::read(bytes, 0, &tracked);
            assert!(extraction.facts.len() <= reader::FACT_LIMIT);
            assert_eq!(extraction.bytes, bytes.len() as u64);
            let again = reader::read(bytes, 0, &tracked);
            assert_eq!(
                again,
                (extraction.clone(), report.clone()),
                "the same log is read another way"
            );
            if extraction.facts.is_empty() {
                return Err(format!("{:?}", report.tool));
            }
            Ok(())
        },
    )
}

fn change() -> Target {
    let side = |mode, digit| Side {
        mode,
        oid: oid(digit),
    };
    let entry = |path: &[u8], old, new| {
        Some(FileChange {
            path: RepoPath::from_bytes(path).ok()?,
            old,
            new,
        })
    };
    let entries = [
        entry(
            b"src/lib.rs",
            side(Mode::Regular, 'a'),
            side(Mode::Regular, 'b'),
        ),
        entry(
            b"caf\xc3\xa9",
            side(Mode::Regular, 'c'),
            side(Mode::Executable, 'c'),
        ),
    ];
    let set = ChangeSet::new(ObjectFormat::Sha1, entries.into_iter().flatten().collect());
    let good = set
        .ok()
        .and_then(|set| serde_json::to_vec(&ChangeDocument::from(&set)).ok());
    Target::new("change", good.into_iter().collect(), |bytes| {
        let document: ChangeDocument = serde_json::from_slice(bytes).map_err(words)?;
        let set = ChangeSet::try_from(&document).map_err(words)?;
        let again = ChangeSet::try_from(&ChangeDocument::from(&set)).map_err(words)?;
        assert_eq!(
            (set.digest(), set.count()),
            (document.digest, document.count)
        );
        assert_eq!(again, set);
        Ok(())
    })
}

fn manifest() -> Target {
    let digest = |text: &str| Sha256Digest::of(text.as_bytes());
    let entries = vec![
        ContextEntry::Quarantined {
            name: "log:17".to_owned(),
            raw: digest("raw"),
            extraction: digest("extraction"),
        },
        ContextEntry::Direct {
            name: "intent".to_owned(),
            sha256: digest("intent"),
        },
    ];
    let good = ContextManifest::new(entries).map(|manifest| manifest.canonical());
    Target::new("manifest", good.into_iter().collect(), |bytes| {
        let manifest = ContextManifest::from_canonical(bytes).map_err(words)?;
        assert_eq!(manifest.canonical(), bytes);
        Ok(())
    })
}

const RULES: &str = "denied:\n  - src/auth/**\n  - {glob: \"*.pem\", reason: keys are changed by people}\ninfrastructure: [deploy/**]\ndata: [migrations/**]\nsensitive: []\nlimits: {files: 20, lines: 400, binary: false}\ndependencies: {major: approve, patch: free}\nworkflows: approve\nsecond_opinion: off\nchecks: {required: [{name: build, app: github-actions}], allow_none: false}\nmerge_method: rebase\nbase: trunk\n";
const CONFIGURATION: &str = "listen: 127.0.0.1:8080\npublic_url: https://caretaker.example\npoll: {every: 60s}\nsandbox: {mode: strict}\nnotify: []\napprovals: {valid_hours: 24}\nhealth:\n  checks: []\n";

fn rules() -> Target {
    let good = vec![RULES.as_bytes().to_vec(), b"denied: []\n".to_vec()];
    let mut target = Target::new("rules", good, |bytes| {
        let document = rules_from_yaml(bytes, "rules.yaml").map_err(words)?;
        Rules::compile(document, bytes).map_err(words)?;
        Ok(())
    });
    target.longest = 50_000;
    target
}

fn configuration() -> Target {
    let folder = tempfile::tempdir();
    let good = vec![CONFIGURATION.as_bytes().to_vec(), RULES.as_bytes().to_vec()];
    let mut target = Target::new("config", good, move |bytes| {
        let folder = folder.as_ref().map_err(words)?.path();
        let file = folder.join("caretaker.yaml");
        std::fs::write(&file, bytes).map_err(words)?;
        let home = folder.display().to_string();
        let environment = Environment::new([("CARETAKER_HOME", home.as_str())], folder);
        let value = yaml_value(bytes).is_some();
        let read = Configuration::load(Some(file.as_path()), &environment);
        read.map(|_| ()).map_err(|error| format!("{value} {error}"))
    });
    target.longest = 50_000;
    target
}

fn token() -> Target {
    let good = vec![
        ApprovalToken::from_random([7; 32])
            .to_link_text()
            .as_bytes()
            .to_vec(),
        b"github:4711:octocat".to_vec(),
        b"mailto:owner@example.org".to_vec(),
    ];
    Target::new("token", good, |bytes| {
        let text = text(bytes)?;
        if let Ok(token) = text.parse::<ApprovalToken>() {
            assert_eq!(token.to_link_text().as_str(), text);
            return Ok(());
        }
        text.parse::<Principal>().map(|_| ()).map_err(words)
    })
}
