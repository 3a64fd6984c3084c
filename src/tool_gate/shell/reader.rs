//! Reads a command text into simple commands.
//!
//! Which command runs when, in which subshell and whether at all does not matter here: every one that is written is looked at. So
//! control flow is only read for where commands begin. Commands inside of substitutions come out in front of the one they stand in.

use super::simple::{Redirect, Simple};
use super::word::Word;

/// Why a text is not read any further.
pub(super) type Unread = String;

/// Words that open or continue a compound command and are followed by a command.
const BEFORE_COMMAND: [&str; 11] = [
    "if", "then", "elif", "else", "do", "while", "until", "!", "{", "time", "}",
];
/// Words that close one.
const CLOSING: [&str; 2] = ["fi", "done"];
/// Words whose constructs are not read.
const UNREAD: [&str; 6] = ["case", "esac", "select", "function", "coproc", "[["];

/// A here-document whose text has not come yet.
struct Pending {
    delimiter: String,
    /// Whether the text is taken as it is.
    quoted: bool,
    /// Whether tabs before lines do not count.
    tabs: bool,
    /// The redirection it belongs to.
    command: usize,
    redirect: usize,
}

/// The state of reading.
pub(super) struct Reader {
    text: Vec<char>,
    at: usize,
    /// How deep substitutions may still nest.
    depth: usize,
    loops: usize,
    commands: Vec<Simple>,
    pending: Vec<Pending>,
}

impl Reader {
    /// Reads a whole text.
    pub(super) fn read(text: &str, depth: usize) -> Result<Vec<Simple>, Unread> {
        // Shells drop it, or end there.
        if text.contains('\0') {
            return Err("it holds a NUL".to_owned());
        }
        let mut reader = Self {
            text: text.chars().collect(),
            at: 0,
            depth,
            loops: 0,
            commands: Vec::new(),
            pending: Vec::new(),
        };
        reader.list(false)?;
        if let Some(pending) = reader.pending.first() {
            return Err(format!(
                "its here-document {} has no text",
                pending.delimiter
            ));
        }
        Ok(reader.commands)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let found = self.peek();
        self.at += usize::from(found.is_some());
        found
    }

    /// The character that many places back.
    pub(super) fn behind(&self, back: usize) -> Option<char> {
        self.text.get(self.at.checked_sub(back)?).copied()
    }

    pub(super) fn at_next(&mut self) {
        self.at += 1;
    }

    /// Reads a text of its own, whose commands belong to this one.
    pub(super) fn nested(&mut self, text: &str) -> Result<(), Unread> {
        let commands = Self::read(text, self.depth)?;
        let repeated = self.loops > 0;
        self.commands
            .extend(commands.into_iter().map(|mut command| {
                command.repeated |= repeated;
                command
            }));
        Ok(())
    }

    pub(super) fn takes(&mut self, expected: &str) -> bool {
        let fits = expected
            .chars()
            .enumerate()
            .all(|(ahead, character)| self.peek_at(ahead) == Some(character));
        if fits {
            self.at += expected.chars().count();
        }
        fits
    }

    /// Reads commands up to the end, or up to the closing parenthesis of a subshell or substitution.
    pub(super) fn list(&mut self, enclosed: bool) -> Result<(), Unread> {
        if self.depth == 0 {
            return Err("it nests commands too deeply".to_owned());
        }
        self.depth -= 1;
        // The text of one would be taken for that of a command inside.
        if enclosed && !self.pending.is_empty() {
            return Err("a here-document stands before a parenthesis".to_owned());
        }
        // Substitutions push their commands while this one is still being read, so it is kept apart until it ends.
        let mut current = Simple::default();
        loop {
            self.skip_blanks();
            match self.peek() {
                None if enclosed => return Err("a parenthesis is not closed".to_owned()),
                None => break,
                Some(')') if enclosed => {
                    self.at += 1;
                    break;
                }
                Some(')') => return Err("a parenthesis is closed that was not opened".to_owned()),
                Some('\n') => {
                    self.end(&mut current);
                    self.at += 1;
                    self.here_texts()?;
                }
                Some(';') => {
                    self.at += 1;
                    if matches!(self.peek(), Some(';' | '&')) {
                        return Err("it has a case".to_owned());
                    }
                    self.end(&mut current);
                }
                Some('|') => {
                    self.at += 1;
                    let _ = self.takes("|") || self.takes("&");
                    self.end(&mut current);
                }
                Some('&') if self.peek_at(1) != Some('>') => {
                    self.at += 1;
                    let _ = self.takes("&");
                    self.end(&mut current);
                }
                Some('(') => self.subshell(&current)?,
                Some('<' | '>' | '&') => self.redirect(&mut current)?,
                Some(_) => self.word_of(&mut current)?,
            }
        }
        self.end(&mut current);
        self.depth += 1;
        if enclosed && !self.pending.is_empty() {
            return Err("a here-document ends behind a parenthesis".to_owned());
        }
        Ok(())
    }

    /// Puts a command that is complete behind those before it. Its here-documents are found again by place.
    fn end(&mut self, current: &mut Simple) {
        if current.is_empty() {
            return;
        }
        let mut command = std::mem::take(current);
        command.repeated = self.loops > 0;
        let place = self.commands.len();
        for pending in &mut self.pending {
            if pending.command == usize::MAX {
                pending.command = place;
            }
        }
        self.commands.push(command);
    }

    fn subshell(&mut self, current: &Simple) -> Result<(), Unread> {
        if !current.words.is_empty() || !current.assignments.is_empty() {
            return Err("it defines a function or an array".to_owned());
        }
        self.at += 1;
        if self.peek() == Some('(') {
            return Err("it calculates".to_owned());
        }
        self.list(true)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.peek_at(1) == Some('\n') => self.at += 2,
                Some('#') => {
                    while self.peek().is_some_and(|character| character != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// A word: a reserved one, an assignment, the program or an argument.
    fn word_of(&mut self, current: &mut Simple) -> Result<(), Unread> {
        let begin = self.at;
        let word = self.word()?;
        let digits = !word.quoted && word.text.chars().all(|found| found.is_ascii_digit());
        if digits && word.fixed && matches!(self.peek(), Some('<' | '>')) {
            // Break it: leave this out; `tool_gate::shell_differences` fails.
            if word.text != "0" && self.peek() == Some('<') && self.peek_at(1) == Some('<') {
                return Err("it has a here-document that is not its standard input".to_owned());
            }
            // The number of a descriptor.
            return self.redirect(current);
        }
        if !current.words.is_empty() {
            current.words.push(word);
            return Ok(());
        }
        if !word.quoted && word.fixed && current.is_empty() {
            let text = word.text.as_str();
            if UNREAD.contains(&text) {
                return Err(format!("it uses {text}, which is not read"));
            }
            if text == "for" {
                return self.for_loop();
            }
            if matches!(text, "while" | "until") {
                self.loops += 1;
            }
            if text == "done" {
                self.loops = self.loops.saturating_sub(1);
            }
            if BEFORE_COMMAND.contains(&text) || CLOSING.contains(&text) {
                return Ok(());
            }
        }
        if let Some(name) = self.assignment(begin, &word) {
            current.assignments.push((name, word));
        } else {
            current.words.push(word);
        }
        Ok(())
    }

    /// The name of an assignment, when the raw text begins with an unquoted name and `=`.
    fn assignment(&self, begin: usize, word: &Word) -> Option<String> {
        let raw = self.text.get(begin..self.at)?;
        let equals = raw.iter().position(|character| *character == '=')?;
        let name: String = raw.get(..equals)?.iter().collect();
        let bare = name.strip_suffix('+').unwrap_or(&name);
        let mut characters = bare.chars();
        let first = characters.next()?;
        let sound = (first.is_ascii_alphabetic() || first == '_')
            && characters.all(|found| found.is_ascii_alphanumeric() || found == '_');
        // `a[0]=x` is an assignment, too; that it is not read as one makes it an unknown program.
        (sound && !word.text.is_empty()).then(|| bare.to_owned())
    }

    /// `for NAME [in WORDS]`: the words are only looked at for the commands inside of them.
    fn for_loop(&mut self) -> Result<(), Unread> {
        self.skip_blanks();
        let name = self.word()?;
        if !name
            .text()
            .is_some_and(super::simple::is_harmless_loop_variable)
        {
            return Err(
                "its loop has a variable in capitals, which may change what programs do".to_owned(),
            );
        }
        self.loops += 1;
        let mut named = Simple::default();
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(';' | '\n') => {
                    self.commands.push(named);
                    return Ok(());
                }
                Some('(' | ')' | '<' | '>' | '&' | '|') => {
                    return Err("its loop is not read".to_owned());
                }
                // Files that the loop goes over are read by it.
                Some(_) => named.redirects.push(Redirect::From(self.word()?)),
            }
        }
    }

    fn redirect(&mut self, current: &mut Simple) -> Result<(), Unread> {
        if matches!((self.peek(), self.peek_at(1)), (Some('<' | '>'), Some('('))) {
            self.at += 2;
            self.list(true)?;
            current.words.push(Word::default());
            return Ok(());
        }
        if self.takes("<<<") {
            self.skip_blanks();
            let word = self.word()?;
            let text = word.text().map(|text| format!("{text}\n"));
            current.redirects.push(Redirect::Text(text));
            return Ok(());
        }
        if self.takes("<<") {
            return self.here_document(current);
        }
        let both = self.takes("&>>") || self.takes("&>");
        let written = both || self.takes(">>") || self.takes(">|") || self.takes("<>");
        let copied = !written && (self.takes(">&") || self.takes("<&"));
        let written = written || copied || self.takes(">");
        if !written && !self.takes("<") {
            return Err("it has an operator that is not read".to_owned());
        }
        self.skip_blanks();
        let word = self.word()?;
        if word == Word::default() {
            return Err("a redirection has no file".to_owned());
        }
        // zsh's `>!` is `>|`.
        if !word.quoted && word.text.starts_with('!') {
            return Err("it redirects to a name that one shell takes for an operator".to_owned());
        }
        let descriptor = |text: &str| {
            text == "-"
                || text
                    .trim_end_matches('-')
                    .chars()
                    .all(|c| c.is_ascii_digit())
        };
        if copied && word.text().is_some_and(descriptor) {
            return Ok(());
        }
        current.redirects.push(if written {
            Redirect::To(word)
        } else {
            Redirect::From(word)
        });
        Ok(())
    }

    fn here_document(&mut self, current: &mut Simple) -> Result<(), Unread> {
        let tabs = self.takes("-");
        self.skip_blanks();
        let word = self.word()?;
        let delimiter = word
            .text()
            .filter(|text| !text.is_empty() && !text.contains('\n'))
            .ok_or("a here-document has a computed end")?;
        self.pending.push(Pending {
            delimiter: delimiter.to_owned(),
            quoted: word.quoted,
            tabs,
            // Filled in when the command ends.
            command: usize::MAX,
            redirect: current.redirects.len(),
        });
        current.redirects.push(Redirect::Text(None));
        Ok(())
    }

    /// Reads the texts of here-documents, which begin behind a line's end.
    fn here_texts(&mut self) -> Result<(), Unread> {
        for pending in std::mem::take(&mut self.pending) {
            let text = self.here_text(&pending)?;
            let expanded = !pending.quoted && text.contains(['$', '`', '\\']);
            // Break it: leave this out; `tool_gate::shell_differences` fails.
            if !pending.quoted && text.contains("\\\n") {
                return Err("a here-document breaks a line, which may hide its end".to_owned());
            }
            if expanded
                && (text.contains("$(")
                    || text.contains("$[")
                    || text.contains("${")
                    || text.contains('`'))
            {
                return Err("a here-document runs a command".to_owned());
            }
            let place = self
                .commands
                .get_mut(pending.command)
                .and_then(|command| command.redirects.get_mut(pending.redirect));
            match place {
                Some(redirect) => *redirect = Redirect::Text((!expanded).then_some(text)),
                None => return Err("a here-document belongs to no command".to_owned()),
            }
        }
        Ok(())
    }

    fn here_text(&mut self, pending: &Pending) -> Result<String, Unread> {
        let mut text = String::new();
        loop {
            if self.peek().is_none() {
                return Err(format!(
                    "its here-document {} does not end",
                    pending.delimiter
                ));
            }
            let mut line = String::new();
            while let Some(character) = self.next() {
                if character == '\n' {
                    break;
                }
                line.push(character);
            }
            let shown = if pending.tabs {
                line.trim_start_matches('\t')
            } else {
                line.as_str()
            };
            if shown == pending.delimiter {
                return Ok(text);
            }
            text.push_str(shown);
            text.push('\n');
        }
    }
}
