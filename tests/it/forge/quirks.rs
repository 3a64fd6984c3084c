//! GitHub's quirks about files, trees and comparisons.

use caretaker::forge::{FileEdit, Moment};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Bench, file};

fn mode(mode: u32, content: &str) -> FileEdit {
    FileEdit::Write {
        mode,
        content: content.into(),
    }
}

async fn rows(bench: &Bench) -> Vec<Value> {
    let answer = bench.get("/pulls/1/files?per_page=100").await;
    assert_eq!(answer.status, 200);
    answer.body.as_array().unwrap().clone()
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    rows.iter()
        .find(|row| row["filename"] == name)
        .unwrap_or_else(|| panic!("no row for {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_change_has_its_row() {
    let submodule = "2".repeat(40);
    let long: String = (0..30).map(|line| format!("line {line}\n")).collect();
    let bench = Bench::with(&[
        ("run.sh", file("#!/bin/sh\n")),
        ("edit.sh", file("#!/bin/sh\n")),
        ("link", file("target")),
        ("gone.txt", file("gone\n")),
        ("old/name.txt", file(&long)),
        ("vendor", mode(0o160_000, &"1".repeat(40))),
    ])
    .await;
    bench.branch(
        "fix",
        &[
            ("run.sh", mode(0o100_755, "#!/bin/sh\n")),
            ("edit.sh", mode(0o100_755, "#!/bin/sh\ntrue\n")),
            ("link", mode(0o120_000, "target")),
            ("gone.txt", FileEdit::Remove),
            ("old/name.txt", FileEdit::Remove),
            ("new/name.txt", file(&format!("{long}more\n"))),
            ("vendor", mode(0o160_000, &submodule)),
            ("with \"quote\" and é.txt", file("new\n")),
            (
                "blob.bin",
                FileEdit::Write {
                    mode: 0o100_644,
                    content: vec![0, 159, 146, 150],
                },
            ),
        ],
    );
    bench.pull("fix").await;
    let rows = rows(&bench).await;
    assert_eq!(rows.len(), 8);

    let chmod = row(&rows, "run.sh");
    assert_eq!(
        (&chmod["sha"], &chmod["status"], &chmod["changes"]),
        (&json!(null), &json!("modified"), &json!(0))
    );
    let both = row(&rows, "edit.sh");
    assert_eq!(
        (&both["status"], both["sha"].is_string()),
        (&json!("modified"), true)
    );
    // A file that becomes a link keeps its id.
    let link = row(&rows, "link");
    assert_eq!(
        (&link["status"], &link["sha"]),
        (
            &json!("changed"),
            &json!(bench.bare(&["rev-parse", "main:link"]))
        )
    );
    let removed = row(&rows, "gone.txt");
    assert_eq!(
        (&removed["status"], &removed["sha"]),
        (
            &json!("removed"),
            &json!(bench.bare(&["rev-parse", "main:gone.txt"]))
        )
    );
    let renamed = row(&rows, "new/name.txt");
    assert_eq!(
        (&renamed["status"], &renamed["previous_filename"]),
        (&json!("renamed"), &json!("old/name.txt"))
    );
    assert_eq!(renamed["additions"], 1);
    let vendor = row(&rows, "vendor");
    assert_eq!(
        (&vendor["sha"], &vendor["blob_url"]),
        (&json!(submodule), &json!(null))
    );
    let quoted = row(&rows, "with \"quote\" and é.txt");
    assert_eq!(quoted["patch"], "@@ -0,0 +1 @@\n+new");
    assert!(row(&rows, "blob.bin").get("patch").is_none());
    assert!(both["patch"].as_str().unwrap().ends_with("+true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_thirty_at_a_time_and_end_silently_at_three_thousand() {
    let bench = Bench::new().await;
    let names: Vec<String> = (0..3_001)
        .map(|number| format!("many/{number:04}.txt"))
        .collect();
    let edits: Vec<(&str, FileEdit)> = names
        .iter()
        .map(|name| (name.as_str(), file("x\n")))
        .collect();
    bench.branch("fix", &edits);
    bench.pull("fix").await;
    assert_eq!(bench.get("/pulls/1").await.body["changed_files"], 3_001);
    let count = async |query: &str| {
        bench
            .get(&format!("/pulls/1/files?{query}"))
            .await
            .body
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count("").await, 30);
    assert_eq!(count("per_page=500").await, 100);
    assert_eq!(count("per_page=0&page=-1").await, 30);
    let last = bench.get("/pulls/1/files?per_page=100&page=30").await;
    assert_eq!(last.body.as_array().unwrap().len(), 100);
    assert!(
        !last.header("link").contains("next"),
        "nothing says that a file is missing"
    );
    assert_eq!(count("per_page=100&page=31").await, 0);
    let comparison = bench.get("/compare/main...fix?per_page=100").await.body;
    assert_eq!(comparison["files"].as_array().unwrap().len(), 300);
    let second = bench
        .get("/compare/main...fix?per_page=100&page=2")
        .await
        .body;
    assert!(second.get("files").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_between_two_pages_gives_pages_that_do_not_fit() {
    let bench = Bench::new().await;
    bench.branch("fix", &[("a", file("1\n")), ("c", file("1\n"))]);
    bench.pull("fix").await;
    let repository = bench.repository.clone();
    bench
        .forge
        .on("GET", "/pulls/1/files", 2, Moment::Before, move || {
            repository
                .commit("fix", &[("b", file("1\n"))], "Between the pages")
                .map(drop)
        });
    let first = bench.get("/pulls/1/files?per_page=1&page=1").await.body;
    let second = bench.get("/pulls/1/files?per_page=1&page=2").await.body;
    assert_eq!(
        (&first[0]["filename"], &second[0]["filename"]),
        (&json!("a"), &json!("b"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_recurse_whatever_the_word_and_know_submodules() {
    let bench = Bench::with(&[
        ("a/b/c.txt", file("c\n")),
        ("vendor", mode(0o160_000, &"1".repeat(40))),
        ("run", mode(0o100_755, "x")),
    ])
    .await;
    let flat = bench.get("/git/trees/main").await.body;
    assert_eq!(flat["tree"].as_array().unwrap().len(), 3);
    for word in ["1", "0", "false"] {
        let whole = bench
            .get(&format!("/git/trees/main?recursive={word}"))
            .await
            .body;
        let paths: Vec<&str> = whole["tree"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["path"].as_str().unwrap())
            .collect();
        assert_eq!(paths, ["a", "a/b", "a/b/c.txt", "run", "vendor"]);
        assert_eq!(whole["truncated"], false);
    }
    let by_name = |name: &str| {
        flat["tree"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["path"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        by_name("vendor"),
        json!({"path": "vendor", "mode": "160000", "type": "commit", "sha": "1".repeat(40)})
    );
    assert_eq!(
        (&by_name("run")["mode"], &by_name("run")["size"]),
        (&json!("100755"), &json!(1))
    );
    assert_eq!(
        (&by_name("a")["mode"], &by_name("a")["type"]),
        (&json!("040000"), &json!("tree"))
    );
    assert_eq!(
        bench
            .get(&format!("/git/trees/{}", "3".repeat(40)))
            .await
            .status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_come_in_lines_of_base64_or_raw() {
    let text = "0123456789".repeat(12);
    let bench = Bench::with(&[("file.txt", file(&text))]).await;
    let path = format!("/git/blobs/{}", bench.bare(&["rev-parse", "main:file.txt"]));
    let blob = bench.get(&path).await.body;
    assert_eq!(
        (&blob["encoding"], &blob["size"]),
        (&json!("base64"), &json!(120))
    );
    let content = blob["content"].as_str().unwrap();
    assert!(content.lines().all(|line| line.len() <= 60) && content.ends_with('\n'));
    assert_eq!(
        content.lines().next().unwrap(),
        "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0"
    );
    let url = format!("{}/repos/acme/widget{path}", bench.forge.url());
    let raw = bench
        .client
        .get(url)
        .bearer_auth(bench.forge.token())
        .header("accept", "application/vnd.github.raw+json");
    assert_eq!(raw.send().await.unwrap().text().await.unwrap(), text);
    let tree = bench.bare(&["rev-parse", "main^{tree}"]);
    assert_eq!(bench.get(&format!("/git/blobs/{tree}")).await.status, 404);
    assert_eq!(bench.get("/git/blobs/main").await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_found_by_many_names_and_only_the_bare_object_by_id() {
    let bench = Bench::new().await;
    let tip = bench.repository.tip("main").unwrap();
    bench.repository.create_branch("feature/x", &tip).unwrap();
    for name in [
        "main",
        "heads/main",
        "feature/x",
        "feature%2Fx",
        tip.as_str(),
        &tip.as_str()[..10],
    ] {
        assert_eq!(
            bench.get(&format!("/commits/{name}")).await.body["sha"],
            tip.as_str(),
            "{name}"
        );
    }
    for name in [
        "main~0",
        "HEAD@%7B0%7D",
        "--all",
        "main%5E%7Btree%7D",
        "main:README.md",
    ] {
        assert_eq!(
            bench.get(&format!("/commits/{name}")).await.status,
            422,
            "{name}"
        );
    }
    let bare = bench.get(&format!("/git/commits/{tip}")).await.body;
    assert_eq!(
        (&bare["message"], &bare["author"]["date"]),
        (&json!("First commit"), &json!("2026-01-05T08:00:00Z"))
    );
    assert_eq!(bench.get("/git/commits/main").await.status, 404);
    assert_eq!(
        bench.get("/branches/feature/x").await.body["commit"]["sha"],
        tip.as_str()
    );
    assert_eq!(
        bench.get("/branches/gone").await.message(),
        "Branch not found"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn comparisons_know_the_merge_base() {
    let bench = Bench::new().await;
    let base = bench.repository.tip("main").unwrap();
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    bench
        .repository
        .commit("main", &[("d.txt", file("d\n"))], "Meanwhile")
        .unwrap();
    let body = bench.get("/compare/main...fix").await.body;
    assert_eq!(body["merge_base_commit"]["sha"], base.as_str());
    assert_eq!(
        (&body["status"], &body["ahead_by"], &body["behind_by"]),
        (&json!("diverged"), &json!(1), &json!(1))
    );
    assert_eq!(
        (
            body["files"].as_array().unwrap().len(),
            &body["files"][0]["filename"]
        ),
        (1, &json!("c.txt"))
    );
    assert_eq!(
        bench.get("/compare/acme:main...acme:fix").await.body["total_commits"],
        1
    );
    let unrelated = bench
        .repository
        .commit_object(&[], &[("x", file("x\n"))], "Unrelated")
        .unwrap();
    bench
        .repository
        .force_reference("refs/heads/island", &unrelated)
        .unwrap();
    assert_eq!(bench.get("/compare/main...island").await.status, 404);
    assert_eq!(bench.get("/compare/main...gone").await.status, 404);
    assert_eq!(bench.get("/compare/main").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_files_give_the_same_ids_everywhere() {
    let (one, other) = (Bench::new().await, Bench::new().await);
    assert_eq!(
        one.repository.tip("main").unwrap(),
        other.repository.tip("main").unwrap()
    );
    assert_eq!(
        one.branch("fix", &[("c", file("c"))]),
        other.branch("fix", &[("c", file("c"))])
    );
    let first = one.send(Method::GET, "/repos/ACME/Widget", None).await;
    assert_eq!(
        first.body["name"], "widget",
        "names are compared without regard to case"
    );
}
