//! The scripted coder does real work on a real tree, and only what its script names.

use std::path::Path;

use caretaker::agent::{
    Coder as _, CoderError, CoderTask, Diagnosis, Edit, FixSummary, Script, ScriptedCoder, When,
};
use caretaker::change::RepoPath;

use super::task;

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn coder(edits: Vec<Edit>) -> ScriptedCoder {
    ScriptedCoder::new(vec![Script {
        when: When {
            test_name: Some("tests::eq".to_owned()),
            file: Some("src/lib.rs".to_owned()),
        },
        diagnosis: Diagnosis {
            cause: "The sum is off by one.".to_owned(),
            files: vec![path("src/lib.rs"), path("tests/sum.rs")],
            confidence: 900,
            summary: "The sum adds one too many.".to_owned(),
        },
        edits,
        fix: FixSummary {
            title: "Add up correctly".to_owned(),
            summary: "Removes the extra one and adds a test.".to_owned(),
        },
    }])
}

fn replace(find: &str, with: &str) -> Edit {
    Edit::Replace {
        path: path("src/lib.rs"),
        find: find.to_owned(),
        replace: with.to_owned(),
    }
}

fn write(name: &str, content: &str) -> Edit {
    Edit::Write {
        path: path(name),
        content: content.to_owned(),
    }
}

fn tree() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir(tree.path().join("src")).unwrap();
    std::fs::write(tree.path().join("src/lib.rs"), "a + b + 1\nc\nc\n").unwrap();
    tree
}

fn library(tree: &Path) -> String {
    std::fs::read_to_string(tree.join("src/lib.rs")).unwrap()
}

async fn reason(coder: &ScriptedCoder, task: &CoderTask, tree: &Path) -> String {
    match coder.fix(task, tree, None).await {
        Err(CoderError::Answer { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn it_finds_its_text_edits_the_tree_and_says_that_it_is_scripted() {
    let (tree, task) = (tree(), task());
    let coder = coder(vec![
        replace("a + b + 1", "a + b"),
        write("tests/sum.rs", "#[test]\n"),
        replace("a + b\n", "a+b\n"),
    ]);
    assert!(coder.describe().remark.contains("scripted"));
    assert_eq!(coder.describe().id, "scripted");
    let diagnosis = coder.diagnose(&task, tree.path(), None).await.unwrap();
    assert_eq!(diagnosis.files, [path("src/lib.rs"), path("tests/sum.rs")]);
    assert_eq!(
        library(tree.path()),
        "a + b + 1\nc\nc\n",
        "a diagnosis changes nothing"
    );
    let fix = coder.fix(&task, tree.path(), None).await.unwrap();
    assert_eq!(fix.title, "Add up correctly");
    assert_eq!(library(tree.path()), "a+b\nc\nc\n");
    assert!(tree.path().join("tests/sum.rs").is_file());
}

#[tokio::test]
async fn code_it_was_not_written_for_is_a_named_failure_and_stays_as_it_was() {
    let (tree, task) = (tree(), task());
    let absent = coder(vec![write("tests/sum.rs", ""), replace("x * y", "z")]);
    assert!(absent.diagnose(&task, tree.path(), None).await.is_err());
    assert!(
        reason(&absent, &task, tree.path())
            .await
            .contains("does not contain")
    );
    assert!(!tree.path().join("tests").exists(), "nothing half-written");
    let twice = coder(vec![replace("c\n", "d\n")]);
    assert!(reason(&twice, &task, tree.path()).await.contains("2 times"));
    let mut other = task.clone();
    other.extraction.clear();
    assert!(
        reason(&twice, &other, tree.path())
            .await
            .contains("no script fits")
    );
}

// Break it: use `fs::metadata` instead of `fs::symlink_metadata` in `agent::scripted::tree::Tree::check`.
#[tokio::test]
async fn a_link_in_the_tree_leads_the_coder_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("lib.rs"), "a + b + 1\n").unwrap();
    let task = task();
    let tree = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), tree.path().join("src")).unwrap();
    let edits = [
        vec![replace("a + b + 1", "a + b")],
        vec![write("src/new.rs", "")],
        vec![write("src", "")],
    ];
    for edits in edits {
        assert!(
            reason(&coder(edits), &task, tree.path())
                .await
                .contains("link")
        );
    }
    let left: Vec<_> = std::fs::read_dir(outside.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}
