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
                    self.backquoted(&mut word, false)?;
                    word.splits = true;
                }
                '*' | '?' | '[' | '~' => {
                    // A tilde counts at the beginning only, and behind `=` and `:` in assignments, which are never files.
                    let expands = character != '~' || first || word.text.ends_with(['=', ':']);
                    self.at_next();
                    if expands {
                        word.expand();
                        word.pattern.push(character);
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
                Some('`') => self.backquoted(word, true)?,
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
                self.escaped(word)
            }
            Some('"') if !quoted => {
                word.expand();
                self.at_next();
                self.double_quoted(word)
            }
            Some('(') if self.peek_at(1) == Some('(') => {
                word.expand();
                word.pattern.push('$');
                self.arithmetic()
            }
            Some('(') => {
                word.expand();
                word.pattern.push('$');
                self.at_next();
                self.list(true)
            }
            Some('{') => {
                word.expand();
                self.at_next();
                self.braced(word)
            }
            // The shell takes the line's end out before it looks for a name.
            // Break it: leave this out; `tool_gate::shell_differences` fails.
            Some('\\') if self.peek_at(1) == Some('\n') => {
                Err("it breaks a line behind a dollar".to_owned())
            }
            Some('[') => Err("it calculates".to_owned()),
            Some(found) if found.is_ascii_alphanumeric() || found == '_' => {
                word.expand();
                word.pattern.push('$');
                while let Some(found) = self
                    .peek()
                    .filter(|found| found.is_ascii_alphanumeric() || *found == '_')
                {
                    word.pattern.push(found);
                    self.at_next();
                }
                if self.peek() == Some('\\') && self.peek_at(1) == Some('\n') {
                    return Err("it breaks a line in a variable's name".to_owned());
                }
                Ok(())
            }
            Some('@' | '*' | '#' | '?' | '-' | '$' | '!') => {
                word.expand();
                word.pattern.push('$');
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
    fn braced(&mut self, word: &mut Word) -> Result<(), Unread> {
        word.pattern.push_str("${");
        loop {
            match self.next() {
                Some('}') => {
                    word.pattern.push('}');
                    return Ok(());
                }
                Some(found) if found.is_ascii_alphanumeric() || matches!(found, '_' | '#') => {
                    word.pattern.push(found);
                }
                _ => return Err("it computes a value from a variable".to_owned()),
            }
        }
    }

    /// The rest of `$'…'`. A shell that does not know this form ends it at the first quote, also behind a backslash.
    fn escaped(&mut self, word: &mut Word) -> Result<(), Unread> {
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some('\\') => match self.next() {
                    Some('n' | 't' | 'r' | 'a' | 'b' | 'e' | 'f' | 'v') => word.pattern.push(' '),
                    Some('\\') => word.pattern.push('\\'),
                    // Break it: skip what is escaped; `tool_gate::shell_differences` fails.
                    _ => return Err("it spells a word by escapes".to_owned()),
                },
                Some(found) => word.pattern.push(found),
                None => return Err("a quote is not closed".to_owned()),
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
    fn backquoted(&mut self, word: &mut Word, quoted: bool) -> Result<(), Unread> {
        word.expand();
        word.pattern.push('$');
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(found @ ('`' | '\\' | '$')) => text.push(found),
                    // Break it: leave this out; `tool_gate::shell_differences` fails.
                    Some('"') if quoted => text.push('"'),
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
        if quoted && matches!(character, '*' | '?' | '[' | '{' | '\\') {
            self.pattern.push('\\');
        }
        self.pattern.push(character);
        self.quoted |= quoted;
    }

    /// Something unknown stands here.
    fn expand(&mut self) {
        self.fixed = false;
    }
}
