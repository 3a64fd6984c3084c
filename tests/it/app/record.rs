//! What happens to tokens is in the history, and the tokens are not in the database.

use caretaker::id::OrganisationId;
use caretaker::onboard::app::token_recorder;
use caretaker::store::Store;
use serde_json::json;
use sqlx::{AnyConnection, Connection as _, Row as _};

use super::*;
use crate::alignment::scene::Stream;

#[tokio::test]
async fn the_history_shows_every_token_and_the_database_holds_none() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("caretaker.db").display());
    let store = Store::open(&url).await.unwrap();
    let organisation = OrganisationId::new(NOW, [1; 10]);
    let ensured = store.ensure_organisation(&organisation, "example", NOW);
    ensured.await.unwrap();

    let stream = Arc::new(Stream::default());
    let (sink, recorder) = token_recorder(10);
    let mut recorder = recorder.telling(Arc::clone(&stream) as Arc<_>);
    let tokens = AppTokens::new(
        Arc::clone(&bench.mint) as Arc<dyn Mint>,
        Arc::clone(&bench.clock) as Arc<_>,
        sink,
    );
    let source = tokens.of(INSTALLATION, Target::Number(REPOSITORY));
    source.token(Use::Read, NOTHING).await.unwrap();
    bench.clock.advance_millis(minutes(58));
    source.token(Use::Read, NOTHING).await.unwrap();
    let merge = source.token(Use::Execute, NOTHING).await.unwrap();
    source.release(&merge).await.unwrap();
    drop((source, tokens));
    let never = std::future::pending();
    recorder.run(&store, &organisation, never).await;

    let mut database = AnyConnection::connect(&url).await.unwrap();
    let rows = sqlx::query("SELECT kind, detail FROM audit_event ORDER BY number");
    let rows = rows.fetch_all(&mut database).await.unwrap();
    let kinds: Vec<String> = rows.iter().map(|row| row.get("kind")).collect();
    assert_eq!(
        kinds,
        [
            "token-issued",
            "token-expired",
            "token-issued",
            "token-issued",
            "token-revoked"
        ]
    );
    let told = stream.all();
    let names: Vec<&str> = told.iter().map(|event| event.event).collect();
    assert_eq!(
        names,
        [
            "credential_issued",
            "credential_expired",
            "credential_issued",
            "credential_issued",
            "credential_revoked"
        ]
    );
    assert_eq!(told[4].fields["fingerprint"], json!(merge.fingerprint));
    let last: String = rows.last().unwrap().get("detail");
    assert!(
        last.contains("for the executor revoked after its task"),
        "{last}"
    );
    assert!(last.contains(&merge.fingerprint));
    database.close().await.unwrap();

    let made = bench.mint.made.lock().unwrap().clone();
    assert_eq!(made.len(), 3);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for text in &made {
            let part = &text.as_bytes()[..24];
            assert!(!bytes.windows(part.len()).any(|window| window == part));
        }
    }
}

#[tokio::test]
async fn a_full_recorder_loses_events_and_says_how_many() {
    let bench = Bench::new();
    let (sink, recorder) = token_recorder(2);
    let tokens = AppTokens::new(
        Arc::clone(&bench.mint) as Arc<dyn Mint>,
        Arc::clone(&bench.clock) as Arc<_>,
        sink,
    );
    // Nobody reads, and nobody waits for whoever would.
    for repository in 1..=5 {
        let source = tokens.of(INSTALLATION, Target::Number(repository));
        source.token(Use::Read, NOTHING).await.unwrap();
    }
    assert_eq!(recorder.dropped(), 3);
    assert_eq!(recorder.dropped(), 0, "each is counted once");
}
