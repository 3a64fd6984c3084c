//! Reads one word: quotes, escapes, expansions.

use super::reader::{Reader, Unread};
use super::word::Word;

impl Reader {
    /// The word that begins here; an empty one when none does.
    pub(super) fn word(&mut self) -> Result<Word, Unread> {
        let mut word = Word {
            fixed: true,
            ..Word::default()
        };
        let mut braces = false;
        let mut first = true;
        while let Some(character) = self.peek() {
            match character {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | ')' => break,
                '(' if first => break,
                '(' => return Err("it defines a function, an array or a pattern".to_owned()),
                '\0' => return Err("it holds a NUL".to_owned()),
                '\'' => self.single_quoted(&mut word)?,
                '"' => {
                    self.at_next();
                    self.double_quoted(&mut word)?;
                }
                '\\' => {
                    self.at_next();
                    match self.next() {
                        Some('\n') => {}
                        Some(found) => word.keep(found, true),
                        None => return Err("it ends with a backslash".to_owned()),
                    }
                }
                '$' => {
                    self.at_next();
                    self.dollar(&mut word, false)?;
                    word.splits |= !word.fixed;
                }
                '`' => {
                    self.at_next();
                    self.backquoted(&mut word)?;
                    word.splits = true;
                }
                '*' | '?' | '[' | '~' => {
                    // A tilde counts at the beginning only, and behind `=` and `:` in assignments, which are never files.
                    let expands = character != '~' || first || word.text.ends_with(['=', ':']);
                    self.at_next();
                    if expands {
                        word.expand();
                    } else {
                        word.keep(character, false);
                    }
                }
                found => {
                    braces |= matches!(found, '{' | '}');
                    self.at_next();
                    word.keep(found, false);
                }
            }
            first = false;
        }
        // `{` and `}` are words of the grammar, `{}` is what find and xargs replace; everything else may expand.
        if braces && !matches!(word.text.as_str(), "{" | "}" | "{}") {
            word.fixed = false;
        }
        if first {
            return Ok(Word::default());
        }
        // `[` alone is a program; `[ ]` in an argument is a pattern.
        if !word.fixed && self.is_bracket() {
            word = Word::literal("[".to_owned());
            word.quoted = false;
        }
        Ok(word)
    }

    /// Whether the word that was just read is a bracket and nothing else.
    fn is_bracket(&self) -> bool {
        self.behind(1) == Some('[')
            && matches!(
                self.behind(2),
                None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '(')
            )
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Unread> {
        self.at_next();
        word.quoted = true;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(found) => word.keep(found, true),
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), Unread> {
        word.quoted = true;
        loop {
            match self.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(found @ ('$' | '`' | '"' | '\\')) => word.keep(found, true),
                    Some(found) => {
                        word.keep('\\', true);
                        word.keep(found, true);
                    }
                    None => return Err("a quote is not closed".to_owned()),
                },
                Some('$') => self.dollar(word, true)?,
                Some('`') => self.backquoted(word)?,
                Some(found) => word.keep(found, true),
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    /// What follows a `$`.
    fn dollar(&mut self, word: &mut Word, quoted: bool) -> Result<(), Unread> {
        match self.peek() {
            Some('\'') if !quoted => {
                self.at_next();
                word.expand();
                loop {
                    match self.next() {
                        Some('\'') => return Ok(()),
                        Some('\\') => drop(self.next()),
                        Some(_) => {}
                        None => return Err("a quote is not closed".to_owned()),
                    }
                }
            }
            Some('"') if !quoted => {
                word.expand();
                self.at_next();
                self.double_quoted(word)
            }
            Some('(') if self.peek_at(1) == Some('(') => {
                word.expand();
                self.arithmetic()
            }
            Some('(') => {
                word.expand();
                self.at_next();
                self.list(true)
            }
            Some('{') => {
                word.expand();
                self.at_next();
                self.braced()
            }
            Some('[') => Err("it calculates".to_owned()),
            Some(found) if found.is_ascii_alphanumeric() || found == '_' => {
                word.expand();
                while self
                    .peek()
                    .is_some_and(|found| found.is_ascii_alphanumeric() || found == '_')
                {
                    self.at_next();
                }
                Ok(())
            }
            Some('@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                word.expand();
                self.at_next();
                Ok(())
            }
            _ => {
                word.keep('$', quoted);
                Ok(())
            }
        }
    }

    /// `${name}`, and nothing that assigns, transforms or calculates.
    fn braced(&mut self) -> Result<(), Unread> {
        loop {
            match self.next() {
                Some('}') => return Ok(()),
                Some(found) if found.is_ascii_alphanumeric() || matches!(found, '_' | '#') => {}
                _ => return Err("it computes a value from a variable".to_owned()),
            }
        }
    }

    /// `$((…))` of numbers and operators alone: a name in it is evaluated in turn, and may run commands.
    fn arithmetic(&mut self) -> Result<(), Unread> {
        self.at_next();
        self.at_next();
        loop {
            match self.next() {
                Some(')') if self.peek() == Some(')') => {
                    self.at_next();
                    return Ok(());
                }
                Some(found)
                    if found.is_ascii_digit() || " \t+-*/%<>=!&|^~?:,()".contains(found) => {}
                _ => return Err("it calculates".to_owned()),
            }
        }
    }

    /// A command between backquotes, unescaped and read by itself.
    fn backquoted(&mut self, word: &mut Word) -> Result<(), Unread> {
        word.expand();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(found @ ('`' | '\\' | '$')) => text.push(found),
                    Some(found) => {
                        text.push('\\');
                        text.push(found);
                    }
                    None => return Err("a backquote is not closed".to_owned()),
                },
                Some(found) => text.push(found),
                None => return Err("a backquote is not closed".to_owned()),
            }
        }
        self.nested(&text)
    }
}

impl Word {
    /// Takes a character that stands there.
    fn keep(&mut self, character: char, quoted: bool) {
        if self.text.is_empty() && self.fixed {
            self.begins = true;
        }
        self.text.push(character);
        self.quoted |= quoted;
    }

    /// Something unknown stands here.
    fn expand(&mut self) {
        self.fixed = false;
    }
}
