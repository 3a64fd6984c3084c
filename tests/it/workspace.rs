//! Change sets from real repositories, against git itself.

use std::path::Path;
use std::process::{Command, Stdio};

use caretaker::workspace::open_read_only;

use crate::support;

fn git(directory: &Path, arguments: &[&str], input: &[u8]) -> String {
    use std::io::Write as _;
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.invalid"),
        ])
        .envs([
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.invalid"),
            ("GIT_AUTHOR_DATE", "@0 +0000"),
            ("GIT_COMMITTER_DATE", "@0 +0000"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Builds nested trees from (path, mode, oid) with `git mktree --missing`; the objects themselves need not exist.
fn make_tree(repository: &Path, files: &[(Vec<u8>, String, String)]) -> String {
    let mut here = Vec::new();
    let mut below: std::collections::BTreeMap<Vec<u8>, Vec<(Vec<u8>, String, String)>> =
        std::collections::BTreeMap::new();
    for (path, mode, oid) in files {
        match path.iter().position(|byte| *byte == b'/') {
            None => here.push((path.clone(), mode.clone(), oid.clone())),
            Some(slash) => below.entry(path[..slash].to_vec()).or_default().push((
                path[slash + 1..].to_vec(),
                mode.clone(),
                oid.clone(),
            )),
        }
    }
    for (name, files) in below {
        here.push((name, "040000".to_owned(), make_tree(repository, &files)));
    }
    let mut input = Vec::new();
    for (name, mode, oid) in here {
        let kind = match mode.as_str() {
            "040000" => "tree",
            "160000" => "commit",
            _ => "blob",
        };
        input.extend_from_slice(format!("{mode} {kind} {oid}\t").as_bytes());
        input.extend_from_slice(&name);
        input.push(0);
    }
    git(repository, &["mktree", "--missing", "-z"], &input)
}

#[test]
fn the_golden_trees_have_the_golden_digest_through_the_command() {
    let Some(text) = support::corpus("github/change-cases.json") else {
        return;
    };
    let golden: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q", "--bare", "."], b"");
    let side = |mode: &str, oid: &str| -> Vec<(Vec<u8>, String, String)> {
        let entries = golden["entries"].as_array().unwrap().iter();
        let present = entries.filter(|entry| entry[mode] != "000000");
        present
            .map(|entry| {
                (
                    hex::decode(entry["path_hex"].as_str().unwrap()).unwrap(),
                    entry[mode].as_str().unwrap().to_owned(),
                    entry[oid].as_str().unwrap().to_owned(),
                )
            })
            .collect()
    };
    let base = make_tree(directory.path(), &side("old_mode", "old_oid"));
    let head = make_tree(directory.path(), &side("new_mode", "new_oid"));
    let output = Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .args(["change", "digest", "--json", "--repo"])
        .arg(directory.path())
        .args([&base, &head])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["digest"], golden["change_digest"]);
    assert_eq!(
        document["count"],
        golden["entries"].as_array().unwrap().len()
    );
}

#[test]
fn a_submodule_bump_hidden_by_gitmodules_and_a_replaced_object_are_both_seen() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    git(here, &["init", "-q", "-b", "main", "."], b"");
    let modules = git(
        here,
        &["hash-object", "-w", "--stdin"],
        b"[submodule \"s\"]\n\tpath = s\n\turl = ./s\n\tignore = all\n",
    );
    let tree = |commit: char| {
        let link = commit.to_string().repeat(40);
        make_tree(
            here,
            &[
                (
                    b".gitmodules".to_vec(),
                    "100644".to_owned(),
                    modules.clone(),
                ),
                (b"s".to_vec(), "160000".to_owned(), link),
            ],
        )
    };
    let (old, new) = (tree('1'), tree('2'));
    git(here, &["replace", &new, &old], b"");
    let reader = open_read_only(here).unwrap();
    let set = reader
        .change_set(old.parse().unwrap(), new.parse().unwrap())
        .unwrap();
    let paths: Vec<String> = set.paths().map(ToString::to_string).collect();
    assert_eq!(paths, ["s"]);
}

#[test]
fn names_resolve_to_one_thing_or_to_an_error_with_the_mend() {
    let directory = tempfile::tempdir().unwrap();
    git(directory.path(), &["init", "-q", "-b", "main", "."], b"");
    git(
        directory.path(),
        &["commit", "-q", "--allow-empty", "-m", "first"],
        b"",
    );
    let reader = open_read_only(directory.path()).unwrap();
    assert!(reader.resolve("main").is_ok());
    for name in ["nothing", "main~1", "abc1234", "../x", ""] {
        let error = reader.resolve(name).unwrap_err().to_string();
        assert!(error.starts_with("resolving"), "{error}");
    }
    assert!(
        open_read_only(&directory.path().join("absent"))
            .unwrap_err()
            .to_string()
            .contains("no git repository")
    );
}
