//! Tokens of Rust, JavaScript and Go sources: enough to tell code from comments and strings and to match brackets.
//!
//! It reads text that an agent wrote. Whatever it cannot follow is an error, never a guess.

/// Brackets and template strings within each other that are followed.
const DEPTH: usize = 200;
/// Longest source that is read, in bytes.
const SOURCE_BYTES: usize = 4 << 20;

/// Which rules of comments and literals apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Rust,
    /// JavaScript and TypeScript.
    JavaScript,
    Go,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Identifier, keyword or number.
    Word,
    /// String, character, template or regular expression.
    Literal,
    Lifetime,
    Punctuation,
    /// Rust's outer doc comment, which belongs to the item after it.
    Doc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) const fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Punctuation) && self.text == text
    }
}

/// Why a source could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at}: {reason}")]
pub(super) struct LexError {
    at: usize,
    reason: &'static str,
}

/// A source as tokens with their matching brackets.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    list: Vec<Token<'a>>,
    /// For an opening bracket the index of its closing one; otherwise its own index.
    partners: Vec<usize>,
}

impl<'a> Tokens<'a> {
    pub(super) fn read(syntax: Syntax, source: &'a str) -> Result<Self, LexError> {
        if source.len() > SOURCE_BYTES {
            return Err(LexError {
                at: SOURCE_BYTES,
                reason: "the file is too long",
            });
        }
        let list = Lexer {
            syntax,
            source,
            at: 0,
            list: Vec::new(),
        }
        .run()?;
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

struct Lexer<'a> {
    syntax: Syntax,
    source: &'a str,
    at: usize,
    list: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn run(mut self) -> Result<Vec<Token<'a>>, LexError> {
        if self.source.starts_with("#!") && !self.source.starts_with("#![") {
            self.skip_line();
        }
        while let Some(byte) = self.peek(0) {
            let start = self.at;
            match byte {
                _ if byte.is_ascii_whitespace() => self.at += 1,
                b'/' if self.peek(1) == Some(b'/') => self.line_comment(),
                b'/' if self.peek(1) == Some(b'*') => self.block_comment()?,
                b'"' => {
                    self.quoted(b'"')?;
                    self.push(Kind::Literal, start);
                }
                b'\'' => self.apostrophe()?,
                b'`' => {
                    self.backtick(0)?;
                    self.push(Kind::Literal, start);
                }
                b'/' if self.syntax == Syntax::JavaScript && self.regex_may_start() => {
                    self.regex()?;
                    self.push(Kind::Literal, start);
                }
                _ if self.is_word(byte) => self.word()?,
                _ => {
                    self.at += 1;
                    self.push(Kind::Punctuation, start);
                }
            }
        }
        Ok(self.list)
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    const fn is_word(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || byte == b'_'
            || byte >= 0x80
            || (byte == b'$' && matches!(self.syntax, Syntax::JavaScript))
    }

    fn push(&mut self, kind: Kind, start: usize) {
        let text = self.source.get(start..self.at).unwrap_or_default();
        self.list.push(Token { kind, text, start });
    }

    const fn fail(&self, reason: &'static str) -> LexError {
        LexError {
            at: self.at,
            reason,
        }
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    fn line_comment(&mut self) {
        let start = self.at;
        let documents = self.syntax == Syntax::Rust
            && self.peek(2) == Some(b'/')
            && self.peek(3) != Some(b'/');
        self.skip_line();
        if documents {
            self.push(Kind::Doc, start);
        }
    }

    fn block_comment(&mut self) -> Result<(), LexError> {
        let start = self.at;
        let documents = self.syntax == Syntax::Rust
            && self.peek(2) == Some(b'*')
            && !matches!(self.peek(3), Some(b'*' | b'/'));
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) if depth == 0 || self.syntax == Syntax::Rust => {
                    depth += 1;
                    self.at += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        break;
                    }
                }
                (Some(_), _) => self.at += 1,
                (None, _) => return Err(self.fail("a comment is never closed")),
            }
        }
        if documents {
            self.push(Kind::Doc, start);
        }
        Ok(())
    }

    /// A literal in quotes with backslash escapes.
    fn quoted(&mut self, quote: u8) -> Result<(), LexError> {
        self.at += 1;
        loop {
            match self.peek(0) {
                None => return Err(self.fail("a string is never closed")),
                Some(b'\n') if self.syntax != Syntax::Rust => {
                    return Err(self.fail("a string ends at the end of a line"));
                }
                Some(b'\\') => self.at += 2,
                Some(byte) => {
                    self.at += 1;
                    if byte == quote {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn apostrophe(&mut self) -> Result<(), LexError> {
        let start = self.at;
        if self.syntax == Syntax::Rust && !self.is_character() {
            self.at += 1;
            while self.peek(0).is_some_and(|byte| self.is_word(byte)) {
                self.at += 1;
            }
            self.push(Kind::Lifetime, start);
            return Ok(());
        }
        self.quoted(b'\'')?;
        self.push(Kind::Literal, start);
        Ok(())
    }

    /// Whether the apostrophe here starts a character rather than a lifetime: `'a'` and `'\n'` against `'a`.
    fn is_character(&self) -> bool {
        let rest = self.source.get(self.at + 1..).unwrap_or_default();
        let mut characters = rest.chars();
        match characters.next() {
            Some('\\') => true,
            Some(_) => characters.next() == Some('\''),
            None => false,
        }
    }

    fn backtick(&mut self, depth: usize) -> Result<(), LexError> {
        match self.syntax {
            Syntax::Rust => Err(self.fail("a backtick is no Rust")),
            Syntax::Go => {
                let rest = self.source.get(self.at + 1..).unwrap_or_default();
                let length = rest
                    .find('`')
                    .ok_or(self.fail("a string is never closed"))?;
                self.at += length + 2;
                Ok(())
            }
            Syntax::JavaScript => self.template(depth),
        }
    }

    fn template(&mut self, depth: usize) -> Result<(), LexError> {
        if depth > DEPTH {
            return Err(self.fail("templates are nested too deeply"));
        }
        self.at += 1;
        loop {
            match (self.peek(0), self.peek(1)) {
                (None, _) => return Err(self.fail("a template is never closed")),
                (Some(b'\\'), _) => self.at += 2,
                (Some(b'`'), _) => {
                    self.at += 1;
                    return Ok(());
                }
                (Some(b'$'), Some(b'{')) => {
                    self.at += 2;
                    self.interpolation(depth)?;
                }
                (Some(_), _) => self.at += 1,
            }
        }
    }

    fn interpolation(&mut self, depth: usize) -> Result<(), LexError> {
        let mut braces = 1_usize;
        while braces > 0 {
            match self.peek(0) {
                None => return Err(self.fail("a template is never closed")),
                Some(quote @ (b'"' | b'\'')) => self.quoted(quote)?,
                Some(b'`') => self.template(depth + 1)?,
                Some(b'/') if matches!(self.peek(1), Some(b'/' | b'*')) => {
                    return Err(self.fail("a comment inside a template"));
                }
                Some(byte) => {
                    self.at += 1;
                    match byte {
                        b'{' => braces += 1,
                        b'}' => braces -= 1,
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a slash here starts a regular expression: it does where no value precedes it.
    fn regex_may_start(&self) -> bool {
        const KEYWORDS: [&str; 9] = [
            "return", "typeof", "case", "in", "of", "delete", "void", "throw", "await",
        ];
        match self.list.last() {
            None => true,
            Some(token) => match token.kind {
                Kind::Word => KEYWORDS.contains(&token.text),
                Kind::Punctuation => !matches!(token.text, ")" | "]" | "}"),
                Kind::Literal | Kind::Lifetime | Kind::Doc => false,
            },
        }
    }

    fn regex(&mut self) -> Result<(), LexError> {
        self.at += 1;
        let mut in_class = false;
        loop {
            match self.peek(0) {
                None | Some(b'\n') => {
                    return Err(self.fail("a regular expression is never closed"));
                }
                Some(b'\\') => self.at += 2,
                Some(byte) => {
                    self.at += 1;
                    match byte {
                        b'[' => in_class = true,
                        b']' => in_class = false,
                        b'/' if !in_class => return Ok(()),
                        _ => {}
                    }
                }
            }
        }
    }

    fn word(&mut self) -> Result<(), LexError> {
        let start = self.at;
        while self.peek(0).is_some_and(|byte| self.is_word(byte)) {
            self.at += 1;
        }
        if self.syntax != Syntax::Rust {
            self.push(Kind::Word, start);
            return Ok(());
        }
        let prefix = self.source.get(start..self.at).unwrap_or_default();
        let kind = match (prefix, self.peek(0)) {
            ("b" | "c", Some(b'"')) => {
                self.quoted(b'"')?;
                Kind::Literal
            }
            ("b", Some(b'\'')) => {
                self.quoted(b'\'')?;
                Kind::Literal
            }
            ("r" | "br" | "cr", Some(b'"' | b'#')) => self.raw()?,
            _ => Kind::Word,
        };
        self.push(kind, start);
        Ok(())
    }

    /// After `r`, `br` or `cr`: a raw string, or a raw identifier as in `r#type`.
    fn raw(&mut self) -> Result<Kind, LexError> {
        let rest = self.source.get(self.at..).unwrap_or_default();
        let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
        if rest.as_bytes().get(hashes) != Some(&b'"') {
            if hashes == 1 {
                self.at += 1;
                while self.peek(0).is_some_and(|byte| self.is_word(byte)) {
                    self.at += 1;
                }
            }
            return Ok(Kind::Word);
        }
        let closing = format!("\"{}", "#".repeat(hashes));
        let content = rest.get(hashes + 1..).unwrap_or_default();
        let length = content
            .find(&closing)
            .ok_or(self.fail("a raw string is never closed"))?;
        self.at += hashes + 1 + length + closing.len();
        Ok(Kind::Literal)
    }
}
