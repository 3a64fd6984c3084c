//! `docs/conformance.md`: every test that it names is there.

use crate::faults::page::{exists, paths, root};

#[test]
fn every_test_that_the_page_names_exists() {
    let page = std::fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let module = |path: &str| {
        let file = format!("tests/it/{}.rs", path.replace("::", "/"));
        root().join(file).is_file()
    };
    let missing: Vec<_> = paths(&page)
        .filter(|path| !exists(path) && !module(path))
        .collect();
    assert!(paths(&page).count() > 60, "the page was not understood");
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}
