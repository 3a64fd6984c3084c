//! What holds for every path and every command.

use caretaker::tool_gate::shell::classify;
use caretaker::tool_gate::{Access, Answer, is_protected};
use proptest::prelude::*;
use serde_json::json;

use super::{Tree, USUAL, bash, call, decided, write};

fn tree() -> Tree {
    Tree::new()
        .link("src/out", "/etc")
        .link("src/git", "../.git")
        .link("src/docs", "../docs")
        .link("in", "src")
        .link(".claude", "src")
}

/// Names from which paths are made that mean something to the rules.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("src".to_owned()),
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        Just("docs".to_owned()),
        Just("secrets".to_owned()),
        Just(".git".to_owned()),
        Just(".GIT".to_owned()),
        Just("out".to_owned()),
        Just("git".to_owned()),
        Just("in".to_owned()),
        Just(".claude".to_owned()),
        Just("a.md".to_owned()),
        Just("work".to_owned()),
        Just("srcx".to_owned()),
        Just("~".to_owned()),
        "[a-z. ]{0,3}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    (prop::collection::vec(name(), 0..8), any::<bool>()).prop_map(|(names, absolute)| {
        format!("{}{}", if absolute { "/" } else { "" }, names.join("/"))
    })
}

/// The rule written down a second time, for a path with links resolved.
fn in_scope(tree: &Tree, path: &str) -> bool {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/work/{path}")
    };
    let real = tree.resolved(&whole, true);
    let Some(inside) = real.strip_prefix("/work/") else {
        return false;
    };
    !is_protected(inside.as_bytes())
        && (inside == "src"
            || inside.starts_with("src/")
            || inside.starts_with("docs/") && inside.as_bytes().ends_with(b".md"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// No spelling of a path outside the allowlist is ever allowed: not by a write tool, not by a patch, not by a redirection.
    #[test]
    fn no_path_outside_the_allowlist_is_allowed_by_any_spelling(path in path()) {
        let tree = tree();
        let calls = [
            write(&path),
            call("create", json!({"path": "src/ok", "filePath": path})),
            call("apply_patch", json!({"command": format!("*** Begin Patch\n*** Add File: src/ok\n+x\n*** Delete File: {path}\n*** End Patch")})),
            bash(&format!("echo x > '{path}'")),
            bash(&format!("cat src/a | tee -a src/ok \"{path}\"")),
            bash(&format!("mv '{path}' src/")),
            bash(&format!("sh -c \"rm -f '{path}'\"")),
        ];
        for made in calls {
            // Codex trims the names in its headers.
            let shown = if made.tool == "apply_patch" { path.trim() } else { path.as_str() };
            let decision = decided(&made, &USUAL, &tree);
            prop_assert!(decision.answer == Answer::Deny || in_scope(&tree, shown), "{made:?} {decision:?}");
        }
    }

    /// And every path inside of it is, unless it is protected by the way it is spelt.
    #[test]
    fn every_path_inside_the_allowlist_is_allowed(names in prop::collection::vec("[a-z]{1,4}", 1..4)) {
        let path = format!("src/x{}", names.join("/"));
        prop_assert_eq!(decided(&write(&path), &USUAL, &tree()).answer, Answer::Allow);
        prop_assert_eq!(decided(&bash(&format!("echo x >> {path}")), &USUAL, &tree()).answer, Answer::Allow);
    }

    /// However a write is wrapped, it is either found or the command is refused.
    #[test]
    fn no_write_passes_for_a_read(wraps in prop::collection::vec(0_usize..18, 0..5), writer in 0_usize..10) {
        let writers = [
            "echo x > TARGET", "echo x>>TARGET", "tee TARGET", "cp a TARGET", "mv a TARGET", "ln -s a TARGET", "sed -i s/a/b/ TARGET",
            "dd if=a of=TARGET", "truncate -s0 TARGET", "install a TARGET",
        ];
        let mut command = writers[writer].to_owned();
        for wrap in wraps {
            command = match wrap {
                0 => format!("({command})"),
                1 => format!("{{ {command}; }}"),
                2 => format!("ls | {command}"),
                3 => format!("true && {command} || false"),
                4 => format!("echo $({command})"),
                5 => format!("echo \"$({command})\""),
                6 => format!("if true; then {command}; fi"),
                7 => format!("for i in 1; do {command}; done"),
                8 => format!("sh -c '{}'", command.replace('\'', "'\\''")),
                9 => format!("eval '{}'", command.replace('\'', "'\\''")),
                10 => format!("{command} &"),
                11 => format!("! {command}"),
                12 => format!("cat <({command})"),
                13 => format!("cd src; {command}"),
                14 => format!("bash <<'END'\n{command}\nEND"),
                15 => format!("LC_ALL=C {command}"),
                16 => format!("# comment\n{command} # more"),
                _ => format!("ls;{command};ls"),
            };
        }
        let shell = classify(&command, &[], &[]);
        let found = shell.touches.iter().any(|touch| touch.access == Access::Write && touch.path.contains("TARGET"));
        prop_assert!(found || !shell.unclassified.is_empty(), "{command}");
    }

    /// Whatever is given, reading ends, and the same text gives the same answer.
    #[test]
    fn reading_a_command_ends(command in "[-a-z $(){}<>|&;'\"`\\\\\n#=*/.~!\\[\\]]{0,120}") {
        prop_assert_eq!(classify(&command, &[], &[]), classify(&command, &[], &[]));
    }
}
