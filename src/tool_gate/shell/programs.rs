//! Which programs are known, and who looks at their arguments.

use super::simple::Simple;
use super::word::Word;
use super::{Findings, copying, git, nested, sed, writing};

/// Folders in which a program named with its path is the one of that name.
pub(super) const SYSTEM: [&str; 6] = [
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/local/bin/",
    "/usr/local/sbin/",
];

/// Programs without an option that writes a file or runs a program: whatever their arguments turn out to be, they read.
#[rustfmt::skip]
const READERS: [&str; 54] = [
    ":", "b2sum", "basename", "break", "cat", "cksum", "cmp", "comm", "continue", "cut", "df",
    "dirname", "du", "echo", "egrep", "exit", "expand", "factor", "false", "fgrep", "fmt", "fold", "free", "getconf", "grep",
    "groups", "head", "id", "join", "locale", "ls", "md5sum", "nl", "nproc", "od", "paste", "printenv", "pwd", "readlink",
    "realpath", "return", "rev", "seq", "sha1sum", "sha256sum", "sha512sum", "sleep", "stat", "tac", "tail", "tr", "true",
    "wc", "whoami",
];

/// Programs that read unless one of these options says otherwise, with the letters and the long names that do.
#[rustfmt::skip]
const CAREFUL: [(&str, &str, &[&str]); 14] = [
    ("base32", "o", &["--output"]),
    ("base64", "o", &["--output"]),
    ("date", "s", &["--set"]),
    ("diff", "", &[]),
    ("file", "C", &["--compile"]),
    ("jq", "", &[]),
    ("printf", "v", &[]),
    ("rg", "z", &["--pre", "--pre-glob", "--hostname-bin", "--search-zip"]),
    ("sort", "oT", &["--output", "--compress-program", "--temporary-directory"]),
    ("tree", "oR", &["--output"]),
    ("uname", "", &[]),
    ("unexpand", "", &[]),
    ("which", "", &[]),
    ("xxd", "r", &["--revert"]),
];

/// Predicates of find that neither write nor run anything.
#[rustfmt::skip]
const FIND: [&str; 39] = [
    "-H", "-L", "-P", "-a", "-and", "-cmin", "-ctime", "-depth", "-empty", "-executable", "-false", "-group", "-iname", "-ipath",
    "-iregex", "-links", "-ls", "-maxdepth", "-mindepth", "-mmin", "-mount", "-mtime", "-name", "-newer", "-not", "-o", "-or",
    "-path", "-perm", "-print", "-print0", "-prune", "-readable", "-regex", "-size", "-true", "-type", "-user", "-xdev",
];

/// Programs whose `--version` is asked for often. Not among them: those that look into the present folder for another version of
/// themselves (rustup's proxies, yarn, pnpm).
const VERSIONED: [&str; 8] = [
    "bash", "clang", "gcc", "git", "make", "node", "python", "python3",
];

/// What is said of programs that are known to run anything.
#[rustfmt::skip]
const INTERPRETERS: [&str; 17] = [
    "awk", "bun", "deno", "ed", "emacs", "ex", "gawk", "lua", "mawk", "node", "perl", "php", "python", "ruby", "tclsh", "vi", "vim",
];

/// Looks at a command that has a program.
pub(super) fn look(findings: &mut Findings<'_>, command: &Simple, depth: usize) {
    let Some((program, arguments)) = command.words.split_first() else {
        return;
    };
    let Some(name) = program.text().filter(|name| !name.is_empty()) else {
        findings.refuse("its program is computed");
        return;
    };
    let name = SYSTEM
        .iter()
        .find_map(|folder| name.strip_prefix(folder))
        .unwrap_or(name);
    if name.contains('/') {
        findings.refuse(format!(
            "it runs {name}, and what that writes cannot be told"
        ));
        return;
    }
    if VERSIONED.contains(&name) && arguments.len() == 1 && is_version(arguments) {
        return;
    }
    if READERS.contains(&name) {
        read_operands(findings, name, arguments);
        return;
    }
    if let Some((_, letters, longs)) = CAREFUL.iter().find(|(found, _, _)| *found == name) {
        careful(findings, name, arguments, letters, longs);
        return;
    }
    let known = builtin(findings, command, name, arguments)
        || writing::look(findings, name, arguments)
        || copying::look(findings, name, arguments)
        || sed::look(findings, name, arguments)
        || git::look(findings, command, name, arguments)
        || nested::look(findings, command, name, arguments, depth);
    if known {
        return;
    }
    let interpreter = INTERPRETERS.iter().any(|found| {
        name.strip_prefix(found).is_some_and(|rest| {
            rest.chars()
                .all(|found| found.is_ascii_digit() || found == '.')
        })
    });
    findings.refuse(if interpreter {
        format!("it gives code to {name}, and what that writes cannot be told")
    } else {
        format!("it runs {name}, and what that writes cannot be told")
    });
}

fn is_version(arguments: &[Word]) -> bool {
    arguments
        .first()
        .and_then(Word::text)
        .is_some_and(|text| matches!(text, "--version" | "-V"))
}

/// Builtins of the shell, and programs that only a few words are known of.
fn builtin(findings: &mut Findings<'_>, command: &Simple, name: &str, arguments: &[Word]) -> bool {
    let texts: Option<Vec<&str>> = arguments.iter().map(Word::text).collect();
    match (name, texts.as_deref()) {
        ("cd", Some(texts)) => match texts {
            [folder] | ["--", folder] if !folder.starts_with('-') && !folder.is_empty() => {
                if command.repeated {
                    findings.refuse("it changes folders in a loop");
                } else {
                    findings.enters(folder);
                }
            }
            _ => findings.refuse("it changes to a folder that is not named"),
        },
        ("find", Some(texts)) => {
            for text in texts {
                // Break it: accept every word; `tool_gate::shell::find_that_runs_or_writes_is_refused` fails.
                if text.starts_with('-') && !FIND.contains(text) {
                    findings.refuse(format!("find has {text}, which may write or run something"));
                }
            }
            read_operands(findings, name, arguments);
        }
        ("uniq", Some(texts)) => {
            let ended = texts.iter().position(|text| *text == "--");
            let options = texts
                .get(..ended.unwrap_or(texts.len()))
                .unwrap_or_default();
            let behind = ended.map_or(0, |ended| texts.len() - ended - 1);
            let operands = options
                .iter()
                .filter(|text| !text.starts_with('-') || **text == "-")
                .count();
            if operands + behind > 1 {
                findings.refuse("uniq has two files, the second of which it writes");
            }
        }
        ("test" | "[", _) => tested(findings, name, arguments),
        ("set", Some(texts)) => {
            let harmless = [
                "-e", "-u", "-x", "-eu", "-ex", "-eux", "+e", "+x", "-o", "-euo", "-euxo",
                "pipefail",
            ];
            if texts.iter().any(|text| !harmless.contains(text)) {
                findings.refuse("it changes the shell's own settings");
            }
        }
        ("read", Some(texts)) => {
            let plain = |text: &&str| {
                matches!(*text, "-r") || super::simple::is_harmless_loop_variable(text)
            };
            if !texts.iter().all(plain) {
                findings
                    .refuse("it reads into a variable in capitals, or into more than a variable");
            }
        }
        ("export", Some(texts)) => {
            let harmless = |text: &&str| {
                text.split_once('=')
                    .is_some_and(|(name, _)| super::simple::is_harmless_variable(name))
            };
            if !texts.iter().all(harmless) {
                findings.refuse("it exports a variable, which may change what programs do");
            }
        }
        ("wait", Some([])) => {}
        _ => return false,
    }
    true
}

/// `test` evaluates array subscripts of what follows `-v`, so that only plain comparisons are known.
fn tested(findings: &mut Findings<'_>, name: &str, arguments: &[Word]) {
    const UNARY: [&str; 14] = [
        "-d", "-e", "-f", "-r", "-s", "-w", "-x", "-L", "-h", "-n", "-z", "-p", "-S", "-b",
    ];
    const BINARY: [&str; 12] = [
        "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
    ];
    let arguments = match arguments.split_last() {
        Some((last, rest)) if name == "[" && last.text() == Some("]") => rest,
        _ if name == "[" => {
            findings.refuse("its bracket is not closed");
            return;
        }
        _ => arguments,
    };
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first.text() == Some("!") => rest,
        _ => arguments,
    };
    // Other shells calculate with what is compared.
    let computes = arguments
        .iter()
        .filter_map(Word::text)
        .any(|text| text.contains(['$', '`']));
    let is = |word: &Word, known: &[&str]| word.text().is_some_and(|text| known.contains(&text));
    // zsh calculates with both sides of a comparison of numbers, and runs what stands in a subscript.
    let counts = |word: &Word| {
        word.text
            .chars()
            .all(|found| found.is_ascii_digit() || matches!(found, '+' | '-' | ' '))
    };
    let calculates = match arguments {
        [left, operator, right] => {
            is_number_comparison(operator) && !(counts(left) && counts(right))
        }
        _ => false,
    };
    let plain = match arguments {
        [] | [_] => true,
        [operator, _] => is(operator, &UNARY),
        [_, operator, _] => is(operator, &BINARY),
        _ => false,
    };
    if !plain || computes || calculates {
        findings.refuse("it tests more than a file or two values");
    }
}

fn is_number_comparison(operator: &Word) -> bool {
    operator
        .text()
        .is_some_and(|text| matches!(text, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"))
}

/// A program that reads unless an option is there. Every word must stand there, since a computed one may be such an option.
fn careful(
    findings: &mut Findings<'_>,
    name: &str,
    arguments: &[Word],
    letters: &str,
    longs: &[&str],
) {
    // printf takes options in the first place only.
    let looked_at = if name == "printf" {
        arguments.get(..1).unwrap_or_default()
    } else {
        arguments
    };
    for word in looked_at {
        let Some(text) = word.text() else {
            if word.may_be_option() && !(letters.is_empty() && longs.is_empty()) {
                findings.refuse(format!("an argument of {name} is computed"));
            }
            continue;
        };
        if text == "--" {
            break;
        }
        let long = text.split('=').next().unwrap_or_default();
        // Long options may be shortened.
        let is_long = long.starts_with("--")
            && longs
                .iter()
                .any(|option| option.starts_with(long) || long.starts_with(option));
        let is_short = text.starts_with('-')
            && !text.starts_with("--")
            && text.chars().any(|letter| letters.contains(letter));
        if is_long || is_short {
            findings.refuse(format!(
                "{name} has {text}, which may write or run something"
            ));
        }
    }
    // The second file of xxd is written.
    if name == "xxd" && arguments.len() > 1 {
        findings.refuse("xxd may write its second file");
    }
    read_operands(findings, name, arguments);
}

/// Files that a reader reads: they count for the gate's own state.
pub(super) fn read_operands(findings: &mut Findings<'_>, name: &str, arguments: &[Word]) {
    let search = searches(name, arguments);
    // What is looked for, and not where.
    let mut is_content = matches!(name, "grep" | "egrep" | "fgrep" | "rg");
    let mut is_behind = false;
    let mut places = 0;
    for word in arguments {
        let option = word.begins && word.text.starts_with('-');
        if option {
            is_content &= !gives_content(&word.text);
            is_behind = name == "find" && word.text.len() > 2;
            read_word(findings, word, false);
            continue;
        }
        let is_place = !is_content && !is_behind;
        places += usize::from(is_place);
        read_word(findings, word, search && is_place);
        is_content = false;
    }
    if search && places == 0 {
        findings.mentions(".", true, false);
    }
}

/// Options of grep and rg that say what is looked for, so that no operand does.
fn gives_content(option: &str) -> bool {
    matches!(option, "-e" | "-f" | "--files")
        || option.starts_with("--regexp")
        || option.starts_with("--file=")
}

/// Whether a program looks through folders.
fn searches(name: &str, arguments: &[Word]) -> bool {
    let has = |letters: &[char], long: &str| {
        arguments.iter().any(|word| {
            let text = word.text.as_str();
            text.starts_with('-') && !text.starts_with("--") && text.contains(letters)
                || text.starts_with("--") && text.contains(long)
        })
    };
    match name {
        "find" | "rg" | "tree" | "du" => true,
        "grep" | "egrep" | "fgrep" => has(&['r', 'R', 'd'], "recursive"),
        "ls" => has(&['R'], "recursive"),
        "diff" => has(&['r'], "recursive"),
        _ => false,
    }
}

/// What an option gives in the same word.
fn option_value(text: &str) -> &str {
    text.split_once('=')
        .map_or_else(|| text.get(2..).unwrap_or_default(), |(_, value)| value)
}

/// One word of a reader: a file, an option that may name one, or a pattern of files.
pub(super) fn read_word(findings: &mut Findings<'_>, word: &Word, search: bool) {
    match word.text() {
        Some(text) if text.starts_with('-') => {
            let value = option_value(text);
            if value.contains(['/', '~', '.']) {
                findings.mentions(value, search, false);
            }
        }
        Some("") => {}
        Some(text) => {
            findings.reads(text);
            if search {
                findings.mentions(text, true, false);
            }
        }
        None => {
            let pattern = word.pattern.as_str();
            // A variable alone says nothing.
            if pattern.contains(['/', '~', '*', '?', '['])
                || pattern.starts_with("$CARETAKER")
                || pattern.starts_with("$HOME")
            {
                let value = if pattern.starts_with('-') {
                    option_value(pattern)
                } else {
                    pattern
                };
                findings.mentions(value, search, true);
            }
        }
    }
}
