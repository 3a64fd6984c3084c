//! What scenario tests share.

pub(crate) mod postgres;

use std::path::PathBuf;

/// Where the shared test data is.
fn corpora() -> PathBuf {
    std::env::var_os("CARETAKER_CORPORA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    )
}

/// A file of the shared test data. Absent data is said in one loud line and the test counts as skipped; in CI it fails.
pub(crate) fn corpus(name: &str) -> Option<Vec<u8>> {
    let root = corpora();
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

/// Every file below a folder of the shared test data, with its path from there, as [`corpus`] gives single ones.
pub(crate) fn corpus_folder(name: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let root = corpora();
    let mut names = Vec::new();
    let mut folders = vec![root.join(name)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path.strip_prefix(root.join(name)).unwrap();
                names.push(below.to_str().unwrap().to_owned());
            }
        }
    }
    names.sort();
    if names.is_empty() {
        // Says so, or fails, as for a file that is not there.
        corpus(name)?;
    }
    let file = |below: String| Some((below.clone(), corpus(&format!("{name}/{below}"))?));
    names.into_iter().map(file).collect()
}
