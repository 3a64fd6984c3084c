//! What a diagnosis was fed: recorded once each, and a substitution shows.

use caretaker::change::Sha256Digest;
use caretaker::provenance::{
    ContextEntry, ContextManifest, Discrepancy, ManifestError, Part, QuarantinedInput,
};
use proptest::prelude::*;

fn hash(text: &str) -> Sha256Digest {
    Sha256Digest::of(text.as_bytes())
}

fn direct(name: &str, content: &str) -> ContextEntry {
    ContextEntry::Direct {
        name: name.to_owned(),
        sha256: hash(content),
    }
}

fn quarantined(name: &str, raw: &str, extraction: &str) -> ContextEntry {
    ContextEntry::Quarantined {
        name: name.to_owned(),
        raw: hash(raw),
        extraction: hash(extraction),
    }
}

fn manifest() -> ContextManifest {
    ContextManifest::new(vec![
        direct("intent", "keep it small"),
        direct("incident", "{}"),
        quarantined("log:7", "raw", "[]"),
        direct("intent", "keep it small"),
    ])
    .unwrap()
}

#[test]
fn each_distinct_input_is_recorded_once_whatever_the_order() {
    let manifest = manifest();
    let names: Vec<&str> = manifest.entries().iter().map(ContextEntry::name).collect();
    assert_eq!(names, ["log:7", "incident", "intent"]);
    let mut reversed = manifest.entries().to_vec();
    reversed.reverse();
    assert_eq!(
        ContextManifest::new(reversed).unwrap().digest(),
        manifest.digest()
    );
}

#[test]
fn the_canonical_form_is_compact_json_in_fixed_order() {
    let text = String::from_utf8(manifest().canonical()).unwrap();
    let expected = format!(
        r#"{{"format":"caretaker/context-manifest/v1","entries":[{{"trust":"quarantined","name":"log:7","raw":"{}","extraction":"{}"}},{{"trust":"direct","name":"incident","sha256":"{}"}},{{"trust":"direct","name":"intent","sha256":"{}"}}]}}"#,
        hash("raw"),
        hash("[]"),
        hash("{}"),
        hash("keep it small")
    );
    assert_eq!(text, expected);
    assert_eq!(manifest().digest(), hash(&expected));
}

#[test]
fn a_name_means_one_content_and_can_be_shown() {
    let two = ContextManifest::new(vec![direct("intent", "a"), direct("intent", "b")]);
    assert!(matches!(two, Err(ManifestError::Ambiguous { name }) if name == "intent"));
    let both = ContextManifest::new(vec![direct("log", "a"), quarantined("log", "a", "b")]);
    assert!(matches!(both, Err(ManifestError::Ambiguous { .. })));
    for name in ["", "a\nb", &"n".repeat(501)] {
        let refused = ContextManifest::new(vec![direct(name, "a")]);
        assert!(
            matches!(refused, Err(ManifestError::Name { .. })),
            "{name:?}"
        );
    }
}

// Break it: compare by name only in `provenance::comparison::substitutions`.
#[test]
fn a_substituted_direct_input_shows_against_live_content() {
    let live = |intent: &str| {
        vec![
            ("intent".to_owned(), hash(intent)),
            ("incident".to_owned(), hash("{}")),
        ]
    };
    assert_eq!(manifest().compare(&live("keep it small")), []);
    assert_eq!(
        manifest().compare(&live("delete everything")),
        [Discrepancy::Substituted {
            name: "intent".to_owned(),
            part: Part::Content,
            recorded: hash("keep it small"),
            live: hash("delete everything"),
        }]
    );
    let other = vec![
        ("incident".to_owned(), hash("{}")),
        ("log:7".to_owned(), hash("raw")),
    ];
    assert_eq!(
        manifest().compare(&other),
        [
            Discrepancy::Missing {
                name: "intent".to_owned()
            },
            Discrepancy::Unrecorded {
                name: "log:7".to_owned()
            },
        ]
    );
}

#[test]
fn a_quarantined_input_read_again_shows_whether_log_or_reader_changed() {
    let again = |raw: &str, extraction: &str| {
        let input = QuarantinedInput {
            name: "log:7".to_owned(),
            raw: hash(raw),
            extraction: hash(extraction),
        };
        let parts = manifest().compare_extractions(&[input]);
        parts
            .iter()
            .map(|found| match found {
                Discrepancy::Substituted { part, .. } => *part,
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(again("raw", "[]"), []);
    assert_eq!(again("raw", "[1]"), [Part::Extraction]);
    assert_eq!(again("changed", "[]"), [Part::Raw]);
}

#[test]
fn only_the_bytes_that_were_written_are_read_back() {
    let written = manifest().canonical();
    assert_eq!(ContextManifest::from_canonical(&written), Ok(manifest()));
    let text = String::from_utf8(written).unwrap();
    for changed in [
        text.replace("},{", "}, {"),
        format!("{text}\n"),
        text.replace("v1", "v2"),
        text.replace(r#""entries""#, r#""more":1,"entries""#),
        text.replace(r#""trust":"direct","#, r#""trust":"direct","note":"","#),
        text.replace(
            r#""trust":"direct","name":"incident""#,
            r#""name":"incident","trust":"direct""#,
        ),
        text.replace(r#""trust":"quarantined""#, r#""trust":"trusted""#),
        text.replace("incident", "zzz"),
    ] {
        assert!(
            ContextManifest::from_canonical(changed.as_bytes()).is_err(),
            "{changed}"
        );
    }
}

proptest! {
    #[test]
    fn a_manifest_round_trips_and_its_digest_tells_manifests_apart(
        a in prop::collection::btree_map("[a-c]{1,2}", ("[xy]", any::<bool>()), 0..4),
        b in prop::collection::btree_map("[a-c]{1,2}", ("[xy]", any::<bool>()), 0..4),
    ) {
        let build = |entries: &std::collections::BTreeMap<String, (String, bool)>| {
            let entry = |(name, (content, trusted)): (&String, &(String, bool))| {
                if *trusted { direct(name, content) } else { quarantined(name, content, content) }
            };
            ContextManifest::new(entries.iter().map(entry).collect()).unwrap()
        };
        let (first, second) = (build(&a), build(&b));
        prop_assert_eq!(&ContextManifest::from_canonical(&first.canonical()).unwrap(), &first);
        prop_assert_eq!(first == second, first.digest() == second.digest());
    }
}
