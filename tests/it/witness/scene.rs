//! A witness in a folder, and the requests of a log.

use std::path::PathBuf;
use std::sync::Arc;

use caretaker::clock::{Clock, FixedClock};
use caretaker::log::{KeyName, SignedCheckpoint, TreeHash, VerifierKey};
use caretaker::witness::{Answer, Limits, Witness, WitnessError, init, router, serve};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::log::scene::{NOW, Stored, log};

pub(crate) const WITNESS: &str = "auditor.example/witness";

/// Not random at all.
#[allow(
    clippy::unnecessary_wraps,
    reason = "randomness from a system can be missing"
)]
pub(crate) fn fill(buffer: &mut [u8]) -> Result<(), caretaker::attest::keys::FillError> {
    buffer.fill(23);
    Ok(())
}

/// A folder with a witness that has seen nothing.
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) key: VerifierKey,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = init(folder.path(), &KeyName::new(WITNESS).unwrap(), &mut fill).unwrap();
        Self { folder, key }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs it for the log of the scene.
    pub(crate) fn open(&self) -> Result<Witness, WitnessError> {
        Witness::open(self.folder.path(), vec![log().verifier()])
    }

    pub(crate) fn witness(&self) -> Witness {
        self.open().unwrap()
    }
}

/// The body of `add-checkpoint`.
pub(crate) fn body(old: u64, proof: &[TreeHash], checkpoint: &SignedCheckpoint) -> Vec<u8> {
    let proof: String = proof.iter().map(|hash| format!("{hash}\n")).collect();
    format!("old {old}\n{proof}\n{checkpoint}").into_bytes()
}

/// What the log sends to lead a witness from one size to another.
pub(crate) fn step(stored: &Stored, old: u64, new: u64) -> Vec<u8> {
    let proof = if old == 0 || old == new {
        Vec::new()
    } else {
        stored.consistency(old, new)
    };
    body(old, &proof, &stored.checkpoint(new))
}

/// The log's tree up to `common`, and other leaves from there.
pub(crate) fn forked(common: usize, size: usize) -> Stored {
    let mut stored = Stored::of(common);
    for index in common..size {
        let leaf = TreeHash::of_leaf(format!("another {index}").as_bytes());
        let nodes = &mut stored.nodes;
        let complete = |node, hash| {
            nodes.insert(node, hash);
        };
        stored.frontier.append_with(leaf, complete).unwrap();
    }
    stored
}

/// The status that stands for an answer.
pub(crate) fn status(answer: &Answer) -> u16 {
    match answer {
        Answer::Cosigned(_) => 200,
        Answer::Malformed(_) => 400,
        Answer::Untrusted(_) => 403,
        Answer::UnknownLog => 404,
        Answer::Conflict { .. } => 409,
        Answer::Inconsistent(_) => 422,
        Answer::Failed(_) => 500,
    }
}

#[track_caller]
pub(crate) fn cosigned(answer: Answer) -> caretaker::log::NoteSignature {
    match answer {
        Answer::Cosigned(signature) => signature,
        other => panic!("{other:?}"),
    }
}

/// Serves it on loopback; where.
pub(crate) async fn served(witness: Witness, limits: Limits) -> String {
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(NOW));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(Arc::new(witness), clock);
    tokio::spawn(async move {
        serve(listener, router, limits, std::future::pending())
            .await
            .unwrap();
    });
    format!("http://{address}")
}

pub(crate) fn client() -> reqwest::Client {
    // Another test of this process may have been first.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Status, content type and body.
pub(crate) async fn post(base: &str, body: impl Into<reqwest::Body>) -> (u16, String, String) {
    let request = client().post(format!("{base}/add-checkpoint")).body(body);
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type");
    let kind = kind.map_or("", |kind| kind.to_str().unwrap()).to_owned();
    (status, kind, response.text().await.unwrap())
}
