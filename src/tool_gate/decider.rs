//! Who resolved a tool call's approval: a name, how it was proved, and under which grant.
//!
//! There is no default, so a surface that cannot name the decider cannot resolve. The namespace `system:` is reserved both ways: a
//! person may not use it and software must, so that a decision the software made cannot be read as a person's.

use serde::{Deserialize, Serialize};

/// The longest identifier or grant, in bytes.
const MOST_BYTES: usize = 200;
/// What software's names begin with.
const SYSTEM: &str = "system:";

/// How the decider's name was proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMethod {
    /// A token of the configuration, sent with an HTTP request.
    ScopedToken,
    /// A request from this machine, where no tokens are configured.
    Loopback,
    /// A user of this machine at a command line.
    LocalShell,
    /// The software itself.
    ServerInternal,
}

impl AuthMethod {
    /// The word that is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScopedToken => "scoped-token",
            Self::Loopback => "loopback",
            Self::LocalShell => "local-shell",
            Self::ServerInternal => "server-internal",
        }
    }
}

/// A person or software.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeciderKind {
    /// A person.
    Human,
    /// Software.
    System,
}

/// A text that names no decider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("naming who decides: {0}")]
pub struct DeciderError(&'static str);

/// A decider as it is stored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    identifier: String,
    auth_method: AuthMethod,
    kind: DeciderKind,
    grant: Option<String>,
}

/// Who resolved it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Decider {
    identifier: String,
    auth_method: AuthMethod,
    kind: DeciderKind,
    grant: Option<String>,
}

impl Decider {
    /// A person, with the session or grant under which they act.
    ///
    /// # Errors
    /// The name is empty, too long, not printable, or one of software's; or the method is none that a person has.
    pub fn person(
        identifier: &str,
        auth_method: AuthMethod,
        grant: Option<&str>,
    ) -> Result<Self, DeciderError> {
        printable(identifier)?;
        grant.map_or(Ok(()), printable)?;
        // Break it: leave this out (`tool_gate::approval::the_system_namespace_is_reserved_both_ways`).
        if identifier
            .get(..SYSTEM.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(SYSTEM))
        {
            return Err(DeciderError(
                "system: is reserved for decisions that no person made",
            ));
        }
        if auth_method == AuthMethod::ServerInternal {
            return Err(DeciderError("a person is not proved by the server itself"));
        }
        Ok(Self {
            identifier: identifier.to_owned(),
            auth_method,
            kind: DeciderKind::Human,
            grant: grant.map(str::to_owned),
        })
    }

    /// A component of this software: `system:NAME`.
    pub fn system(component: &'static str) -> Self {
        Self {
            identifier: format!("{SYSTEM}{component}"),
            auth_method: AuthMethod::ServerInternal,
            kind: DeciderKind::System,
            grant: None,
        }
    }

    /// The name.
    pub fn identifier(&self) -> &str {
        &self.identifier
    }

    /// How it was proved.
    pub const fn auth_method(&self) -> AuthMethod {
        self.auth_method
    }

    /// A person or software.
    pub const fn kind(&self) -> DeciderKind {
        self.kind
    }

    /// The session or grant.
    pub fn grant(&self) -> Option<&str> {
        self.grant.as_deref()
    }
}

impl TryFrom<Stored> for Decider {
    type Error = DeciderError;

    /// What the database holds is held to the same rules as what is new.
    fn try_from(stored: Stored) -> Result<Self, DeciderError> {
        let Stored {
            identifier,
            auth_method,
            kind,
            grant,
        } = stored;
        if kind == DeciderKind::Human {
            return Self::person(&identifier, auth_method, grant.as_deref());
        }
        if !identifier.starts_with(SYSTEM) || auth_method != AuthMethod::ServerInternal {
            return Err(DeciderError("software is named system:COMPONENT"));
        }
        Ok(Self {
            identifier,
            auth_method,
            kind,
            grant,
        })
    }
}

fn printable(text: &str) -> Result<(), DeciderError> {
    if text.trim().is_empty() {
        return Err(DeciderError("the name is empty"));
    }
    if text.len() > MOST_BYTES {
        return Err(DeciderError("the name has more than 200 bytes"));
    }
    // Signs that cannot be seen would let one name pass for another.
    if !text
        .chars()
        .all(|character| character.is_alphanumeric() || character.is_ascii_graphic())
    {
        return Err(DeciderError(
            "the name has characters beside letters, digits and ASCII signs",
        ));
    }
    Ok(())
}
