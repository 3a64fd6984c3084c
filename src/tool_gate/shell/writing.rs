//! Programs that write the files they are given.

use super::Findings;
use super::word::Word;

/// A program whose operands are all written: which letters it may have, which of them take the next word, long options, and how many
/// operands come before the files.
struct Writer {
    name: &'static str,
    letters: &'static str,
    valued: &'static str,
    longs: &'static [&'static str],
    before: usize,
}

const fn writer(
    name: &'static str,
    letters: &'static str,
    valued: &'static str,
    longs: &'static [&'static str],
    before: usize,
) -> Writer {
    Writer {
        name,
        letters,
        valued,
        longs,
        before,
    }
}

const WRITERS: [Writer; 8] = [
    writer("chmod", "Rcfv", "", &["--recursive", "--verbose"], 1),
    writer("mkdir", "pvm", "m", &["--parents", "--verbose"], 0),
    writer(
        "rm",
        "rRfvidI",
        "",
        &["--recursive", "--force", "--verbose"],
        0,
    ),
    writer("rmdir", "pv", "", &["--parents", "--verbose"], 0),
    writer("tee", "aip", "", &["--append"], 0),
    writer("touch", "acm", "", &["--no-create"], 0),
    writer("truncate", "cs", "s", &["--no-create"], 0),
    writer("unlink", "", "", &[], 0),
];

/// Looks at a program of this kind; false when it is none.
pub(super) fn look(findings: &mut Findings<'_>, name: &str, arguments: &[Word]) -> bool {
    if name == "dd" {
        dd(findings, arguments);
        return true;
    }
    let Some(writer) = WRITERS.iter().find(|writer| writer.name == name) else {
        return false;
    };
    let Some(parsed) = operands(
        findings,
        name,
        arguments,
        writer.letters,
        writer.valued,
        writer.longs,
    ) else {
        return true;
    };
    let whole = matches!(name, "rm" | "chmod") && goes_down(arguments);
    for file in parsed.iter().skip(writer.before) {
        if whole {
            findings.moves(file);
        } else {
            findings.writes(file);
        }
    }
    true
}

fn goes_down(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let text = word.text.as_str();
        text == "--recursive"
            || text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R'])
    })
}

/// The operands of a program all of whose words are known; `None`, with the reason recorded, when one is not.
pub(super) fn operands<'w>(
    findings: &mut Findings<'_>,
    name: &str,
    arguments: &'w [Word],
    letters: &str,
    valued: &str,
    longs: &[&str],
) -> Option<Vec<&'w str>> {
    let mut found = Vec::new();
    let mut only_operands = false;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        // Break it: skip computed words; `tool_gate::shell::a_computed_file_is_refused` fails.
        let Some(text) = word.text() else {
            findings.refuse(format!("a file of {name} is computed"));
            return None;
        };
        if only_operands || !text.starts_with('-') || text == "-" {
            found.push(text);
        } else if text == "--" {
            only_operands = true;
        } else if text.starts_with("--") {
            if !longs.contains(&text) {
                findings.refuse(format!("{name} has {text}, which is not known"));
                return None;
            }
        } else if !short(text, letters, valued, &mut words) {
            findings.refuse(format!("{name} has {text}, which is not known"));
            return None;
        }
    }
    Some(found)
}

/// Reads a bundle of short options; those with a value take the rest of the word or the next one.
fn short<'w>(
    text: &str,
    letters: &str,
    valued: &str,
    words: &mut impl Iterator<Item = &'w Word>,
) -> bool {
    let bundle = text.strip_prefix('-').unwrap_or(text);
    for (place, letter) in bundle.char_indices() {
        if !letters.contains(letter) {
            return false;
        }
        if valued.contains(letter) {
            let inside = bundle.len() > place + letter.len_utf8();
            return inside || words.next().is_some_and(|value| value.fixed);
        }
    }
    !bundle.is_empty()
}

fn dd(findings: &mut Findings<'_>, arguments: &[Word]) {
    const PLAIN: [&str; 8] = ["bs", "cbs", "conv", "count", "ibs", "obs", "seek", "skip"];
    for word in arguments {
        let text = word.text().unwrap_or_default();
        match text.split_once('=') {
            Some(("of", file)) if !file.is_empty() => findings.writes(file),
            Some(("if", file)) if !file.is_empty() => findings.reads(file),
            Some((key, _)) if PLAIN.contains(&key) || key == "status" => {}
            _ => findings.refuse("an argument of dd is computed or not known"),
        }
    }
}
