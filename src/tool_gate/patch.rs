//! Which files a patch touches: `apply_patch` envelopes and unified diffs.
//!
//! Both readers are strict. A line that has no business where it stands makes the whole patch unreadable, because the program that
//! applies it may find a file name there that this reader did not.

/// Why the files of a patch cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// Not an envelope.
    #[error("the patch does not stand between `*** Begin Patch` and `*** End Patch`")]
    NoEnvelope,
    /// A line that does not belong.
    #[error("line {0} of the patch is not one that a patch has there")]
    Line(usize),
    /// No file at all.
    #[error("the patch names no file")]
    NoFile,
    /// A file that is no ordinary one.
    #[error("line {0} of the patch makes a link or a submodule")]
    SpecialFile(usize),
    /// A quoted name.
    #[error("line {0} of the patch has a quoted file name")]
    QuotedName(usize),
}

const FILE_HEADERS: [&str; 4] = [
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
];

/// Every file of an `apply_patch` envelope, both sides of a move.
///
/// Codex trims lines before it compares them, so this reader does, too; a header inside of an added line begins with `+` and is
/// none.
///
/// # Errors
/// Text outside the envelope, a second envelope, an unknown `***` line, or no file: [`PatchError`].
pub fn envelope_files(text: &str) -> Result<Vec<String>, PatchError> {
    let mut files = Vec::new();
    let (mut open, mut closed) = (false, false);
    for (number, line) in (1_usize..).zip(text.lines()) {
        let bare = line.trim_matches(is_blank);
        // Break it: leave this out; `tool_gate::patch::a_line_that_is_two_for_others_is_refused` fails.
        if hides_a_header(line) {
            return Err(PatchError::Line(number));
        }
        if closed || !open {
            match bare {
                "" => {}
                "*** Begin Patch" if !closed => open = true,
                _ if closed => return Err(PatchError::Line(number)),
                _ => return Err(PatchError::NoEnvelope),
            }
            continue;
        }
        match FILE_HEADERS
            .iter()
            .find_map(|header| bare.strip_prefix(header))
        {
            Some(name) if !name.trim_matches(is_blank).is_empty() => {
                files.push(name.trim_matches(is_blank).to_owned());
            }
            None if bare == "*** End Patch" => closed = true,
            None if bare == "*** End of File" => {}
            None if bare.starts_with("***") => {
                // Break it: let unknown lines through; `tool_gate::patch::a_line_that_does_not_belong_is_refused` fails.
                return Err(PatchError::Line(number));
            }
            None if bare.is_empty() || line.starts_with(['+', '-', ' ', '@', '\t']) => {}
            Some(_) | None => return Err(PatchError::Line(number)),
        }
    }
    if !closed {
        Err(PatchError::NoEnvelope)
    } else if files.is_empty() {
        Err(PatchError::NoFile)
    } else {
        Ok(files)
    }
}

/// What some readers trim from lines and others do not.
fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(character, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// Whether a line is several to a reader that ends lines elsewhere, too (Python's `splitlines`), and one of them is a header.
fn hides_a_header(line: &str) -> bool {
    const ENDS: [char; 9] = [
        '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    line.split(ENDS)
        .skip(1)
        .any(|part| part.trim_matches(is_blank).starts_with("***"))
}

/// Every file of a unified diff with `strip` leading components taken off, as `git apply -p1` and `patch -p1` do.
///
/// # Errors
/// A line outside the format, a link, a quoted name, or no file: [`PatchError`].
pub fn diff_files(text: &str, strip: usize) -> Result<Vec<String>, PatchError> {
    let mut files = Vec::new();
    let mut hunk = Hunk::default();
    for (number, line) in (1_usize..).zip(text.lines()) {
        if hunk.takes(line).ok_or(PatchError::Line(number))? {
            continue;
        }
        if let Some(counts) = line.strip_prefix("@@ -") {
            hunk = Hunk::parse(counts).ok_or(PatchError::Line(number))?;
            continue;
        }
        header(line, number, strip, &mut files)?;
    }
    if hunk.is_open() {
        Err(PatchError::Line(text.lines().count()))
    } else if files.is_empty() {
        Err(PatchError::NoFile)
    } else {
        Ok(files)
    }
}

fn header(
    line: &str,
    number: usize,
    strip: usize,
    files: &mut Vec<String>,
) -> Result<(), PatchError> {
    const PLAIN: [&str; 3] = ["similarity index ", "dissimilarity index ", "index "];
    const MODES: [&str; 4] = [
        "new file mode ",
        "deleted file mode ",
        "old mode ",
        "new mode ",
    ];
    const WHOLE: [&str; 4] = ["rename from ", "rename to ", "copy from ", "copy to "];
    let bad = PatchError::Line(number);
    if line.contains('"') {
        return Err(PatchError::QuotedName(number));
    }
    if let Some(mode) = MODES.iter().find_map(|start| line.strip_prefix(start)) {
        return match mode {
            "100644" | "100755" => Ok(()),
            _ => Err(PatchError::SpecialFile(number)),
        };
    }
    if PLAIN.iter().any(|start| line.starts_with(start)) || line == r"\ No newline at end of file" {
        return Ok(());
    }
    // Names of renames have no prefix.
    if let Some(name) = WHOLE.iter().find_map(|start| line.strip_prefix(start)) {
        files.push(stripped(name, strip.saturating_sub(1)).ok_or(bad)?);
        return Ok(());
    }
    if let Some(names) = line.strip_prefix("diff --git ") {
        // Two names with a space between; where they hold spaces themselves it cannot be told which.
        let names: Vec<&str> = names.split(' ').collect();
        let [one, other] = names.as_slice() else {
            return Err(bad);
        };
        files.push(stripped(one, strip).ok_or(PatchError::Line(number))?);
        files.push(stripped(other, strip).ok_or(bad)?);
        return Ok(());
    }
    let named = line
        .strip_prefix("--- ")
        .or_else(|| line.strip_prefix("+++ "));
    let name = named.ok_or(PatchError::Line(number))?;
    // Behind a tab stands a time.
    let name = name.split('\t').next().unwrap_or_default();
    if name != "/dev/null" {
        files.push(stripped(name, strip).ok_or(bad)?);
    }
    Ok(())
}

/// A name without its first `strip` components; one that has fewer is none.
///
/// patch ends a name at a blank where no tab follows, git does not.
fn stripped(name: &str, strip: usize) -> Option<String> {
    // Break it: leave this out; `tool_gate::patch::a_name_with_a_blank_is_refused` fails.
    if name.contains(is_blank) {
        return None;
    }
    let mut rest = name;
    for _ in 0..strip {
        rest = rest.split_once('/')?.1.trim_start_matches('/');
    }
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// What is left of a hunk.
#[derive(Default)]
struct Hunk {
    old: usize,
    new: usize,
}

impl Hunk {
    /// `1,2 +3,4 @@`, behind `@@ -`.
    fn parse(counts: &str) -> Option<Self> {
        let (old, rest) = counts.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let count = |range: &str| match range.split_once(',') {
            Some((_, count)) => count.parse().ok(),
            None => range.parse::<usize>().ok().map(|_| 1),
        };
        Some(Self {
            old: count(old)?,
            new: count(new)?,
        })
    }

    const fn is_open(&self) -> bool {
        self.old > 0 || self.new > 0
    }

    /// Whether a line belongs to the hunk; `None` when it belongs nowhere.
    fn takes(&mut self, line: &str) -> Option<bool> {
        if !self.is_open() {
            return Some(false);
        }
        match line.chars().next() {
            Some('+') => self.new = self.new.checked_sub(1)?,
            Some('-') => self.old = self.old.checked_sub(1)?,
            // An empty line stands for an empty line of context.
            Some(' ') | None => {
                self.new = self.new.checked_sub(1)?;
                self.old = self.old.checked_sub(1)?;
            }
            Some('\\') => {}
            Some(_) => return None,
        }
        Some(true)
    }
}
