//! Programs that run another command: shells with text, and those that only change how it runs.

use super::simple::{Simple, is_harmless_variable};
use super::word::Word;
use super::{DEPTH, Findings};

/// Looks at a program of this kind; false when it is none.
pub(super) fn look(
    findings: &mut Findings<'_>,
    command: &Simple,
    name: &str,
    arguments: &[Word],
    depth: usize,
) -> bool {
    let inner = match name {
        "sh" | "bash" | "dash" => {
            shell(findings, command, name, arguments, depth);
            return true;
        }
        "eval" => {
            evaluated(findings, arguments, depth);
            return true;
        }
        "xargs" => {
            xargs(findings, command, arguments, depth);
            return true;
        }
        "env" => environment(findings, arguments),
        "command"
            if arguments
                .first()
                .and_then(Word::text)
                .is_some_and(|text| matches!(text, "-v" | "-V")) =>
        {
            return true;
        }
        "type" | "exec" if name == "type" || arguments.is_empty() => return true,
        "command" | "builtin" | "exec" => Some(arguments),
        "nice" => behind(arguments, &NICE, 0),
        "timeout" => behind(arguments, &TIMEOUT, 1),
        "stdbuf" => behind(arguments, &STDBUF, 0),
        _ => return false,
    };
    match inner {
        Some(words) if !words.is_empty() => run(findings, command, words.to_vec(), depth),
        _ => findings.refuse(format!("what {name} runs cannot be told")),
    }
    true
}

/// Looks at the command that another one runs. Redirections were looked at already.
fn run(findings: &mut Findings<'_>, command: &Simple, words: Vec<Word>, depth: usize) {
    if depth + 1 >= DEPTH {
        findings.refuse("it nests commands too deeply");
        return;
    }
    let inner = Simple {
        assignments: Vec::new(),
        words,
        redirects: command
            .redirects
            .iter()
            .filter(|redirect| matches!(redirect, super::simple::Redirect::Text(_)))
            .cloned()
            .collect(),
        repeated: command.repeated,
    };
    findings.simple(&inner, depth + 1);
}

/// The options of a program that runs another one: letters, those of them that take a value, and long options, which are known
/// only with their value in the same word.
struct Options {
    letters: &'static str,
    valued: &'static str,
    longs: &'static [&'static str],
}

const NICE: Options = Options {
    letters: "n",
    valued: "n",
    longs: &["--adjustment="],
};
const TIMEOUT: Options = Options {
    letters: "ksv",
    valued: "ks",
    longs: &[
        "--foreground",
        "--preserve-status",
        "--verbose",
        "--kill-after=",
        "--signal=",
    ],
};
const STDBUF: Options = Options {
    letters: "oie",
    valued: "oie",
    longs: &["--output=", "--input=", "--error="],
};
const XARGS: Options = Options {
    letters: "0rtxnPILdsa",
    valued: "nPILdsa",
    longs: &[
        "--null",
        "--no-run-if-empty",
        "--verbose",
        "--max-args=",
        "--max-procs=",
        "--max-lines=",
        "--replace=",
        "--delimiter=",
        "--arg-file=",
    ],
};

impl Options {
    /// How many words an option takes, itself among them; `None` when it is not known.
    fn takes(&self, text: &str) -> Option<usize> {
        if text.starts_with("--") {
            let known = self
                .longs
                .iter()
                .any(|long| text == *long || long.ends_with('=') && text.starts_with(long));
            return known.then_some(1);
        }
        let bundle = text.strip_prefix('-')?;
        for (place, letter) in bundle.char_indices() {
            if self.valued.contains(letter) {
                let inside = bundle.len() > place + letter.len_utf8();
                return Some(if inside { 1 } else { 2 });
            }
            // `nice -5` is a number.
            if !self.letters.contains(letter) && !letter.is_ascii_digit() {
                return None;
            }
        }
        (!bundle.is_empty()).then_some(1)
    }
}

/// The words behind options; `before` operands come first.
fn behind<'w>(arguments: &'w [Word], options: &Options, before: usize) -> Option<&'w [Word]> {
    let mut rest = arguments;
    while let Some((first, behind)) = rest.split_first() {
        let text = first.text()?;
        if text == "--" {
            rest = behind;
            break;
        } else if text.starts_with('-') {
            // Break it: skip options that are not known; `tool_gate::shell_differences` fails.
            rest = rest.get(options.takes(text)?..)?;
        } else {
            break;
        }
    }
    let skipped = rest.get(..before)?;
    skipped
        .iter()
        .all(|word| word.fixed)
        .then(|| rest.get(before..))?
}

/// `env [-i] [NAME=VALUE…] COMMAND`.
fn environment<'w>(findings: &mut Findings<'_>, arguments: &'w [Word]) -> Option<&'w [Word]> {
    let mut rest = arguments;
    while let Some((first, behind)) = rest.split_first() {
        // A computed word may be several, with other names among them.
        let text = first.text()?;
        if let Some((name, _)) = text.split_once('=') {
            if !is_harmless_variable(name) {
                findings.refuse(format!("it sets {name}, which may change what programs do"));
            }
        } else if text != "-i" {
            return first
                .fixed
                .then_some(rest)
                .filter(|_| !text.starts_with('-'));
        }
        rest = behind;
    }
    None
}

fn shell(
    findings: &mut Findings<'_>,
    command: &Simple,
    name: &str,
    arguments: &[Word],
    depth: usize,
) {
    let mut rest = arguments;
    let mut takes_text = false;
    while let Some((first, behind)) = rest.split_first() {
        let Some(text) = first.text() else {
            findings.refuse(format!("what {name} runs is computed"));
            return;
        };
        match text {
            "--login" | "--noprofile" | "--norc" => {}
            "-o" if behind.first().and_then(Word::text) == Some("pipefail") => {
                rest = behind.get(1..).unwrap_or_default();
                continue;
            }
            _ if text.len() > 1
                && text.starts_with('-')
                && text.chars().skip(1).all(|letter| "leuxcs".contains(letter)) =>
            {
                takes_text |= text.contains('c');
            }
            _ => break,
        }
        rest = behind;
    }
    let text = if takes_text {
        rest.first().and_then(Word::text)
    } else if rest.is_empty() {
        command.here_text()
    } else {
        None
    };
    match text {
        // Break it: do not look inside; `tool_gate::shell::a_shell_inside_is_looked_at` fails.
        Some(text) if depth + 1 < DEPTH => findings.script(text, depth + 1),
        _ => findings.refuse(format!(
            "{name} runs a script that does not stand in the command"
        )),
    }
}

fn evaluated(findings: &mut Findings<'_>, arguments: &[Word], depth: usize) {
    let texts: Option<Vec<&str>> = arguments.iter().map(Word::text).collect();
    match texts {
        Some(texts) if depth + 1 < DEPTH => findings.script(&texts.join(" "), depth + 1),
        _ => findings.refuse("it evaluates a text that is computed"),
    }
}

/// xargs gives a command words that nobody knows before.
fn xargs(findings: &mut Findings<'_>, command: &Simple, arguments: &[Word], depth: usize) {
    let Some(words) = behind(arguments, &XARGS, 0) else {
        findings.refuse("what xargs runs is computed, or it has an option that is not known");
        return;
    };
    // A file with arguments is read.
    let own = arguments.len() - words.len();
    super::programs::read_operands(findings, "xargs", arguments.get(..own).unwrap_or_default());
    if words.is_empty() {
        return;
    }
    let mut words: Vec<Word> = words
        .iter()
        .map(|word| {
            let mut word = word.clone();
            // Any word may hold what -I replaces.
            word.fixed &= !word.text.contains("{}");
            word
        })
        .collect();
    let replaces = |word: &Word| {
        let text = word.text.as_str();
        text.starts_with("--replace")
            || text.starts_with('-') && !text.starts_with("--") && text.contains('I')
    };
    if arguments.iter().take(own).any(replaces) {
        for word in words.iter_mut().skip(1) {
            word.fixed = false;
            word.begins = false;
        }
    }
    words.push(Word::default());
    run(findings, command, words, depth);
}
