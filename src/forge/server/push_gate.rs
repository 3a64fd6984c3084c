//! What a push may not do: a hook says no for each reference, and the report says why in GitHub's words.
//!
//! git itself would only say `hook declined`; the hook leaves its reason in a file, and the report is written again.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::super::api::checked_commits;
use super::super::state::{RepositoryState, Token};

/// Runs once for each reference, after the new objects have arrived and before the reference moves.
const HOOK: &str = r#"#!/bin/sh
reference=$1 old=$2 new=$3
zero=0000000000000000000000000000000000000000
listed() { printf '%s\n' "$1" | grep -qxF -e "$reference"; }
refuse() { printf '%s\t%s\n' "$reference" "$1" >>"$FORGE_VERDICTS"; exit 1; }
protected() {
  printf 'error: GH006: Protected branch update failed for %s.\nerror: %s\n' "$reference" "$1" >&2
  refuse 'protected branch hook declined'
}
listed "$FORGE_PULLS_ONLY" && protected 'Changes must be made through a pull request.'
if [ "$new" = "$zero" ]; then
  listed "$FORGE_KEPT" && protected 'Cannot delete this protected branch'
  exit 0
fi
if [ "$old" != "$zero" ] && listed "$FORGE_FORWARD_ONLY" && ! git merge-base --is-ancestor "$old" "$new"; then
  protected 'Cannot force-push to this branch'
fi
if listed "$FORGE_CHECKED" && ! printf '%s\n' "$FORGE_GREEN" | grep -qxF -e "$reference $new"; then
  protected 'Required status checks are expected.'
fi
if [ -n "$FORGE_REFUSED" ]; then
  path=$(git log --format= --name-only "$new" --not --all -- .github/workflows | head -n 1)
  if [ -n "$path" ]; then
    refuse "refusing to allow $FORGE_REFUSED to create or update workflow \`$path\` without $FORGE_LACKING"
  fi
fi
exit 0
"#;

/// The name of the folder of hooks among the repositories.
const FOLDER: &str = "hooks";

/// Puts the hook where [`Gate`] finds it.
pub(crate) fn install(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let folder = directory.join(FOLDER);
    std::fs::create_dir(&folder)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(folder.join("update"))?;
    file.write_all(HOOK.as_bytes())
}

/// What one push may not do.
pub(super) struct Gate {
    verdicts: NamedTempFile,
    variables: Vec<(&'static str, String)>,
    hooks: PathBuf,
}

impl Gate {
    pub(super) fn new(
        directory: &Path,
        state: &RepositoryState,
        token: &Token,
    ) -> std::io::Result<Self> {
        let verdicts = NamedTempFile::new()?;
        let list = |chosen: &dyn Fn(&str) -> bool| {
            let names: Vec<String> = state
                .guarded_branches()
                .into_iter()
                .filter(|branch| chosen(branch))
                .map(|branch| format!("refs/heads/{branch}"))
                .collect();
            names.join("\n")
        };
        let (refused, lacking) = if token.may_write_workflows() {
            ("", "")
        } else {
            token.workflow_refusal()
        };
        let (checked, green) = checked_commits(state);
        let variables = vec![
            ("FORGE_CHECKED", checked.join("\n")),
            ("FORGE_GREEN", green.join("\n")),
            ("FORGE_VERDICTS", verdicts.path().display().to_string()),
            (
                "FORGE_PULLS_ONLY",
                list(&|branch| state.guard_of(branch).pulls_only),
            ),
            ("FORGE_KEPT", list(&|branch| state.guard_of(branch).kept)),
            (
                "FORGE_FORWARD_ONLY",
                list(&|branch| state.guard_of(branch).forward_only),
            ),
            ("FORGE_REFUSED", refused.to_owned()),
            ("FORGE_LACKING", lacking.to_owned()),
        ];
        Ok(Self {
            verdicts,
            variables,
            hooks: directory.join(FOLDER),
        })
    }

    /// The environment that makes git start the hook. `settings` is how many settings the environment has already.
    pub(super) fn environment(&self, settings: usize) -> Vec<(String, String)> {
        let mut environment: Vec<(String, String)> = self
            .variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        environment.extend([
            ("GIT_CONFIG_COUNT".to_owned(), (settings + 1).to_string()),
            (
                format!("GIT_CONFIG_KEY_{settings}"),
                "core.hooksPath".to_owned(),
            ),
            (
                format!("GIT_CONFIG_VALUE_{settings}"),
                self.hooks.display().to_string(),
            ),
        ]);
        environment
    }

    /// The report of a push with the hook's reasons in the place of git's.
    pub(super) fn explained(&self, report: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let text = std::fs::read_to_string(self.verdicts.path())?;
        let reasons: HashMap<&str, &str> = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        if reasons.is_empty() {
            return Ok(report);
        }
        let unreadable = || std::io::Error::other("the report of a push cannot be read");
        rewritten(&report, &reasons).ok_or_else(unreadable)
    }
}

/// One packet of git's protocol; `None` is a flush.
type Packet<'a> = Option<&'a [u8]>;

fn packets(mut bytes: &[u8]) -> Option<Vec<Packet<'_>>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (digits, rest) = bytes.split_at_checked(4)?;
        let length = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        if length < 4 {
            found.push(None);
            bytes = rest;
        } else {
            let (content, rest) = rest.split_at_checked(length - 4)?;
            found.push(Some(content));
            bytes = rest;
        }
    }
    Some(found)
}

fn push_packet(bytes: &mut Vec<u8>, content: &[u8]) {
    bytes.extend(format!("{:04x}", content.len() + 4).bytes());
    bytes.extend(content);
}

/// Writes the report again, inside its first side band where it has side bands.
fn rewritten(report: &[u8], reasons: &HashMap<&str, &str>) -> Option<Vec<u8>> {
    let outer = packets(report)?;
    let banded = outer
        .iter()
        .flatten()
        .any(|packet| packet.first() == Some(&1));
    if !banded {
        return explained_lines(report, reasons);
    }
    let inner: Vec<u8> = outer
        .iter()
        .flatten()
        .filter(|packet| packet.first() == Some(&1))
        .flat_map(|packet| packet[1..].to_vec())
        .collect();
    let inner = explained_lines(&inner, reasons)?;
    let mut written = Vec::new();
    for packet in outer
        .iter()
        .flatten()
        .filter(|packet| packet.first() != Some(&1))
    {
        push_packet(&mut written, packet);
    }
    for part in inner.chunks(60_000) {
        push_packet(&mut written, &[&[1], part].concat());
    }
    written.extend(b"0000");
    Some(written)
}

fn explained_lines(report: &[u8], reasons: &HashMap<&str, &str>) -> Option<Vec<u8>> {
    let mut written = Vec::new();
    for packet in packets(report)? {
        let Some(content) = packet else {
            written.extend(b"0000");
            continue;
        };
        let refused = std::str::from_utf8(content)
            .ok()
            .and_then(|line| line.strip_prefix("ng "))
            .and_then(|line| line.split_once(' '))
            .and_then(|(name, _)| Some((name, reasons.get(name)?)));
        match refused {
            Some((name, reason)) => {
                push_packet(&mut written, format!("ng {name} {reason}\n").as_bytes());
            }
            None => push_packet(&mut written, content),
        }
    }
    Some(written)
}
