//! What a visitor reads.

use super::auth::token::Token;

/// A greeting for whoever holds the token.
pub fn greeting(token: &Token, now: u64) -> String {
    if token.is_valid(now) {
        format!("Welcome back, {}.", token.subject())
    } else {
        "Please sign in again.".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_greeted_by_name() {
        let token = Token::issue("maya", 1_000, 60);
        assert_eq!(greeting(&token, 1_010), "Welcome back, maya.");
    }
}
