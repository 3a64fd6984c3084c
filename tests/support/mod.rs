//! What scenario tests share.

pub(crate) mod postgres;

use std::path::PathBuf;

/// A file of the shared test data. Absent data is said in one loud line and the test counts as skipped; in CI it fails.
pub(crate) fn corpus(name: &str) -> Option<Vec<u8>> {
    let root = std::env::var_os("CARETAKER_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    );
    let path = root.join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!(
                "SKIPPED: test data {} cannot be read ({error}); set CARETAKER_CORPORA to the folder that holds it",
                path.display()
            );
            None
        }
        Err(error) => panic!("test data {} cannot be read in CI: {error}", path.display()),
    }
}
