//! The keys of an installation: made, opened, refused, shown.

mod agent;
mod command;
mod creating;
mod credentials;
mod memory;
mod opening;
mod rotation;
mod service;
mod sockets;
mod succession;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use caretaker::attest::keys::FillError;
use caretaker::attest::{KeyFile, KeyUse, SecretKey, TrustRoot, TrustRootDocument};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::config::{Configuration, Environment};
use caretaker::signer::{self, CreateError, Created, Keyring, KeyringError};

/// When the keys of these stories are made.
const NOW: Millis = Millis(1_780_000_000_000);

/// Bytes that look random and are the same in every run; `story` makes those of one test differ from another's.
fn bytes_of(story: &'static str) -> impl FnMut(&mut [u8]) -> Result<(), FillError> {
    let mut count = 0_u64;
    move |buffer| {
        for piece in buffer.chunks_mut(32) {
            count += 1;
            let digest = Sha256Digest::of(format!("{story} {count}").as_bytes());
            piece.copy_from_slice(&digest.as_bytes()[..piece.len()]);
        }
        Ok(())
    }
}

/// A home of its own with the variables of a test.
struct Home {
    folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Home {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home").display().to_string();
        let mut all = vec![("CARETAKER_HOME".to_owned(), home)];
        all.extend(
            variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Self {
            folder,
            variables: all,
        }
    }

    /// A home with keys in it.
    fn made(story: &'static str) -> Self {
        let home = Self::new();
        home.create(story).unwrap();
        home
    }

    /// What `keys init` made before there was a log: a trust root that lists none of its keys.
    fn made_before_the_log(story: &'static str) -> Self {
        Self::made(story).without_the_log()
    }

    fn without_the_log(self) -> Self {
        let root = self.root_key();
        let trust = TrustRoot::parse_unpinned(&self.read("trust-root-1.json")).unwrap();
        let document = TrustRootDocument {
            side_keys: None,
            ..trust.document().clone()
        };
        let trust = TrustRoot::sign(&document, &[&root]).unwrap();
        self.put("trust-root-1.json", trust.to_bytes().unwrap());
        for name in ["log.key", "log.secret"] {
            std::fs::remove_file(self.file(name)).unwrap();
        }
        self
    }

    /// The root key, opened with the secret beside it.
    fn root_key(&self) -> SecretKey {
        let file = KeyFile::parse(&self.read("root.key")).unwrap();
        let secret = hex::decode(self.read("root.secret").trim_ascii_end()).unwrap();
        file.open(KeyUse::Root, &secret).unwrap()
    }

    fn keys(&self) -> PathBuf {
        self.folder.path().join("home/keys")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.keys().join(name)
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap()
    }

    /// Puts a private file into the folder of keys, replacing what is there.
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), bytes).unwrap();
        set_mode(&self.file(name), 0o600);
    }

    fn environment(&self) -> Environment {
        Environment::new(self.variables.clone(), self.folder.path())
    }

    fn configuration(&self) -> Configuration {
        Configuration::load(None, &self.environment()).unwrap()
    }

    fn create(&self, story: &'static str) -> Result<Created, CreateError> {
        signer::create(
            &self.configuration(),
            &self.environment(),
            None,
            NOW,
            &mut bytes_of(story),
        )
    }

    fn open_at(&self, now: Millis) -> Result<Keyring, KeyringError> {
        Keyring::open(&self.configuration(), &self.environment(), now)
    }

    fn open(&self) -> Result<Keyring, KeyringError> {
        self.open_at(NOW)
    }

    /// Why the keys do not open, in words, without what differs from run to run.
    fn refusal(&self) -> String {
        self.tidy(&self.open().unwrap_err().to_string())
    }

    fn tidy(&self, text: &str) -> String {
        let text = text.replace(&self.folder.path().display().to_string(), "…");
        let masks = [
            (r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:…"),
            (r"org-[0-9a-v]{26}", "org-…"),
            (r"[0-9a-f]{64}", "[digest]"),
            (r"20\d\d-\d\d-\d\dT[0-9:.]+Z", "[time]"),
        ];
        masks.into_iter().fold(text, |text, (mask, shown)| {
            let mask = regex::Regex::new(mask).unwrap();
            mask.replace_all(&text, shown).into_owned()
        })
    }

    /// Names in the folder above the keys and in the folder of keys, with modes.
    fn listing(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for folder in [self.folder.path().join("home"), self.keys()] {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                continue;
            };
            lines.extend(entries.map(|entry| {
                let path = entry.unwrap().path();
                let inside = path.strip_prefix(self.folder.path().join("home")).unwrap();
                format!("{:03o} {}", mode(&path), inside.display())
            }));
        }
        lines.sort_by(|one, other| one[4..].cmp(&other[4..]));
        lines
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
