//! Tokens that count no longer although their time is not over.

use std::collections::BTreeSet;

use thiserror::Error;

use super::name::{NameError, TokenId};

/// Why a list of revoked tokens cannot be read. Nothing is allowed by a list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of the list of revoked tokens: {reason}")]
pub struct RevocationError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: NameError,
}

/// The revoked tokens. A token is denied when it or any it was narrowed from is among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revocations(BTreeSet<TokenId>);

impl Revocations {
    /// Reads a list: the name of a token a line. Empty lines and lines that begin with `#` say nothing.
    pub fn parse(text: &str) -> Result<Self, RevocationError> {
        let lines = text.lines().enumerate();
        let said = lines.filter_map(|(place, line)| {
            let line = line.trim();
            let counts = !line.is_empty() && !line.starts_with('#');
            counts.then_some((place + 1, line))
        });
        let tokens = said.map(|(line, text)| {
            // Break it: pass over a line that is no token; `receipts::gate::a_damaged_list_of_revoked_tokens_is_no_list` fails.
            TokenId::parse(text).map_err(|reason| RevocationError { line, reason })
        });
        tokens.collect::<Result<_, _>>().map(Self)
    }

    /// Adds a token; whether it was not there yet.
    pub fn revoke(&mut self, token: TokenId) -> bool {
        self.0.insert(token)
    }

    /// Whether a token is among them.
    pub fn contains(&self, token: &TokenId) -> bool {
        self.0.contains(token)
    }
}
