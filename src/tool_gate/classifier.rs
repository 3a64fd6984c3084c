//! The classifier of calls: what is refused always, what needs nobody's word, and what a person is asked about.
//!
//! It knows commands by their words, after the shell's own splitting. What it does not know it asks about.

/// What the classifier says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Classified {
    /// It is never done.
    Deny(&'static str),
    /// It changes nothing.
    Approve,
    /// A person should see it.
    Ask,
}

/// The parts of a call that the classifier looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked<'a> {
    /// A tool that only reads.
    Reads,
    /// Simple commands of a shell call, the words of each; `redirects` when output goes to a file.
    Commands {
        /// The commands.
        commands: &'a [Vec<String>],
        /// Whether any writes to a file by redirection.
        redirects: bool,
    },
    /// A shell call that could not be taken apart: its text.
    Text(&'a str),
    /// Anything else.
    Other,
}

/// Programs that change nothing whatever their arguments are.
const READERS: &[&str] = &[
    "ls",
    "pwd",
    "cat",
    "head",
    "tail",
    "wc",
    "stat",
    "file",
    "du",
    "df",
    "which",
    "whoami",
    "id",
    "uname",
    "date",
    "echo",
    "printf",
    "true",
    "false",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "grep",
    "egrep",
    "fgrep",
    "cut",
    "tr",
    "diff",
    "cmp",
    "md5sum",
    "sha256sum",
    "nl",
    "column",
    "test",
    "[",
];
/// Words of a text that are looked at when it cannot be taken apart.
const MOST_WORDS: usize = 2_000;
/// Words that are taken for the arguments of one of them.
const MOST_ARGUMENTS: usize = 64;
/// Subcommands of git that only read.
const GIT_READERS: &[&str] = &[
    "status",
    "log",
    "show",
    "diff",
    "blame",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "describe",
    "shortlog",
];
/// Programs that run what follows them.
const WRAPPERS: &[&str] = &[
    "busybox", "toybox", "eval", "builtin", "sudo", "doas", "env", "nice", "nohup", "time",
    "timeout", "command", "exec", "xargs", "stdbuf", "setsid",
];

/// What the classifier says. The worst of several commands counts.
pub fn classify(looked: Looked<'_>) -> Classified {
    match looked {
        Looked::Reads => Classified::Approve,
        Looked::Other => Classified::Ask,
        Looked::Text(text) => refused_text(text).map_or(Classified::Ask, Classified::Deny),
        Looked::Commands {
            commands,
            redirects,
        } => {
            // Break it: look at the first command only (`tool_gate::approval::the_worst_command_counts`).
            if let Some(reason) = commands.iter().find_map(|words| refused(words)) {
                return Classified::Deny(reason);
            }
            if commands.len() > 1 && commands.iter().any(|words| is_fed_shell(words)) {
                return Classified::Deny("it runs text that is made as it goes");
            }
            if runs_what_it_fetches(commands) {
                return Classified::Deny("it runs what it fetches from the network");
            }
            let reads = !commands.is_empty()
                && !redirects
                && commands.iter().all(|words| only_reads(words));
            if reads {
                Classified::Approve
            } else {
                Classified::Ask
            }
        }
    }
}

/// The program and its arguments behind wrappers and settings of variables.
fn unwrapped(words: &[String]) -> (&str, &[String]) {
    let mut rest = words;
    while let Some((first, behind)) = rest.split_first() {
        let name = program(first);
        let setting = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if setting || WRAPPERS.contains(&name) {
            // Options of the wrapper, and a number that is its time or niceness.
            let skip = behind.iter().take_while(|word| {
                word.starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit())
            });
            rest = behind
                .get(if setting { 0 } else { skip.count() }..)
                .unwrap_or_default();
            continue;
        }
        return (name, behind);
    }
    ("", &[])
}

fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Short options and long ones: whether any is there.
fn has(arguments: &[String], short: char, long: &str) -> bool {
    arguments.iter().any(|argument| {
        argument == long
            || argument
                .strip_prefix('-')
                .is_some_and(|letters| !letters.starts_with('-') && letters.contains(short))
    })
}

/// Places whose loss is the machine's, however they are spelt.
fn is_vital(path: &str) -> bool {
    const VITAL: &[&str] = &[
        "", "~", "$HOME", "${HOME}", "/etc", "/usr", "/bin", "/lib", "/boot", "/var", "/home",
        "/root", "/dev", "/sys", "/proc",
    ];
    // A path of dots alone is the folder itself, which is the session's own.
    if !path.starts_with(['/', '~', '$']) {
        return false;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." | "*" | ".*" => {}
            // Break it: leave the part before it (`tool_gate::approval::what_is_never_done`).
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let whole = parts.join("/");
    let whole = if path.starts_with('/') && !whole.is_empty() {
        format!("/{whole}")
    } else {
        whole
    };
    VITAL.contains(&whole.as_str())
}

fn refused(words: &[String]) -> Option<&'static str> {
    let (name, arguments) = unwrapped(words);
    let wrapping = words.len().saturating_sub(arguments.len());
    let escalates = words
        .iter()
        .take(wrapping)
        .any(|word| matches!(program(word), "sudo" | "doas" | "su"));
    let reason = match name {
        "rm" if has(arguments, 'r', "--recursive")
            && arguments.iter().any(|path| is_vital(path)) =>
        {
            "it removes a whole system or home folder"
        }
        "find"
            if arguments.iter().any(|path| is_vital(path))
                && arguments.iter().any(|word| {
                    matches!(word.as_str(), "-delete" | "-exec" | "-execdir" | "-ok")
                }) =>
        {
            "it removes or changes what it finds in a whole system or home folder"
        }
        "rm" if arguments
            .iter()
            .any(|argument| argument == "--no-preserve-root") =>
        {
            "it removes the root folder"
        }
        "mkfs" | "fdisk" | "parted" | "wipefs" | "mkswap" => "it rewrites a disk",
        _ if name.starts_with("mkfs.") => "it rewrites a disk",
        "dd" if arguments
            .iter()
            .any(|argument| argument.starts_with("of=/dev/")) =>
        {
            "it writes to a device"
        }
        "shutdown" | "reboot" | "halt" | "poweroff" => "it stops the machine",
        "chmod" | "chown"
            if has(arguments, 'R', "--recursive")
                && arguments.iter().any(|path| is_vital(path)) =>
        {
            "it changes the rights of a whole system or home folder"
        }
        "git" if is_forced_push(arguments) => "it rewrites what was pushed",
        "kill" if arguments.iter().any(|argument| argument == "-1") && arguments.len() > 1 => {
            "it ends every process"
        }
        "crontab" | "at" | "systemctl" | "launchctl" => {
            "it makes something run outside the session"
        }
        _ if escalates => "it asks for the rights of another user",
        _ => return None,
    };
    Some(reason)
}

fn is_forced_push(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == "push")
        && (has(arguments, 'f', "--force")
            || arguments.iter().any(|argument| {
                argument.starts_with("--force-with-lease")
                    || argument == "--mirror"
                    || argument.starts_with('+')
            }))
}

/// A shell that is given no text and no file, so that it runs what comes to its standard input.
fn is_fed_shell(words: &[String]) -> bool {
    let (name, arguments) = unwrapped(words);
    let takes_text =
        |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    matches!(name, "sh" | "bash" | "zsh" | "dash" | "ksh" | "ash")
        && arguments.iter().all(|word| word.starts_with('-'))
        && !arguments.iter().any(takes_text)
}

/// A shell that reads its commands from somewhere, in one call with a program that fetches.
fn runs_what_it_fetches(commands: &[Vec<String>]) -> bool {
    let names = |among: &[&str]| {
        commands.iter().any(|words| {
            let (name, arguments) = unwrapped(words);
            let reads_script = arguments.iter().all(|argument| argument.starts_with('-'));
            among.contains(&name) && (reads_script || matches!(name, "curl" | "wget"))
        })
    };
    names(&["curl", "wget"])
        && names(&[
            "sh", "bash", "zsh", "dash", "ksh", "python", "python3", "perl", "ruby", "node",
        ])
}

/// Of a text that could not be taken apart: signs of what is refused.
fn refused_text(text: &str) -> Option<&'static str> {
    let words: Vec<String> = text
        .split(|c: char| {
            c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '"' | '\'')
        })
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    // Which of them are programs is not known, so each is taken for one, with the words that follow.
    let places = 0..words.len().min(MOST_WORDS);
    let found = places.into_iter().find_map(|place| {
        let end = words.len().min(place + MOST_ARGUMENTS);
        refused(words.get(place..end)?)
    });
    if found.is_some() {
        return found;
    }
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let signs = [
        (":(){ :|:& };:", "it starts processes without end"),
        ("rm -rf /", "it removes a whole system or home folder"),
        ("rm -fr /", "it removes a whole system or home folder"),
        ("rm -rf ~", "it removes a whole system or home folder"),
        ("mkfs", "it rewrites a disk"),
        ("of=/dev/", "it writes to a device"),
        ("sudo ", "it asks for the rights of another user"),
    ];
    signs
        .iter()
        .find(|(sign, _)| folded.contains(sign))
        .map(|(_, reason)| *reason)
}

fn only_reads(words: &[String]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    // A program by its path may be anything that lies there.
    if first.contains('/') {
        return false;
    }
    match first.as_str() {
        "git" => {
            words
                .get(1)
                .is_some_and(|command| GIT_READERS.contains(&command.as_str()))
                && !words.iter().any(|word| {
                    word.starts_with("--output")
                        || word.starts_with("--ext-diff")
                        || word.starts_with("-O")
                        || word.starts_with("--textconv")
                })
        }
        "date" => !has(words, 's', "--set"),
        "cargo" => words
            .get(1)
            .is_some_and(|command| matches!(command.as_str(), "tree" | "metadata" | "--version")),
        name => READERS.contains(&name),
    }
}
