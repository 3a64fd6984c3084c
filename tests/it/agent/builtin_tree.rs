//! The tools for files: what they say, and that nothing outside of the tree is ever read or written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::builtin_scene::{SaidModel, Scene, answer, link, submit_fix};

async fn told(scene: &Scene, calls: &[(&str, Value)]) -> Vec<(String, bool)> {
    let model = SaidModel::new(vec![Ok(answer(calls)), Ok(answer(&[submit_fix()]))]);
    scene.fix(Arc::<SaidModel>::clone(&model)).await.unwrap();
    let results = model.results(1).into_iter();
    results.map(|result| (result.text, result.failed)).collect()
}

#[tokio::test]
async fn files_are_listed_read_searched_replaced_written_and_deleted() {
    let scene = Scene::new();
    fs::write(scene.tree().join("src/many"), "one\ntwo\nthree two\nfour\n").unwrap();
    fs::write(scene.tree().join("empty"), "").unwrap();
    let calls = [
        ("list_files", json!({})),
        ("list_files", json!({"path": "src/"})),
        ("read_file", json!({"path": "src/many"})),
        (
            "read_file",
            json!({"path": "src/many", "first_line": 2, "lines": 2}),
        ),
        ("read_file", json!({"path": "src/many", "first_line": 9})),
        ("read_file", json!({"path": "empty"})),
        ("search_text", json!({"text": "two", "path": "src"})),
        ("search_text", json!({"text": "two", "path": "src/many"})),
        ("search_text", json!({"text": "no such words"})),
        (
            "replace_text",
            json!({"path": "src/many", "old": "two", "new": "2"}),
        ),
        (
            "replace_text",
            json!({"path": "src/many", "old": "absent", "new": "2"}),
        ),
        (
            "replace_text",
            json!({"path": "src/many", "old": "", "new": "2"}),
        ),
        (
            "replace_text",
            json!({"path": "src/many", "old": "three two", "new": "3"}),
        ),
        (
            "write_file",
            json!({"path": "deep/down/new", "content": "x"}),
        ),
        (
            "write_file",
            json!({"path": "deep/down/new", "content": "yz"}),
        ),
        ("delete_file", json!({"path": "empty"})),
        ("delete_file", json!({"path": "empty"})),
        ("delete_file", json!({"path": "deep"})),
        ("read_file", json!({"path": "deep"})),
        ("write_file", json!({"path": "deep", "content": "x"})),
        (
            "write_file",
            json!({"path": "src/many/below", "content": "x"}),
        ),
    ];
    let story: Vec<String> = calls
        .iter()
        .zip(told(&scene, &calls).await)
        .map(|((tool, arguments), (text, _))| format!("{tool} {arguments}\n{text}"))
        .collect();
    insta::assert_snapshot!("builtin_files", story.join("\n---\n"));
    assert_eq!(scene.read("src/many"), "one\ntwo\n3\nfour\n");
    assert_eq!(scene.read("deep/down/new"), "yz");
    assert!(!scene.tree().join("empty").exists());
}

#[tokio::test]
async fn a_text_that_overlaps_itself_stands_there_twice() {
    let scene = Scene::new();
    fs::write(scene.tree().join("f"), "aaa").unwrap();
    let (text, failed) = scene
        .one(
            "replace_text",
            json!({"path": "f", "old": "aa", "new": "b"}),
        )
        .await;
    assert!(failed && text.contains("more than once"), "{text}");
    assert_eq!(scene.read("f"), "aaa");
}

#[tokio::test]
async fn bytes_that_are_no_text_stay_as_they_are() {
    let scene = Scene::new();
    fs::write(scene.tree().join("f"), b"\xff\xfe old \x00\r\n").unwrap();
    let calls = [
        (
            "replace_text",
            json!({"path": "f", "old": "old", "new": "new"}),
        ),
        ("read_file", json!({"path": "f"})),
        ("search_text", json!({"text": "new"})),
    ];
    let results = told(&scene, &calls).await;
    assert_eq!(
        fs::read(scene.tree().join("f")).unwrap(),
        b"\xff\xfe new \x00\r\n"
    );
    assert!(results[1].0.contains("new"));
    assert!(results[2].0.contains("passed over: 1"), "{}", results[2].0);
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_what_is_long_is_cut() {
    let scene = Scene::new();
    let file = |name: &str, size: u64| {
        let file = fs::File::create(scene.tree().join(name)).unwrap();
        file.set_len(size).unwrap();
    };
    file("huge", 8 << 30);
    fs::write(scene.tree().join("long"), "0123456789\n".repeat(50_000)).unwrap();
    fs::write(scene.tree().join("line"), "ä".repeat(300_000)).unwrap();
    fs::create_dir(scene.tree().join("full")).unwrap();
    for number in 0..5_000 {
        fs::write(
            scene
                .tree()
                .join(format!("full/a-name-that-is-long-{number}")),
            "",
        )
        .unwrap();
    }
    let calls = [
        ("read_file", json!({"path": "huge"})),
        ("read_file", json!({"path": "long"})),
        ("read_file", json!({"path": "line"})),
        ("search_text", json!({"text": "345"})),
        ("list_files", json!({"path": "full"})),
        (
            "replace_text",
            json!({"path": "huge", "old": "a", "new": "b"}),
        ),
    ];
    let results = told(&scene, &calls).await;
    assert!(results[0].1 && results[0].0.contains("more than 8388608 bytes"));
    assert!(results[1].0.ends_with("(cut: lines 1 to 23831 of 50000)"));
    assert!(results[1].0.len() <= (256 << 10) + 200);
    assert!(results[2].0.contains("the line is longer than is shown"));
    assert!(results[2].0.len() <= (256 << 10) + 200);
    assert!(results[3].0.contains("there are more such lines"));
    assert!(results[4].0.contains("cut: the first 65536 of"));
    assert!(results[4].0.len() <= (64 << 10) + 200);
    assert!(results[5].1);
}

#[tokio::test]
async fn a_link_out_of_the_tree_is_followed_for_nothing() {
    let scene = Scene::new();
    let (tree, outside) = (scene.tree(), scene.outside());
    link(&outside.join("secret"), &tree.join("file"));
    link(Path::new("../outside"), &tree.join("folder"));
    link(&outside.join("absent"), &tree.join("dangling"));
    let calls = [
        ("read_file", json!({"path": "file"})),
        ("read_file", json!({"path": "folder/secret"})),
        ("list_files", json!({"path": "folder"})),
        ("search_text", json!({"text": "secret", "path": "folder"})),
        ("search_text", json!({"text": "secret", "path": "file"})),
        (
            "replace_text",
            json!({"path": "file", "old": "secret", "new": "x"}),
        ),
        ("write_file", json!({"path": "file", "content": "x"})),
        (
            "write_file",
            json!({"path": "folder/secret", "content": "x"}),
        ),
        (
            "write_file",
            json!({"path": "folder/new/deep", "content": "x"}),
        ),
        ("write_file", json!({"path": "dangling", "content": "x"})),
        ("delete_file", json!({"path": "folder/secret"})),
    ];
    for ((tool, arguments), (text, failed)) in calls.iter().zip(told(&scene, &calls).await) {
        assert!(failed, "{tool} {arguments}: {text}");
        assert!(
            text.contains("link") && !text.contains("the secret"),
            "{text}"
        );
    }
    let (text, _) = scene.one("search_text", json!({"text": "secret"})).await;
    assert!(text.contains("no line holds it"), "{text}");
    let (text, failed) = scene.one("delete_file", json!({"path": "file"})).await;
    assert!(!failed, "a link itself can go: {text}");
    assert_eq!(
        files(&outside),
        BTreeMap::from([(outside.join("secret"), b"the secret\n".to_vec())])
    );
}

#[tokio::test]
async fn a_hard_link_to_a_file_outside_is_refused() {
    let scene = Scene::new();
    fs::hard_link(scene.outside().join("secret"), scene.tree().join("file")).unwrap();
    let calls = [
        ("read_file", json!({"path": "file"})),
        ("write_file", json!({"path": "file", "content": "x"})),
        (
            "replace_text",
            json!({"path": "file", "old": "secret", "new": "x"}),
        ),
    ];
    for (text, failed) in told(&scene, &calls).await {
        assert!(failed && text.contains("hard links"), "{text}");
    }
    let kept = fs::read_to_string(scene.outside().join("secret")).unwrap();
    assert_eq!(kept, "the secret\n");
}

/// Nobody is at the other end of the pipe, and nobody is waited for.
#[tokio::test]
async fn a_pipe_is_no_file() {
    let scene = Scene::new();
    let made = std::process::Command::new("mkfifo")
        .arg(scene.tree().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let calls = [
        ("read_file", json!({"path": "pipe"})),
        ("write_file", json!({"path": "pipe", "content": "x"})),
        ("search_text", json!({"text": "x"})),
    ];
    let results = told(&scene, &calls).await;
    assert!(results[0].1 && results[1].1, "{results:?}");
}

#[tokio::test]
async fn git_is_neither_seen_nor_touched() {
    let scene = Scene::new();
    for folder in [".git", "sub/.GIT"] {
        fs::create_dir_all(scene.tree().join(folder)).unwrap();
        fs::write(scene.tree().join(folder).join("config"), "the secret").unwrap();
    }
    let calls = [
        ("read_file", json!({"path": ".git/config"})),
        (
            "write_file",
            json!({"path": "sub/.GIT/hooks/x", "content": "x"}),
        ),
        ("list_files", json!({"path": ".git"})),
        ("search_text", json!({"text": "secret", "path": "sub/.GIT"})),
    ];
    for (text, failed) in told(&scene, &calls).await {
        assert!(failed && text.contains(".git"), "{text}");
    }
    let calls = [
        ("list_files", json!({})),
        ("search_text", json!({"text": "secret"})),
    ];
    for (text, _) in told(&scene, &calls).await {
        assert!(
            !text.contains(".git") && !text.contains("the secret"),
            "{text}"
        );
    }
}

/// Every file below a folder, links not followed, with what is in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
            }
        }
    }
    found
}

/// Steps of paths, among them those that lead up, away, and through links.
fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        Just("src".to_owned()),
        Just("lib.rs".to_owned()),
        Just("outside".to_owned()),
        Just("secret".to_owned()),
        Just(".git".to_owned()),
        Just("a".to_owned()),
        Just("b".to_owned()),
        "[ab/.~\\x00\u{202e}ä%2e]{1,5}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    let steps = proptest::collection::vec(step(), 1..6);
    (steps, any::<bool>()).prop_map(|(steps, absolute)| {
        let path = steps.join("/");
        if absolute { format!("/{path}") } else { path }
    })
}

/// Where random links of the tree lead.
fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("OUTSIDE".to_owned()),
        Just("OUTSIDE/secret".to_owned()),
        Just("..".to_owned()),
        Just("../outside".to_owned()),
        Just("../../outside/secret".to_owned()),
        Just("/".to_owned()),
        Just("src".to_owned()),
        Just("a".to_owned()),
        Just(".".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_path_leads_out_of_the_tree(
        links in proptest::collection::vec((prop_oneof![Just("a"), Just("b"), Just("src/a"), Just("src/b")], target()), 0..4),
        paths in proptest::collection::vec(path(), 8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let scene = Scene::new();
        let outside = scene.outside();
        for (name, target) in links {
            let target = target.replace("OUTSIDE", outside.to_str().unwrap());
            // A second link of one name is none.
            drop(std::os::unix::fs::symlink(target, scene.tree().join(name)));
        }
        let calls: Vec<(&str, Value)> = paths.iter().flat_map(|path| [
            ("read_file", json!({"path": path})),
            ("list_files", json!({"path": path})),
            ("search_text", json!({"text": "secret", "path": path})),
            ("replace_text", json!({"path": path, "old": "secret", "new": "x"})),
            ("write_file", json!({"path": path, "content": "x"})),
            ("delete_file", json!({"path": path})),
        ]).collect();
        let mut scene = scene;
        scene.budget.tool_calls = 100;
        let before = files(&outside);
        for (text, _) in runtime.block_on(told(&scene, &calls)) {
            prop_assert!(!text.contains("the secret"), "{text}");
        }
        prop_assert_eq!(files(&outside), before);
        // Beside the tree there is what was there.
        prop_assert_eq!(fs::read_dir(scene.tree().parent().unwrap()).unwrap().count(), 2);
    }
}
