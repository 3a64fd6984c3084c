//! `docs/threat-model.md`: every test that it names is there.

use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/threat-model.md")).unwrap()
}

/// What stands between backquotes and looks like a path of Rust.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.contains("::") && !word.contains(' '))
}

/// Whether the test is there: the last part a function, the others the file, with perhaps a module or two inside.
fn exists(path: &str) -> bool {
    let parts: Vec<&str> = path.split("::").collect();
    let Some((name, modules)) = parts.split_last() else {
        return false;
    };
    let function = format!("fn {name}(");
    (1..=modules.len()).any(|files| {
        let file = format!("tests/it/{}.rs", modules[..files].join("/"));
        std::fs::read_to_string(root().join(file)).is_ok_and(|text| text.contains(&function))
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
