//! `docs/threat-model.md`: every test that it names is there.

use std::path::Path;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/threat-model.md")).unwrap()
}

/// What stands between backquotes and looks like a path of Rust.
pub(crate) fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.contains("::") && !word.contains(' '))
}

/// Whether the test is there: the last part a function, the others the file, with perhaps a module or two inside.
pub(crate) fn exists(path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").collect();
    let Some((name, modules)) = parts.split_last() else {
        return false;
    };
    // A behaviour on both databases has its name and an argument.
    let functions = [format!("fn {name}("), format!("async fn {name}(world)")];
    (1..=modules.len()).any(|files| {
        let file = format!("tests/it/{}.rs", modules[..files].join("/"));
        let text = std::fs::read_to_string(root().join(file));
        text.is_ok_and(|text| functions.iter().any(|function| text.contains(function)))
    })
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = page();
    let missing: Vec<_> = paths(&page).filter(|path| !exists(path)).collect();
    assert!(paths(&page).count() > 40, "the page was not understood");
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

#[test]
fn every_class_of_fault_has_a_test() {
    let page = page();
    let (_, section) = page.split_once("## Faults that others had").unwrap();
    let rows: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    for number in 1..=23 {
        let row = rows
            .iter()
            .find(|row| row.starts_with(&format!("| {number} |")));
        let row = row.unwrap_or_else(|| panic!("no row {number}"));
        assert!(paths(row).count() > 0, "no test in row {number}");
    }
}
