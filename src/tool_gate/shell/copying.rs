//! Programs that put files elsewhere: cp, mv, ln, install.

use super::Findings;
use super::word::Word;
use super::writing::operands;

/// Looks at a program of this kind; false when it is none.
pub(super) fn look(findings: &mut Findings<'_>, name: &str, arguments: &[Word]) -> bool {
    let (letters, longs): (&str, &[&str]) = match name {
        // Copying whole folders may put a repository's state where nobody named it.
        "cp" => ("finpuvT", &["--force", "--no-clobber", "--verbose"]),
        "mv" => ("finuvT", &["--force", "--no-clobber", "--verbose"]),
        "ln" => ("sfnvrT", &["--symbolic", "--force", "--relative"]),
        "install" => ("Ddvm", &[]),
        _ => return false,
    };
    let valued = if name == "install" { "m" } else { "" };
    let (folder, arguments) = target_folder(arguments);
    let Some(files) = operands(findings, name, &arguments, letters, valued, longs) else {
        return true;
    };
    if name == "install" && has_letter(&arguments, 'd') {
        for file in files {
            findings.writes(file);
        }
        return true;
    }
    let (sources, target) = match (&folder, files.split_last()) {
        (Some(folder), _) => (files.as_slice(), folder.as_str()),
        // One operand of ln: a link of the same name in the present folder.
        (None, Some((_, []))) if name == "ln" => (files.as_slice(), "./"),
        (None, Some((target, sources))) if !sources.is_empty() => (sources, *target),
        _ => {
            findings.refuse(format!("{name} lacks a file"));
            return true;
        }
    };
    let symbolic = has_letter(&arguments, 's') || has_word(&arguments, "--symbolic");
    // With -r it is told from the present folder, else from that of the link.
    let relative = has_letter(&arguments, 'r') || has_word(&arguments, "--relative");
    for source in sources {
        let targets = destinations(source, target);
        match name {
            // Where a symbolic link leads can be changed through it, and what is hard-linked, too.
            "ln" if symbolic && relative => findings.writes(source),
            "ln" if symbolic => link_target(findings, source, target),
            "mv" => findings.moves(source),
            "ln" => findings.writes(source),
            _ => findings.reads(source),
        }
        for destination in &targets {
            findings.writes(destination);
        }
        if matches!(name, "mv" | "ln") {
            for destination in &targets {
                findings.makes(destination);
            }
        }
    }
    true
}

/// `-t FOLDER` and `--target-directory=FOLDER`, and the words without it. A computed one stays among the words, where it is refused.
fn target_folder(arguments: &[Word]) -> (Option<String>, Vec<Word>) {
    let mut folder = None;
    let mut rest = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text().unwrap_or_default();
        if text == "-t" && folder.is_none() {
            match words.next() {
                Some(named) if named.fixed => folder = Some(format!("{}/", named.text)),
                Some(named) => rest.push(named.clone()),
                None => rest.push(word.clone()),
            }
        } else if let Some(named) = text.strip_prefix("--target-directory=")
            && folder.is_none()
        {
            folder = Some(format!("{named}/"));
        } else {
            rest.push(word.clone());
        }
    }
    (folder, rest)
}

/// Where a file may end up: the target itself, and in it when it is a folder.
fn destinations(source: &str, target: &str) -> Vec<String> {
    let name = source
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(source);
    let inside = format!("{}/{name}", target.trim_end_matches('/'));
    let inside = if target.starts_with('/') || !inside.starts_with('/') {
        inside
    } else {
        name.to_owned()
    };
    if target.ends_with('/') || matches!(target, "." | "..") || target.ends_with("/.") {
        vec![inside]
    } else {
        vec![target.to_owned(), inside]
    }
}

/// Where a symbolic link leads: counted from the folder it lies in.
fn link_target(findings: &mut Findings<'_>, source: &str, target: &str) {
    if source.starts_with('/') {
        findings.writes(source);
        return;
    }
    let above = target
        .trim_end_matches('/')
        .rsplit_once('/')
        .map_or("", |(above, _)| above);
    let inside = target.trim_end_matches('/');
    let mut folders = vec![inside];
    if !target.ends_with('/') && !matches!(target, "." | "..") {
        folders.push(above);
    }
    for folder in folders {
        findings.writes(&super::joined(folder, source));
    }
}

fn has_letter(arguments: &[Word], letter: char) -> bool {
    arguments
        .iter()
        .filter_map(Word::text)
        .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
}

fn has_word(arguments: &[Word], word: &str) -> bool {
    arguments.iter().any(|found| found.text() == Some(word))
}
