//! Tokens with their matching brackets.

use super::lexer::{Kind, LexError, Syntax, Token, lex};

/// Brackets within each other that are followed.
const DEPTH: usize = 200;

/// A source as tokens with their matching brackets.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    list: Vec<Token<'a>>,
    /// For an opening bracket the index of its closing one; otherwise its own index.
    partners: Vec<usize>,
}

impl<'a> Tokens<'a> {
    pub(super) fn read(syntax: Syntax, source: &'a str) -> Result<Self, LexError> {
        let list = lex(syntax, source)?;
        let partners = match_brackets(&list)?;
        Ok(Self { list, partners })
    }

    pub(super) fn get(&self, index: usize) -> Option<&Token<'a>> {
        self.list.get(index)
    }

    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the token is this word or punctuation character.
    pub(super) fn is(&self, index: usize, text: &str) -> bool {
        self.get(index).is_some_and(|token| token.is(text))
    }

    pub(super) fn word(&self, index: usize) -> Option<&'a str> {
        self.get(index)
            .filter(|token| token.kind == Kind::Word)
            .map(|token| token.text)
    }

    /// The index of the bracket that closes the one at `index`.
    pub(super) fn closing(&self, index: usize) -> usize {
        self.partners.get(index).copied().unwrap_or(index)
    }

    /// The tokens of a range as one text that does not depend on blanks, comments or trailing commas.
    pub(super) fn text(&self, range: std::ops::Range<usize>) -> String {
        let mut text = String::new();
        let end = range.end;
        for index in range {
            let Some(token) = self.get(index) else { break };
            let trailing = token.is(",")
                && index + 1 < end
                && self
                    .get(index + 1)
                    .is_some_and(|next| is_closing(next.text) && next.kind == Kind::Punctuation);
            if token.kind == Kind::Doc || trailing {
                continue;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(token.text);
        }
        text
    }
}

fn is_closing(text: &str) -> bool {
    matches!(text, ")" | "]" | "}")
}

fn match_brackets(list: &[Token<'_>]) -> Result<Vec<usize>, LexError> {
    let mut partners: Vec<usize> = (0..list.len()).collect();
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (index, token) in list.iter().enumerate() {
        if token.kind != Kind::Punctuation {
            continue;
        }
        let fail = |reason| LexError {
            at: token.start,
            reason,
        };
        match token.text {
            "(" => open.push((index, ")")),
            "[" => open.push((index, "]")),
            "{" => open.push((index, "}")),
            text if is_closing(text) => {
                let (opening, expected) = open.pop().ok_or(fail("a bracket closes nothing"))?;
                if expected != text {
                    return Err(fail("brackets do not match"));
                }
                if let Some(partner) = partners.get_mut(opening) {
                    *partner = index;
                }
            }
            _ => {}
        }
        if open.len() > DEPTH {
            return Err(fail("brackets are nested too deeply"));
        }
    }
    match open.first() {
        None => Ok(partners),
        Some(_) => Err(LexError {
            at: list.last().map_or(0, |token| token.start),
            reason: "a bracket is never closed",
        }),
    }
}
