//! The key with which this installation signs the receipts of `token check`, made when it is first needed.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::super::files::replace;
use super::{create_secret, read_private_key};
use crate::config::Environment;
use crate::receipts::{PemKey, public_pem};
use crate::signer::system_randomness;

/// Where this installation keeps what concerns receipts: a folder of its own in `CARETAKER_HOME`.
pub(super) fn folder() -> anyhow::Result<PathBuf> {
    let folder = Environment::of_process()?.home()?.join("receipts");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("making the folder {}", folder.display()))?;
    Ok(folder)
}

/// A key that signs receipts.
pub(in crate::cli) struct OwnKey;

impl OwnKey {
    /// The key in `named`, else this installation's.
    pub(super) fn open(named: Option<&Path>) -> anyhow::Result<PemKey> {
        if let Some(path) = named {
            return read_private_key(path);
        }
        let path = folder()?.join("gate.pem");
        if !path.exists() {
            let (_, pem) = PemKey::generate(&mut system_randomness)?;
            // Of two that come here at once, one key stays; both read it.
            create_secret(&path, pem.as_bytes())
                .with_context(|| format!("making the key {}", path.display()))?;
        }
        let key = read_private_key(&path)?;
        let public = Self::public_path()?;
        if !public.exists() {
            let pem = public_pem(&key.public());
            replace("the public key", &public, pem.as_bytes())?;
        }
        Ok(key)
    }

    /// The file with the public half of this installation's key.
    pub(in crate::cli) fn public_path() -> anyhow::Result<PathBuf> {
        Ok(folder()?.join("gate.pub.pem"))
    }
}
