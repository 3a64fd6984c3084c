//! sed: which files it changes, and whether its script is one that only prints and replaces.

use super::Findings;
use super::programs::{read_operands, read_word};
use super::word::Word;

/// Looks at sed; false when it is another program.
pub(super) fn look(findings: &mut Findings<'_>, name: &str, arguments: &[Word]) -> bool {
    if name != "sed" {
        return false;
    }
    let mut script_given = false;
    let mut scripts = Vec::new();
    let mut files = Vec::new();
    let mut computed = false;
    let mut in_place: Option<String> = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.text() else {
            if word.may_be_option() || in_place.is_some() || !script_given && scripts.is_empty() {
                findings.refuse("an argument of sed is computed");
                return true;
            }
            computed = true;
            read_word(findings, word, false);
            continue;
        };
        match text {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "--quiet" | "--silent" | "-nE" | "-En"
            | "-nr" => {}
            "-e" | "--expression" => {
                script_given = true;
                match words.next().and_then(Word::text) {
                    Some(script) => scripts.push(script),
                    None => findings.refuse("a script of sed is computed"),
                }
            }
            "-i" | "--in-place" | "-Ei" | "-ri" => in_place = Some(String::new()),
            _ if text.starts_with("-i") => {
                in_place = Some(text.get(2..).unwrap_or_default().to_owned());
            }
            _ if text.starts_with("--in-place=") => {
                in_place = text.split_once('=').map(|(_, suffix)| suffix.to_owned());
            }
            _ if text.starts_with('-') && text != "-" => {
                findings.refuse(format!("sed has {text}, which is not known"));
                return true;
            }
            _ => files.push(word),
        }
    }
    if !script_given && !files.is_empty() {
        scripts.extend(files.remove(0).text());
    }
    if computed && in_place.is_some() {
        findings.refuse("a file of sed is computed");
    }
    for script in scripts {
        // Break it: accept every script; `tool_gate::shell::sed_that_writes_or_runs_is_refused` fails.
        if !only_prints_and_replaces(script) {
            findings.refuse("its sed script does more than print, delete and replace");
        }
    }
    match in_place {
        None => read_operands(
            findings,
            name,
            &files.into_iter().cloned().collect::<Vec<_>>(),
        ),
        Some(suffix) if suffix.contains(['*', '/']) => {
            findings.refuse("sed keeps copies under a computed name");
        }
        Some(suffix) => {
            for file in files.into_iter().filter_map(Word::text) {
                findings.writes(file);
                if !suffix.is_empty() {
                    findings.writes(&format!("{file}{suffix}"));
                }
            }
        }
    }
    true
}

/// Whether a script consists of addresses, `p`, `d`, `q`, `=` and `s` without the flags `w` and `e`.
fn only_prints_and_replaces(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';', '\n', '!']);
        let Some(first) = rest.chars().next() else {
            return true;
        };
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '0'..='9' | '$' | ',' | '~' | '+' | 'p' | 'd' | 'q' | '=' => rest = after,
            '/' => match delimited(after, '/') {
                Some((_, behind)) => rest = behind.trim_start_matches(['I', 'M']),
                None => return false,
            },
            's' => {
                let Some(delimiter) = after.chars().next() else {
                    return false;
                };
                if !delimiter.is_ascii_punctuation() || matches!(delimiter, '\\' | ';') {
                    return false;
                }
                let text = after.get(delimiter.len_utf8()..).unwrap_or_default();
                let parts = delimited(text, delimiter)
                    .and_then(|(_, replacement)| delimited(replacement, delimiter));
                let Some((_, flags)) = parts else {
                    return false;
                };
                let end = flags.find([';', '\n']).unwrap_or(flags.len());
                let (flags, behind) = flags.split_at(end);
                if !flags
                    .trim_end()
                    .chars()
                    .all(|flag| matches!(flag, 'g' | 'i' | 'I' | 'p' | '0'..='9'))
                {
                    return false;
                }
                rest = behind;
            }
            _ => return false,
        }
    }
}

/// The text up to an unescaped delimiter, and what follows. A bracket makes it unreadable where the delimiter may stand inside.
fn delimited(text: &str, delimiter: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    let mut bracket = false;
    let mut before = ['\0'; 2];
    for (place, character) in text.char_indices() {
        // One right behind the opening belongs to what is inside.
        let opens = before[1] == '[' || before == ['[', '^'];
        before = [before[1], character];
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return None,
            '[' => bracket = true,
            ']' if opens && bracket => {}
            ']' => bracket = false,
            found if found == delimiter => {
                if bracket {
                    return None;
                }
                return Some((
                    text.get(..place).unwrap_or_default(),
                    text.get(place + delimiter.len_utf8()..).unwrap_or_default(),
                ));
            }
            _ => {}
        }
    }
    None
}
