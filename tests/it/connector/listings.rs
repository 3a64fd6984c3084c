//! Listings of trees and files: one odd answer, and what it does; and two producers of the same change.

use caretaker::approve::MergeMethod;
use caretaker::connector::Connector as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::comparison::{FILE, LINK, PROGRAM, after, before, blocked_by, live};
use super::provider::json;
use super::world::{Files, World, is_plain};

/// What the connector says when one answer, found by its tail, is changed.
async fn when_answered(tail: &'static str, change: fn(&mut Value)) -> String {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let honest = world.serve().await;
    let view = honest.connector().live(&binding).await.unwrap();
    world.answer_instead(move |world, asked| {
        let mut value = match asked.tail() {
            found if found == tail && tail == "/pulls/7/files" => json!(world.rows()),
            found if found.starts_with(tail) && tail == "/git/trees/" => {
                world.tree(found.strip_prefix(tail)?)?
            }
            _ => return None,
        };
        change(&mut value);
        Some(json(200, &value))
    });
    match live(&world, &binding).await {
        Ok(changed) if changed == view => "no difference".to_owned(),
        Ok(changed) => blocked_by(&binding, &changed).join(" "),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_listing_that_is_not_the_tree_is_refused() {
    let not_the_tree = "not the tree that was asked for";
    let said = when_answered("/git/trees/", |tree| tree["truncated"] = json!(true)).await;
    assert!(said.contains("cut short"), "{said}");
    let said = when_answered("/git/trees/", |tree| tree["truncated"] = Value::Null).await;
    assert!(said.contains("cut short"), "{said}");
    let said = when_answered("/git/trees/", |tree| {
        tree["tree"].as_array_mut().unwrap().pop();
    });
    assert!(said.await.contains(not_the_tree));
    let said = when_answered("/git/trees/", |tree| {
        tree["tree"][0]["path"] = json!("other");
    });
    assert!(said.await.contains(not_the_tree));
    let said = when_answered("/git/trees/", |tree| {
        tree["tree"][0]["mode"] = json!("100755");
    });
    assert!(said.await.contains(not_the_tree));
    let said = when_answered("/git/trees/", |tree| {
        tree["tree"][0]["sha"] = json!("abcdef1");
    })
    .await;
    assert!(said.contains("40 or 64"), "{said}");
    let said = when_answered("/git/trees/", |tree| {
        tree["tree"].as_array_mut().unwrap().reverse();
    });
    assert_eq!(
        said.await,
        "no difference",
        "the order of a listing does not matter"
    );
}

#[tokio::test]
async fn odd_rows_of_files_are_refused_or_block_but_are_never_dropped() {
    let said = when_answered("/pulls/7/files", |rows| rows[0]["sha"] = json!("abcdef1")).await;
    assert!(said.contains("40 or 64"), "{said}");
    let said = when_answered("/pulls/7/files", |rows| rows[0]["filename"] = Value::Null).await;
    assert!(said.contains("filename is missing"), "{said}");
    let said = when_answered("/pulls/7/files", |rows| {
        rows[0]["status"] = json!("deleted");
    })
    .await;
    assert!(said.contains("listed-files"), "{said}");
    let said = when_answered("/pulls/7/files", |rows| {
        rows.as_array_mut().unwrap().pop();
    });
    assert!(said.await.contains("listed-file-count"));
}

fn tree_of_files() -> impl Strategy<Value = Files> {
    let path = proptest::collection::vec("[a-c.ä ]{1,2}", 1..4).prop_map(|parts| parts.join("/"));
    let mode = prop_oneof![Just(FILE), Just(PROGRAM), Just(LINK)];
    let file = (path, (mode, "[xy]{0,2}".prop_map(String::from)));
    proptest::collection::btree_map(
        file.clone().prop_map(|it| it.0),
        file.prop_map(|it| it.1),
        0..12,
    )
    .prop_map(|files| {
        let safe = |path: &str| path.split('/').all(|part| part != "." && part != "..");
        let mut kept = Files::new();
        for (path, file) in files {
            let below = |other: &String| {
                other.starts_with(&format!("{path}/")) || path.starts_with(&format!("{other}/"))
            };
            if safe(&path) && is_plain(&path) && !kept.keys().any(below) {
                kept.insert(path, file);
            }
        }
        kept
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Descent over the interface and libgit2's own difference are the same change, bit for bit.
    #[test]
    fn two_producers_agree_on_any_two_trees(before in tree_of_files(), after in tree_of_files()) {
        prop_assume!(before != after);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (ours, theirs) = runtime.block_on(async {
            let world = World::new(&before, &after);
            let facts = world.facts();
            let theirs = world.change_set(facts.base, facts.head);
            let view = live(&world, &world.binding(MergeMethod::Squash)).await.unwrap();
            (view.entries, theirs)
        });
        prop_assert_eq!(ours.digest(), theirs.digest());
        prop_assert_eq!(ours, theirs);
    }
}
