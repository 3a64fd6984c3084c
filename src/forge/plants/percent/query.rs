//! Queries: pairs of names and values.

use super::percent::{decode, DecodeError};

/// The pairs of a query, in order. A name without an equals sign has an empty value; a plus sign means a space.
pub fn parse_query(query: &str) -> Result<Vec<(String, String)>, DecodeError> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(&name.replace('+', " "))?, decode(&value.replace('+', " "))?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_in_order() {
        let pairs = parse_query("b=2&a=1+1&flag").unwrap();
        let expected = [("b", "2"), ("a", "1 1"), ("flag", "")];
        assert_eq!(pairs, expected.map(|(name, value)| (name.to_string(), value.to_string())));
    }
}
