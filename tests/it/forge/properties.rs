//! What holds for any content and any time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use caretaker::forge::{FileEdit, ForgeOptions, Sources, start_with};
use proptest::prelude::*;
use serde_json::Value;

use super::bench::{Bench, client, file, read};

/// Edits over a small set of paths, so that they meet.
fn edits() -> impl Strategy<Value = BTreeMap<String, FileEdit>> {
    let content = proptest::collection::vec(any::<u8>(), 0..40);
    let mode = prop_oneof![Just(0o100_644), Just(0o100_755), Just(0o120_000)];
    let write = (mode, content).prop_map(|(mode, content)| FileEdit::Write { mode, content });
    let edit = prop_oneof![3 => write, 1 => Just(FileEdit::Remove)];
    proptest::collection::btree_map("[ab]/[a-c é\"]{1,2}", edit, 1..8)
}

/// Every file of a commit with its mode and id, as the trees of the API tell it.
async fn files(bench: &Bench, commit: &str) -> BTreeMap<String, (Value, Value)> {
    let tree = bench
        .get(&format!("/git/trees/{commit}?recursive=1"))
        .await
        .body;
    let entries = tree["tree"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["type"] != "tree");
    entries
        .map(|entry| {
            (
                entry["path"].as_str().unwrap().to_owned(),
                (entry["mode"].clone(), entry["sha"].clone()),
            )
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The rows of a pull request name exactly the files in which the trees of both sides differ.
    #[test]
    fn rows_cover_exactly_what_differs(before in edits(), after in edits()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let first: Vec<(&str, FileEdit)> = before.iter().map(|(path, edit)| (path.as_str(), edit.clone())).chain([("keep", file("k"))]).collect();
            let bench = Bench::with(&first).await;
            let second: Vec<(&str, FileEdit)> = after.iter().map(|(path, edit)| (path.as_str(), edit.clone())).chain([("more", file("m"))]).collect();
            bench.branch("fix", &second);
            bench.pull("fix").await;
            let (old, new) = (files(&bench, "main").await, files(&bench, "fix").await);
            let differing: BTreeSet<&String> = old.keys().chain(new.keys()).filter(|path| old.get(*path) != new.get(*path)).collect();
            let rows = bench.get("/pulls/1/files?per_page=100").await.body;
            let mut named = BTreeSet::new();
            for row in rows.as_array().unwrap() {
                let name = row["filename"].as_str().unwrap().to_owned();
                if row["status"] != "removed" && !row["sha"].is_null() {
                    assert_eq!(row["sha"], new[&name].1);
                }
                assert!(named.insert(name), "no file has two rows");
                named.extend(row["previous_filename"].as_str().map(str::to_owned));
            }
            assert_eq!(named.iter().collect::<BTreeSet<_>>(), differing);
            assert_eq!(bench.get("/pulls/1").await.body["changed_files"], rows.as_array().unwrap().len());
        });
    }

    /// Base64 as another implementation reads it.
    #[test]
    fn any_bytes_come_through_a_blob(content in proptest::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let bench = Bench::with(&[("blob", FileEdit::file(content.clone()))]).await;
            let id = bench.bare(&["rev-parse", "main:blob"]);
            let blob = bench.get(&format!("/git/blobs/{id}")).await.body;
            let text = blob["content"].as_str().unwrap().replace('\n', "");
            assert_eq!(base64::engine::general_purpose::STANDARD.decode(text).unwrap(), content);
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_and_token_are_the_callers() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&seconds);
    let sources = Sources {
        now: Arc::new(move || clock.load(Ordering::SeqCst)),
        token: "mine".to_owned(),
    };
    let options = ForgeOptions::new(folder.path().join("forge"), "127.0.0.1:0".parse().unwrap());
    let forge = start_with(options, sources).await.unwrap();
    let client = client();
    for (index, (moment, text)) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_767_225_599, "2025-12-31T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ]
    .into_iter()
    .enumerate()
    {
        seconds.store(moment, Ordering::SeqCst);
        let name = format!("r{index}");
        forge
            .create_repository("acme", &name, &[("f", file("f"))])
            .unwrap();
        let url = format!("{}/repos/acme/{name}", forge.url());
        let answer = read(client.get(url).bearer_auth("mine").send().await.unwrap()).await;
        assert_eq!(answer.body["created_at"], text);
        assert_eq!(
            answer.header("x-ratelimit-reset"),
            (moment + 3_600).to_string()
        );
    }
}
