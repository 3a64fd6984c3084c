//! Tokens: what they may do, to which repositories, and for how long.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};

use super::locked;

/// The two kinds of personal access token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// `ghp_…`: may do what its scopes say to everything its owner may see.
    Classic {
        /// Such as `repo`, `repo:status` or `workflow`.
        scopes: Vec<String>,
    },
    /// `github_pat_…`: has permissions one by one.
    FineGrained {
        /// Permission to `read`, `write` or `admin`, such as `contents` to `write`. Metadata is always readable.
        permissions: BTreeMap<String, String>,
    },
}

/// A token to be issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// What it may do.
    pub kind: TokenKind,
    /// The repositories it may see, by number; `None`: all.
    pub repositories: Option<Vec<u64>>,
    /// When it ends, in seconds since 1970 on the forge's clock; `None`: never.
    pub expires_at: Option<u64>,
}

/// What a token allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    Classic {
        scopes: Vec<String>,
    },
    FineGrained {
        permissions: BTreeMap<String, String>,
    },
    Installation {
        id: u64,
        permissions: BTreeMap<String, String>,
    },
}

/// A token that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) grant: Grant,
    pub(crate) repositories: Option<BTreeSet<u64>>,
    pub(crate) expires_at: Option<u64>,
}

/// The tokens that work, but for their expiry.
pub(crate) struct Tokens {
    known: Mutex<HashMap<String, Arc<Token>>>,
    issued: std::sync::atomic::AtomicU64,
    /// Makes texts that nobody can guess who does not know the first token.
    seed: String,
}

impl Tokens {
    /// With one token that may do everything.
    pub(crate) fn with(first: &str) -> Self {
        let scopes = vec!["repo".to_owned(), "workflow".to_owned()];
        let token = Token {
            text: first.to_owned(),
            grant: Grant::Classic { scopes },
            repositories: None,
            expires_at: None,
        };
        Self {
            known: Mutex::new(HashMap::from([(first.to_owned(), Arc::new(token))])),
            issued: std::sync::atomic::AtomicU64::new(0),
            seed: first.to_owned(),
        }
    }

    /// So many letters and digits, others at every call.
    pub(crate) fn letters(&self, length: usize) -> String {
        let number = self
            .issued
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut text = String::new();
        let mut block = 0_u64;
        while text.len() < length {
            let digest = Sha256::new()
                .chain_update(&self.seed)
                .chain_update(number.to_be_bytes())
                .chain_update(block.to_be_bytes())
                .finalize();
            for byte in digest {
                // Writing to a string never fails.
                let written = write!(text, "{byte:02x}");
                debug_assert!(written.is_ok());
            }
            block += 1;
        }
        text.truncate(length);
        text
    }

    pub(crate) fn issue(&self, new: NewToken) -> String {
        let (text, grant) = match new.kind {
            TokenKind::Classic { scopes } => (
                format!("ghp_{}", self.letters(36)),
                Grant::Classic { scopes },
            ),
            TokenKind::FineGrained { permissions } => (
                format!("github_pat_{}_{}", self.letters(22), self.letters(59)),
                Grant::FineGrained { permissions },
            ),
        };
        self.add(Token {
            text: text.clone(),
            grant,
            repositories: new.repositories.map(BTreeSet::from_iter),
            expires_at: new.expires_at,
        });
        text
    }

    pub(crate) fn add(&self, token: Token) {
        locked(&self.known).insert(token.text.clone(), Arc::new(token));
    }

    pub(crate) fn find(&self, text: &str) -> Option<Arc<Token>> {
        locked(&self.known).get(text).cloned()
    }

    pub(crate) fn revoke(&self, text: &str) {
        locked(&self.known).remove(text);
    }

    /// Ends every token of an installation.
    pub(crate) fn revoke_installation(&self, installation: u64) {
        locked(&self.known).retain(|_, token| {
            !matches!(&token.grant, Grant::Installation { id, .. } if *id == installation)
        });
    }
}

impl Token {
    /// Whether its permissions or scopes include one for workflow files.
    pub(crate) fn may_write_workflows(&self) -> bool {
        match &self.grant {
            Grant::Classic { scopes } => scopes.iter().any(|scope| scope == "workflow"),
            Grant::FineGrained { permissions } | Grant::Installation { permissions, .. } => {
                permissions
                    .get("workflows")
                    .is_some_and(|level| level == "write")
            }
        }
    }

    /// Who is refused, and for want of what, in GitHub's words about workflow files.
    pub(crate) fn workflow_refusal(&self) -> (&'static str, &'static str) {
        match self.grant {
            Grant::Classic { .. } => ("a Personal Access Token", "`workflow` scope"),
            Grant::FineGrained { .. } => ("a Personal Access Token", "`workflows` permission"),
            Grant::Installation { .. } => ("a GitHub App", "`workflows` permission"),
        }
    }
}
