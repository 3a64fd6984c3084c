//! A database that cannot be used says what is wrong, why, and what mends it, and never shows a password.

use caretaker::store::{Patience, StoreError};

use super::*;

/// The message, which must hold no password and must name a mend.
async fn refusal(opening: impl Future<Output = Result<Store, StoreError>>) -> String {
    let message = opening.await.expect_err("was opened").to_string();
    assert!(!message.contains("hunter2"), "{message}");
    assert!(message.contains(';'), "no mend: {message}");
    message
}

fn at(folder: &tempfile::TempDir, name: &str) -> String {
    format!("sqlite://{}", folder.path().join(name).display())
}

#[tokio::test]
async fn a_new_file_is_for_its_owner_only_and_so_are_its_companions() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&at(&folder, "state/deep/a b#%25.db"))
        .await
        .unwrap();
    store
        .ensure_organisation(&project(1, 1).organisation, "example", NOW)
        .await
        .unwrap();
    let deep = folder.path().join("state/deep");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&deep), 0o700);
    let files: Vec<_> = std::fs::read_dir(&deep)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(files.contains(&deep.join("a b#%.db")), "{files:?}");
    assert!(
        files
            .iter()
            .any(|file| file.to_string_lossy().ends_with("-wal")),
        "{files:?}"
    );
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_missing_file_is_not_made_by_reading() {
    let folder = tempfile::tempdir().unwrap();
    let url = at(&folder, "caretaker.db");
    let message = refusal(Store::open_existing(&url)).await;
    assert!(message.contains("no such file"), "{message}");
    assert!(message.contains("caretaker project register"), "{message}");
    assert!(!folder.path().join("caretaker.db").exists());
    Store::open(&url).await.unwrap();
    Store::open_existing(&url).await.unwrap();
}

#[tokio::test]
async fn an_address_that_names_no_database_is_refused_without_repeating_it() {
    for url in [
        "",
        "mysql://root:hunter2@localhost/x",
        "sqlite:",
        "sqlite::memory:",
        "sqlite://x?mode=memory",
        "postgres://hunter2@[",
        "sqlite:///tmp/%zz",
    ] {
        let message = refusal(Store::open(url)).await;
        assert!(
            message.contains("write sqlite://PATH or postgres://"),
            "{message}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let message = refusal(Store::open(&at(&folder, ""))).await;
    assert!(message.contains("is a folder"), "{message}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    let notes = "these are notes, not a database\n".repeat(100);
    std::fs::write(&file, &notes).unwrap();
    let message = refusal(Store::open(&at(&folder, "notes.txt"))).await;
    assert!(message.contains("not an SQLite database"), "{message}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), notes);
}

#[tokio::test]
async fn a_locked_database_fails_after_the_waiting_time_and_writes_nothing() {
    let world = World::sqlite().await;
    let hasty = Store::open_with(&world.url, Patience::Short).await.unwrap();
    let mut raw = world.raw().await;
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut raw)
        .await
        .unwrap();
    let id = IncidentId::new(NOW, world.fresh());
    let refused = hasty
        .observe(&world.project, &failure("test", 100), None, &id, NOW)
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    assert!(refused.to_string().contains("nothing was written"));
    // Readers are not kept out.
    let scope = hasty.within(&world.project.organisation);
    assert_eq!(scope.projects().await.unwrap().len(), 1);
    sqlx::raw_sql("ROLLBACK").execute(&mut raw).await.unwrap();
    let failure = failure("test", 100);
    let observed = hasty.observe(&world.project, &failure, None, &id, NOW);
    assert_eq!(observed.await.unwrap(), Observed::Opened(id.clone()));
}

/// Gives up, for this thread and those it starts, root's right to write what its mode forbids.
fn without_override() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).unwrap();
    sets.effective -= CapabilitySet::DAC_OVERRIDE;
    set_capabilities(None, sets).unwrap();
}

#[test]
fn a_database_that_cannot_be_written_says_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let url = at(&folder, "caretaker.db");
    let mode = |path: &std::path::Path, bits| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    };
    let path = folder.path().to_owned();
    let database = path.join("caretaker.db");
    std::thread::spawn(move || {
        without_override();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let store = Store::open(&url).await.unwrap();
            store.close().await;
            mode(&path, 0o500);
            let message = refusal(Store::open_existing(&url)).await;
            assert!(
                message.contains("write permission to the file and to its folder"),
                "{message}"
            );
            let message = refusal(Store::open(&format!("{url}-other"))).await;
            assert!(message.contains("Permission denied"), "{message}");
            mode(&path, 0o700);
            mode(&database, 0o400);
            let read_only = async {
                let store = Store::open_existing(&url).await?;
                let organisation = project(1, 1).organisation;
                store.ensure_organisation(&organisation, "x", NOW).await?;
                Ok(store)
            };
            let message = refusal(read_only).await;
            assert!(message.contains("cannot be written"), "{message}");
            mode(&database, 0o600);
        });
    })
    .join()
    .unwrap();
}

on_both! {
    async fn a_newer_schema_is_not_touched(world) {
        let mut raw = world.raw().await;
        sqlx::raw_sql("UPDATE meta SET value = '999'").execute(&mut raw).await.unwrap();
        let message = refusal(Store::open(&world.url)).await;
        assert!(message.contains("its schema is version 999"), "{message}");
    }

    async fn opening_again_changes_nothing(world) {
        let incident = world.open("test").await;
        let before = world.snapshot(&incident).await;
        let again = Store::open_existing(&world.url).await.unwrap();
        let scope = again.within(&world.project.organisation);
        assert_eq!(scope.snapshot(&incident, NOW).await.unwrap(), Some(before));
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_named_without_its_password() {
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("postgres://caretaker:hunter2@127.0.0.1:{port}/caretaker?sslmode=disable");
    let message = refusal(Store::open(&url)).await;
    assert!(
        message.contains("postgres://127.0.0.1/caretaker"),
        "{message}"
    );
    assert!(
        message.contains("the server cannot be reached"),
        "{message}"
    );
}

#[tokio::test]
async fn a_server_that_refuses_the_database_says_what_to_check() {
    let Some(url) = postgres::schema().await else {
        return;
    };
    let elsewhere = url.replacen("/postgres?", "/absent?", 1);
    let message = refusal(Store::open(&elsewhere)).await;
    assert!(
        message.contains("check user, password and database name"),
        "{message}"
    );
}

#[tokio::test]
async fn a_transaction_that_the_database_ended_by_itself_is_forgotten() {
    let world = World::sqlite().await;
    let mut raw = AnyConnection::connect(&world.url).await.unwrap();
    // As a full disk does: the statement fails, and the transaction is gone.
    sqlx::raw_sql(
        "CREATE TRIGGER no_space BEFORE INSERT ON seen_run BEGIN SELECT RAISE(ROLLBACK, 'no space'); END",
    )
    .execute(&mut raw)
    .await
    .unwrap();
    let (store, project) = (&world.store, &world.project.id);
    for run in 0..12 {
        let marked = store.mark_seen(project, &[(run, 1)], NOW).await;
        let message = marked.unwrap_err().to_string();
        assert!(message.contains("no space"), "{message}");
    }
    sqlx::raw_sql("DROP TRIGGER no_space")
        .execute(&mut raw)
        .await
        .unwrap();
    for run in 0..12 {
        store.ready().await.unwrap();
        store.mark_seen(project, &[(run, 1)], NOW).await.unwrap();
    }
    assert_eq!(store.seen_runs(project, 0).await.unwrap().len(), 12);
}

#[tokio::test]
async fn a_database_that_can_only_be_read_is_not_ready() {
    let world = World::sqlite().await;
    let store = Store::open_with(&world.url, Patience::Short).await.unwrap();
    store.ready().await.unwrap();
    let mut raw = AnyConnection::connect(&world.url).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut raw)
        .await
        .unwrap();
    let locked = store.ready().await.unwrap_err();
    assert!(matches!(locked, StoreError::Locked { .. }), "{locked}");
    sqlx::raw_sql("ROLLBACK").execute(&mut raw).await.unwrap();
    store.ready().await.unwrap();
}
