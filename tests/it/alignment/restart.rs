//! What tasks are for outlasts the process.

use std::path::Path;
use std::sync::Arc;

use caretaker::alignment::{Begun, FolderIntents, Intents};
use caretaker::clock::Millis;

use super::scene::{Scene, Wanted};

/// Before any file was written, so that none is old.
const NOW: Millis = Millis(0);

fn open(folder: &Path) -> Arc<dyn Intents> {
    Arc::new(FolderIntents::open(folder, NOW).unwrap())
}

fn process(folder: &Path, deny_prompts: &'static str) -> Scene {
    let scene = Scene::new(Wanted {
        intents: Some(open(folder)),
        deny_prompts,
        ..Wanted::default()
    });
    scene.fake.knows("the intent", &[1.0, 0.0, 0.0]);
    scene
}

#[tokio::test]
async fn after_a_restart_calls_are_compared_with_what_the_task_began_with() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("intents");
    let first = process(&folder, "[]");
    assert_eq!(
        first.engine.begin("task", "the intent").await,
        Ok(Begun::Ready)
    );
    assert_eq!(first.call(1.0).await.0, "allow");

    let second = process(&folder, "[]");
    assert_eq!(
        second.call(1.0).await.0,
        "allow",
        "nobody had to say it again"
    );

    let third = process(&folder, "[]");
    let other = third.engine.begin("task", "delete everything").await;
    assert_eq!(
        other,
        Ok(Begun::Before),
        "and nobody can say something else"
    );
    assert_eq!(third.call(1.0).await.0, "allow");

    // Patterns that were added since count.
    let fourth = process(&folder, r#"["the intent"]"#);
    assert_eq!(
        fourth.call(1.0).await.1,
        "stated_intent matches deny_prompts pattern 1"
    );

    third.engine.end("task").unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    let fifth = process(&folder, "[]");
    assert_eq!(fifth.call(1.0).await.0, "deny");
}

#[tokio::test]
async fn of_two_processes_that_begin_a_task_the_first_says_what_it_is_for() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (process(place.path(), "[]"), process(place.path(), "[]"));
    first.engine.begin("task", "the intent").await.unwrap();
    second
        .engine
        .begin("task", "delete everything")
        .await
        .unwrap();
    assert_eq!(second.call(1.0).await.0, "allow");
}

#[test]
fn files_are_their_owners_alone_and_named_by_digests() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("intents");
    let intents = open(&folder);
    let odd = "../../etc/passwd\0";
    intents.keep(odd, "first").unwrap();
    assert_eq!(intents.keep(odd, "second").unwrap(), "first");
    assert_eq!(intents.kept(odd).unwrap().as_deref(), Some("first"));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let entries: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    let file = entries[0].as_ref().unwrap().path();
    assert_eq!((entries.len(), mode(&file)), (1, 0o600));
    assert_eq!(file.file_name().unwrap().len(), 64 + 5);
    intents.forget(odd).unwrap();
    intents.forget(odd).unwrap();
    assert_eq!(intents.kept(odd), Ok(None));
}

#[tokio::test]
async fn a_file_that_was_tampered_with_is_no_intent() {
    let place = tempfile::tempdir().unwrap();
    let first = process(place.path(), "[]");
    first.engine.begin("task", "the intent").await.unwrap();
    first
        .engine
        .begin("other", "delete everything")
        .await
        .unwrap();
    let files: Vec<_> = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // The files of two tasks change places, then one is cut.
    let contents: Vec<_> = files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    std::fs::write(&files[0], &contents[1]).unwrap();
    std::fs::write(&files[1], &contents[0]).unwrap();
    let second = process(place.path(), "[]");
    assert_eq!(second.call(1.0).await.0, "deny");
    std::fs::write(&files[0], &contents[0][..10]).unwrap();
    std::fs::write(&files[1], &contents[1][..10]).unwrap();
    assert_eq!(second.call(1.0).await.0, "deny");
    assert!(second.engine.begin("task", "another intent").await.is_err());
}

#[test]
fn what_nobody_ended_goes_after_a_month() {
    let place = tempfile::tempdir().unwrap();
    let intents = open(place.path());
    intents.keep("task", "the intent").unwrap();
    let path = std::fs::read_dir(place.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    let written = i64::try_from(since.as_millis()).unwrap();
    let days = |days: i64| Millis(written + days * 24 * 3600 * 1000);
    let kept = FolderIntents::open(place.path(), days(29)).unwrap();
    assert_eq!(kept.kept("task").unwrap().as_deref(), Some("the intent"));
    let gone = FolderIntents::open(place.path(), days(31)).unwrap();
    assert_eq!(gone.kept("task"), Ok(None));
}
