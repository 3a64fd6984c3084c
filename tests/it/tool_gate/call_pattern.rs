//! Patterns of calls that a person allows always: narrow, plain, and never more than the gate.

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::call_pattern::{CallPattern, LONGEST_PATTERN, Made};
use caretaker::tool_gate::{Answer, Call, NoStages, Posture, Stages, Standing, decide};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Tree, USUAL, session};

const TOP: &str = "/work";

fn matches(tool: &str, pattern: &str, arguments: &Value) -> bool {
    CallPattern::parse(tool, pattern).unwrap().matches(&Made {
        tool,
        arguments,
        worktree: TOP,
        folder: None,
    })
}

fn writes(pattern: &str, file: &str) -> bool {
    matches(
        "Write",
        pattern,
        &json!({"file_path": file, "content": "anything"}),
    )
}

fn runs(pattern: &str, command: &str) -> bool {
    matches(
        "Bash",
        pattern,
        &json!({"command": command, "description": "tests"}),
    )
}

#[test]
fn a_path_is_matched_from_the_worktrees_top() {
    for (pattern, file) in [
        ("src/*.rs", "src/a.rs"),
        ("src/*.rs", "/work/src/a.rs"),
        ("src/**", "src/deep/er/a"),
        ("**/a.rs", "a.rs"),
        ("**/a.rs", "x/y/a.rs"),
        ("src/a*b*c", "src/aXbYc"),
    ] {
        assert!(writes(pattern, file), "{pattern} {file}");
    }
    for (pattern, file) in [
        ("src/*.rs", "src/deep/a.rs"),
        ("src/*.rs", "src/a.rs.bak"),
        ("src/*.rs", "srcx/a.rs"),
        ("src/**", "src/../docs/a"),
        ("src/**", "/elsewhere/src/a"),
        ("src/**", "/workx/src/a"),
        ("src/**", "./src/a"),
        ("**", "src/.git/config"),
        ("**", ".claude/settings.json"),
        ("src/a*b", "src/ab/b"),
    ] {
        assert!(!writes(pattern, file), "{pattern} {file}");
    }
    // Every file that a call names.
    let edit = |second: &str| json!({"edits": [{"file_path": "src/a.rs"}, {"file_path": second}]});
    assert!(matches("MultiEdit", "src/*.rs", &edit("src/b.rs")));
    assert!(!matches("MultiEdit", "src/*.rs", &edit("docs/b.md")));
    // Relative to where the client works.
    let pattern = CallPattern::parse("Write", "src/*.rs").unwrap();
    let arguments = json!({"file_path": "a.rs"});
    let within = |folder| {
        pattern.matches(&Made {
            tool: "Write",
            arguments: &arguments,
            worktree: TOP,
            folder: Some(folder),
        })
    };
    assert!(within("/work/src"));
    assert!(!within("/work") && !within("/work/docs") && !within("/other/src"));
}

#[test]
fn a_pattern_is_for_its_tool_alone() {
    let pattern = CallPattern::parse("Write", "src/**").unwrap();
    let arguments = json!({"file_path": "src/a", "content": ""});
    for (tool, expected) in [
        ("Write", true),
        ("write", false),
        ("Edit", false),
        ("Read", false),
        ("Bash", false),
    ] {
        let made = Made {
            tool,
            arguments: &arguments,
            worktree: TOP,
            folder: None,
        };
        assert_eq!(pattern.matches(&made), expected, "{tool}");
    }
    for tool in ["WebFetch", "mcp__files__write", "unheard_of"] {
        assert!(CallPattern::parse(tool, "**").is_err(), "{tool}");
    }
}

// The line to break is named in `tool_gate::call_pattern`.
#[test]
fn no_pattern_crosses_an_operator_of_a_shell() {
    assert!(runs("cargo test *", "cargo test parser"));
    assert!(runs("cargo test **", "cargo test"));
    assert!(runs("cargo test **", "cargo test a b c"));
    for command in [
        "cargo test a; rm -rf src",
        "cargo test a;rm",
        "cargo test a && b",
        "cargo test a|sh",
        "cargo test a > b",
        "cargo test a>b",
        "cargo test $(x)",
        "cargo test `x`",
        "cargo test $HOME",
        "cargo test a\nrm",
        "cargo test a\trm",
        "cargo test 'a b'",
        "cargo test \"a\"",
        "cargo test a\\ b",
        "cargo test a*",
        "cargo test {a,b}",
        "cargo test ~",
        "cargo test #a",
        "cargo test a &",
        "cargo  test a",
        "cargo test a ",
        "X=1 cargo test a",
        "cargo test ä",
    ] {
        assert!(!runs("cargo test **", command), "{command}");
    }
    // Words that no shell reads are held to the same.
    assert!(matches(
        "run_command",
        "cargo test *",
        &json!({"command": ["cargo", "test", "a"]})
    ));
    assert!(!matches(
        "run_command",
        "cargo test *",
        &json!({"command": ["cargo", "test", "a b"]})
    ));
    // Anything else in the call is not covered.
    for more in [
        "workdir",
        "run_in_background",
        "dangerouslyDisableSandbox",
        "cmd",
    ] {
        let mut arguments = json!({"command": "cargo test a"});
        arguments[more] = json!("x");
        assert!(!matches("Bash", "cargo test *", &arguments), "{more}");
    }
    let pattern = CallPattern::parse("Bash", "cargo test *").unwrap();
    let arguments = json!({"command": "cargo test a"});
    let elsewhere = Made {
        tool: "Bash",
        arguments: &arguments,
        worktree: TOP,
        folder: Some("/work/src"),
    };
    assert!(
        !pattern.matches(&elsewhere),
        "the same words in another folder"
    );
}

// The line to break is named in `tool_gate::call_pattern`.
#[test]
fn a_wildcard_is_no_option_and_no_way_out() {
    for command in [
        "cat -n",
        "cat --output=x",
        "cat ../secret",
        "cat a/../../b",
        "cat /etc/passwd",
        "cat if=/etc/passwd",
        "cat a:../b",
    ] {
        assert!(!runs("cat *", command), "{command}");
        assert!(!runs("cat **", command), "{command}");
        assert!(!runs("cat **", &format!("{command} a")), "{command}");
    }
    assert!(runs("cat -*", "cat -n") && runs("cat ../a", "cat ../a"));
}

// The line to break is named in `tool_gate::call_pattern`.
#[test]
fn a_protected_path_is_no_pattern() {
    for pattern in [
        ".git/**",
        "src/.git/config",
        ".claude/*",
        ".GIT/x",
        "**/.github/hooks/*",
        ".caretaker/x",
    ] {
        let refused = CallPattern::parse("Write", pattern)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("no session may write"),
            "{pattern}: {refused}"
        );
    }
}

#[test]
fn what_could_stand_for_anything_is_refused() {
    let long = "a".repeat(LONGEST_PATTERN + 1);
    for (tool, pattern) in [
        ("Write", ""),
        ("Write", " src/a"),
        ("Write", "/etc/passwd"),
        ("Write", "../a"),
        ("Write", "src//a"),
        ("Write", "src/a**"),
        ("Write", "C:\\a"),
        ("Write", "~/a"),
        ("Write", long.as_str()),
        ("Bash", "*"),
        ("Bash", "** test"),
        ("Bash", "cargo ** test"),
        ("Bash", "cargo test**"),
        ("Bash", "cargo test; *"),
        ("Bash", "cargo test 'a'"),
        ("Bash", "carg* test"),
        ("Bash", "X=1 cargo"),
        ("Bash", "sh -c *"),
        ("Bash", "/usr/bin/env **"),
        ("Bash", "sudo **"),
        ("Bash", "xargs rm"),
    ] {
        assert!(
            CallPattern::parse(tool, pattern).is_err(),
            "{tool} {pattern}"
        );
    }
}

/// A person left this pattern, and is asked about everything else.
struct Left(CallPattern);

impl Stages for Left {
    fn always_allow(&self, call: &Call) -> Option<String> {
        let made = Made {
            tool: &call.tool,
            arguments: &call.arguments,
            worktree: TOP,
            folder: call.folder.as_deref(),
        };
        self.0.matches(&made).then(|| "always-1".to_owned())
    }

    fn interactive(&self) -> bool {
        true
    }
}

fn answer(call: &Call, stages: &dyn Stages) -> (Answer, GateStage) {
    let tree = Tree::new()
        .link("src/out", "/etc")
        .link("src/git", "../.git");
    let gated = session(&USUAL, false);
    let decision = decide(
        call,
        Standing::Gated(&gated),
        Posture::Closed,
        &tree,
        stages,
    );
    (decision.answer, decision.stage)
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("src".to_owned()),
        Just("docs".to_owned()),
        Just(".git".to_owned()),
        Just("out".to_owned()),
        Just("git".to_owned()),
        Just("..".to_owned()),
        Just("*".to_owned()),
        Just("**".to_owned()),
        Just("a.md".to_owned()),
        Just("rm".to_owned()),
        Just("cat".to_owned()),
        Just("tee".to_owned()),
        Just("-rf".to_owned()),
        Just(";".to_owned()),
        Just(">".to_owned()),
        Just("$(x)".to_owned()),
        "[a-c*./]{1,4}",
    ]
}

fn call_and_pattern() -> impl Strategy<Value = (bool, String, String)> {
    let words = || prop::collection::vec(word(), 1..4);
    (any::<bool>(), words(), words(), any::<bool>()).prop_map(|(command, pattern, call, same)| {
        let between = if command { " " } else { "/" };
        let call = if same {
            pattern.join(between).replace('*', "a")
        } else {
            call.join(between)
        };
        (command, pattern.join(between), call)
    })
}

proptest! {
    #[test]
    fn a_pattern_never_allows_what_the_gate_denies((command, pattern, asked) in call_and_pattern()) {
        let (tool, arguments) = if command {
            ("Bash", json!({"command": asked}))
        } else {
            ("Write", json!({"file_path": asked, "content": ""}))
        };
        let Ok(pattern) = CallPattern::parse(tool, &pattern) else { return Ok(()) };
        let call = Call::new(tool, arguments);
        let (without, _) = answer(&call, &NoStages);
        let (with, stage) = answer(&call, &Left(pattern));
        if without == Answer::Deny {
            prop_assert_eq!(with, Answer::Deny);
        }
        if with == Answer::Allow {
            prop_assert_eq!((without, stage), (Answer::Allow, GateStage::AlwaysAllow));
        }
    }

    #[test]
    fn no_pattern_and_no_call_panics(tool in prop_oneof![Just("Bash"), Just("Write")], pattern in ".{0,40}", asked in ".{0,40}") {
        if let Ok(pattern) = CallPattern::parse(tool, &pattern) {
            let arguments = json!({"command": asked, "file_path": asked});
            pattern.matches(&Made { tool, arguments: &arguments, worktree: TOP, folder: None });
        }
    }
}
