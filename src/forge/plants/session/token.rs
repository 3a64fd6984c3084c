//! A session token and its life time.

/// A token, in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    subject: String,
    issued_at: u64,
    lifetime: u64,
}

impl Token {
    /// A token for `subject` that lives for `lifetime` seconds.
    pub fn issue(subject: &str, issued_at: u64, lifetime: u64) -> Self {
        Self { subject: subject.to_string(), issued_at, lifetime }
    }

    /// Whom the token speaks for.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Whether the token lets anybody in: from its issue on, and no longer once its life time is over.
    pub fn is_valid(&self, now: u64) -> bool {
        now >= self.issued_at && now - self.issued_at <= self.lifetime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_token_is_valid() {
        assert!(Token::issue("maya", 1_000, 60).is_valid(1_000));
    }

    #[test]
    fn a_token_from_the_future_is_not_valid() {
        assert!(!Token::issue("maya", 1_000, 60).is_valid(999));
    }

    #[test]
    fn a_token_ends_with_its_life_time() {
        let token = Token::issue("maya", 1_000, 60);
        assert!(token.is_valid(1_059));
        assert!(!token.is_valid(1_060), "a token of 60 seconds must not be valid in second 60");
    }
}
