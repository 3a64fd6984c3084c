//! The schema is the one that every statement expects, and what is known cannot be changed.

use super::*;

on_both! {
    async fn every_statement_can_be_prepared(world) {
        assert!(world.store.prepare_every_statement().await.unwrap() > 60);
    }

    async fn many_processes_may_open_a_new_database_at_once(world) {
        // The world's own database is migrated already: take a new one beside it.
        let url = if world.is_sqlite() {
            format!("{}-second", world.url)
        } else {
            postgres::schema().await.unwrap()
        };
        let opening: Vec<_> = (0..8)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move { Store::open(&url).await.map(|_| ()) })
            })
            .collect();
        for one in opening {
            one.await.unwrap().unwrap();
        }
    }

    /// Also for whoever writes past every check of the program, a question has one answer.
    ///
    /// Break it: drop the index `fact_once` from the migrations.
    async fn of_most_kinds_an_incident_has_one_fact(world) {
        let (claim, snapshot) = world.claimed("test").await;
        world.done(&claim, &snapshot, Outcome::fact(Fact::Screened { passed: true })).await;
        let mut raw = world.raw().await;
        if world.is_sqlite() {
            // It refuses the same, before the index can.
            sqlx::raw_sql("DROP TRIGGER fact_no_replace").execute(&mut raw).await.unwrap();
        }
        let again = "INSERT INTO fact (incident, ordinal, at, kind, body) SELECT incident, ordinal + 100, at, kind, body FROM fact";
        let refused = sqlx::raw_sql(again).execute(&mut raw).await;
        let message = refused.unwrap_err().to_string().to_lowercase();
        assert!(message.contains("unique"), "{message}");
    }

    /// Break it: drop one trigger from a migration.
    async fn what_is_known_is_never_changed_nor_deleted(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let outcome = Outcome {
            facts: vec![Fact::Screened { passed: true }],
            envelope: Some(signed(&first)),
            drafts: vec![first],
            evidence: vec![caretaker::incident::EvidenceDocument {
                media_type: "text/plain",
                bytes: b"evidence".to_vec(),
            }],
            audit: vec![caretaker::incident::AuditEvent {
                kind: "tried",
                detail: "once".to_owned(),
            }],
            ..Outcome::default()
        };
        world.done(&claim, &snapshot, outcome).await;
        let common = [
            "UPDATE fact SET body = '{}'",
            "DELETE FROM fact",
            "UPDATE statement SET pae = ''",
            "DELETE FROM statement",
            "UPDATE ledger SET role = 'policy'",
            "DELETE FROM ledger",
            "UPDATE evidence SET media_type = ''",
            "DELETE FROM evidence",
            "UPDATE audit_event SET detail = ''",
            "DELETE FROM audit_event",
        ];
        // What deletes without saying so.
        let sqlite = [
            "INSERT OR REPLACE INTO fact SELECT incident, ordinal, at, kind, '{}' FROM fact",
            "INSERT OR REPLACE INTO fact SELECT incident, ordinal + 100, at, kind, '{}' FROM fact",
            "INSERT OR REPLACE INTO statement SELECT incident, seq, role, statement, '' FROM statement",
            "INSERT OR REPLACE INTO ledger SELECT incident, seq, envelope, type, 'policy', keyid, event_id, prev, pae, occurred_at FROM ledger",
            "INSERT OR REPLACE INTO evidence SELECT organisation, digest, media_type, X'00' FROM evidence",
            "INSERT OR REPLACE INTO audit_event SELECT number, organisation, incident, project, kind, '', at FROM audit_event",
        ];
        let postgres = [
            "TRUNCATE fact",
            "TRUNCATE statement",
            "TRUNCATE ledger",
            "TRUNCATE evidence",
            "TRUNCATE audit_event",
        ];
        let own: &[&'static str] = if world.is_sqlite() { &sqlite } else { &postgres };
        let mut raw = world.raw().await;
        for statement in common.iter().chain(own) {
            let refused = sqlx::raw_sql(*statement).execute(&mut raw).await;
            let message = refused.expect_err(statement).to_string();
            assert!(message.contains("is append-only"), "{statement}: {message}");
        }
    }
}

/// Tables, columns and whether they may be null, as each database describes them.
#[tokio::test]
async fn both_databases_have_the_same_tables_and_columns() {
    use sqlx::Row as _;
    let Some(shared) = World::postgres().await else {
        return;
    };
    let embedded = World::sqlite().await;
    let columns = async |world: &World, statement: &'static str| {
        let rows = sqlx::query(statement)
            .fetch_all(&mut world.raw().await)
            .await
            .unwrap();
        let text = |row: &sqlx::any::AnyRow, name: &str| row.get::<String, _>(name);
        rows.iter()
            .map(|row| (text(row, "t"), text(row, "c"), row.get::<i64, _>("n")))
            .collect::<std::collections::BTreeSet<_>>()
    };
    let shared = columns(
        &shared,
        "SELECT CAST(table_name AS TEXT) AS t, CAST(column_name AS TEXT) AS c, CAST(CASE is_nullable WHEN 'YES' THEN 1 ELSE 0 END AS BIGINT) AS n \
         FROM information_schema.columns WHERE table_schema = current_schema()",
    )
    .await;
    let embedded = columns(
        &embedded,
        "SELECT m.name AS t, p.name AS c, CASE WHEN p.\"notnull\" = 1 OR p.pk = 1 AND p.type = 'INTEGER' THEN 0 ELSE 1 END AS n \
         FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'",
    )
    .await;
    assert_eq!(shared, embedded);
    assert!(shared.len() > 90);
}
