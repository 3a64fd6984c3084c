//! The gate's own state, by every spelling that somebody may read it by.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::Desk;

/// Spellings of a file in the state, `HOME` being the folder above it.
fn spellings(desk: &Desk) -> Vec<String> {
    let home = desk.home().to_str().unwrap().to_owned();
    let above = desk
        .path("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let escaped = home.replace("home", "%68ome");
    vec![
        format!("{home}/hook-gate/receipt.key"),
        format!(" {home}/hook-gate/receipt.key\n"),
        format!("\"{home}/hook-gate/receipt.key\""),
        format!("@{home}/hook-gate/receipt.key"),
        format!("{home}/audit/stream.key"),
        format!("{home}//./hook-gate/../hook-gate/receipt.key"),
        "../home/hook-gate/receipt.key".to_owned(),
        "src/../../home/hook-gate/receipt.key".to_owned(),
        format!("file://{home}/hook-gate/receipt.key"),
        format!("FILE:///{home}/hook-gate/receipt.key"),
        format!("file://localhost{home}/hook-gate/receipt.key"),
        format!("file:{home}/hook-gate/receipt.key"),
        format!("file://{escaped}/hook-gate/receipt.key"),
        format!("{above}/*/hook-gate/receipt.key"),
        format!("{above}/h?me/**"),
        format!("{above}/[h]ome/hook-gate/*.key"),
        format!("{above}/{{home,work}}/hook-gate/*"),
        format!("{above}/**/receipt.key"),
        format!("{above}/@(home)/hook-gate/*"),
        format!("{above}/HOME/hook-gate/receipt.key"),
        "../*/hook-gate/*".to_owned(),
        "**/../../home/hook-gate/*".to_owned(),
        "~/home/hook-gate/receipt.key".to_owned(),
        "$HOME/home/hook-gate/receipt.key".to_owned(),
        "${HOME}/home/hook-gate/receipt.key".to_owned(),
        "~root/home/hook-gate/receipt.key".to_owned(),
        "$CARETAKER_HOME/hook-gate/receipt.key".to_owned(),
        "$X/home/hook-gate/receipt.key".to_owned(),
        "src/link/hook-gate/receipt.key".to_owned(),
        "/proc/self/root/../".to_owned() + home.trim_start_matches('/'),
        format!("src/*.rs,{home}/hook-gate/*"),
    ]
}

#[test]
fn no_spelling_reads_the_gates_state() {
    let desk = Desk::new();
    symlink(desk.home(), desk.work().join("src/link")).unwrap();
    for path in spellings(&desk) {
        for (tool, name) in [
            ("Read", "file_path"),
            ("Glob", "pattern"),
            ("Grep", "glob"),
            ("grep_search", "include"),
            ("read_many_files", "include"),
            ("list_directory", "anything"),
            ("WebFetch", "url"),
            ("view_image", "image"),
        ] {
            let reason = desk.before(tool, &json!({name: path})).blocked();
            assert!(
                reason.starts_with("protected path refused"),
                "{tool} {path}: {reason}"
            );
        }
        let nested = json!({"options": [{"deep": path}]});
        desk.before("Read", &nested).blocked();
    }
}

#[test]
fn a_search_rooted_above_the_state_is_refused() {
    let desk = Desk::new();
    let above = desk
        .path("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    for root in [above.as_str(), "..", "/", "../.", "src/../.."] {
        desk.before("Grep", &json!({"pattern": "x", "path": root}))
            .blocked();
        desk.before("Glob", &json!({"pattern": "**/*", "path": root}))
            .blocked();
        for command in [
            format!("grep -r x {root}"),
            format!("grep --recursive x {root}"),
            format!("rg x {root}"),
            format!("find {root} -name '*.key'"),
            format!("ls -R {root}"),
            format!("du -a {root}"),
            format!("tree {root}"),
            format!("diff -r src {root}"),
            format!("git grep --no-index x {root}"),
        ] {
            let reason = desk.bash(&command).blocked();
            assert!(
                reason.starts_with("protected path refused"),
                "{command}: {reason}"
            );
        }
    }
    for command in [
        "grep -r x .",
        "rg x",
        "rg '/' src",
        "find . -name x",
        "ls -R",
        "grep / src/a",
        "ls ..",
    ] {
        desk.bash(command).allowed();
    }
    let searches = json!({"pattern": "/**", "path": "src"});
    desk.before("Grep", &searches).allowed();
    desk.before("Glob", &json!({"pattern": "**/*.rs"}))
        .allowed();
    desk.before("Read", &json!({"file_path": "/etc/hostname"}))
        .allowed();
}

#[test]
fn no_spelling_of_a_command_reads_the_gates_state() {
    let desk = Desk::new();
    symlink(desk.home(), desk.work().join("src/link")).unwrap();
    let home = desk.home().to_str().unwrap().to_owned();
    let above = desk
        .path("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    for file in [
        format!("{home}/hook-gate/receipt.key"),
        format!("{above}/*/hook-gate/receipt.key"),
        format!("{above}/h?me/hook-gate/receipt.key"),
        format!("{above}/{{home,x}}/hook-gate/receipt.key"),
        format!("{above}/\"home\"/hook-gate/r*"),
        "../h*/hook-gate/*".to_owned(),
        "~/home/hook-gate/receipt.key".to_owned(),
        "$HOME/home/hook-gate/receipt.key".to_owned(),
        "\"${HOME}\"/home/hook-gate/receipt.key".to_owned(),
        "$CARETAKER_HOME/hook-gate/receipt.key".to_owned(),
        "$X/home/hook-gate/receipt.key".to_owned(),
        format!("$'{home}/hook-gate/receipt.key'"),
        "src/link/hook-gate/*".to_owned(),
    ] {
        for command in [
            format!("cat {file}"),
            format!("cat < {file}"),
            format!("base64 {file}"),
            format!("grep -f {file} src/a"),
            format!("grep --file={file} src/a"),
            format!("sed -n p {file}"),
            format!("for f in {file}; do cat \"$f\"; done"),
            format!("bash -c 'ls' {file}; head {file}"),
            format!("cp {file} src/x"),
            format!("git diff --no-index /dev/null {file}"),
            format!("xargs -a {file} echo"),
        ] {
            desk.bash(&command).blocked();
        }
    }
}

/// A file system that folds names finds the state by another case; on one that does not, nothing is lost.
#[test]
fn another_case_reaches_nothing() {
    let desk = Desk::new();
    let home = desk.home().to_str().unwrap().to_owned();
    let other = format!(
        "{}/HOME/Hook-Gate/receipt.key",
        home.trim_end_matches("/home")
    );
    desk.before("Read", &json!({"file_path": other})).blocked();
    desk.bash(&format!("cat {other}")).blocked();
}

#[test]
fn many_long_mentions_are_looked_at_in_time() {
    let desk = Desk::new();
    let begun = std::time::Instant::now();
    let deep = format!("{}x", "a/".repeat(2000));
    let many: Vec<String> = (0..900).map(|number| format!("{deep}{number}")).collect();
    desk.before("read_many_files", &json!({"include": many}))
        .allowed();
    let stars = format!("/{}", "**/".repeat(1300));
    desk.before("Glob", &json!({"pattern": stars})).blocked();
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "slow");
}
