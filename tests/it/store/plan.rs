//! How SQLite finds what is asked often: without reading every project each time.

use caretaker::store::Store;
use sqlx::Row as _;

use super::World;

/// What is asked at every look of a worker. One that reads every project makes the cost of watching grow with their square.
///
/// Break it: ask for what is due with one `OR` over both kinds (`look::ANY_DUE`), or for the next one with `MIN` over a join.
#[tokio::test]
async fn what_is_asked_at_every_look_reads_no_table_whole() {
    let world = World::sqlite().await;
    let mut raw = world.raw().await;
    let asked = [
        "ANY_DUE",
        "TAKE_LOOKS",
        "NEXT",
        "ONE",
        "LOOKED",
        "KEEP_LOOK",
    ];
    for name in asked {
        let statement = Store::statements().find(|statement| statement.name == name);
        let text = statement.unwrap().text;
        #[expect(
            clippy::disallowed_methods,
            reason = "the question about a statement is made of it"
        )]
        let explained = sqlx::raw_sql(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}")));
        let rows = explained.fetch_all(&mut raw).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        assert!(!plan.is_empty(), "{name}");
        for step in &plan {
            let table = step.strip_prefix("SCAN ").unwrap_or_default();
            let whole = ["p", "w", "project", "project_watch"]
                .iter()
                .any(|read| table.split(' ').next() == Some(read));
            assert!(!whole || table.contains("USING INDEX"), "{name}: {plan:#?}");
        }
    }
}
