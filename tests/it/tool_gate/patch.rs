//! Which files a patch touches.

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::patch::{PatchError, diff_files, envelope_files};
use serde_json::json;

use super::{Tree, USUAL, assert_allowed, assert_denied, bash, call, decided};

const TWO: &str = "*** Begin Patch\n*** Add File: src/new.rs\n+*** Add File: secrets/not-a-header\n*** Update File: src/old.rs\n*** Move to: docs/moved.md\n@@\n-a\n+b\n*** End of File\n*** Delete File: src/gone.rs\n*** End Patch\n";

#[test]
fn an_envelope_gives_every_file_and_both_sides_of_a_move() {
    assert_eq!(
        envelope_files(TWO).unwrap(),
        ["src/new.rs", "src/old.rs", "docs/moved.md", "src/gone.rs"]
    );
}

#[test]
fn a_line_that_does_not_belong_is_refused() {
    for (text, expected) in [
        ("", PatchError::NoEnvelope),
        (
            "*** Begin Patch\n*** Add File: a\n+x",
            PatchError::NoEnvelope,
        ),
        ("*** Begin Patch\n*** End Patch", PatchError::NoFile),
        (
            "*** Begin Patch\n*** Add File: \n*** End Patch",
            PatchError::Line(2),
        ),
        (
            "*** Begin Patch\n*** Environment ID: x\n*** Add File: a\n*** End Patch",
            PatchError::Line(2),
        ),
        (
            "*** Begin Patch\n*** Copy to: x\n*** End Patch",
            PatchError::Line(2),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n*** End Patch\n*** Begin Patch",
            PatchError::Line(4),
        ),
        ("echo hello\n*** Begin Patch", PatchError::NoEnvelope),
    ] {
        assert_eq!(envelope_files(text), Err(expected), "{text}");
    }
    // Codex trims lines before it looks at them.
    let indented = "  *** Begin Patch\n   *** Add File: secrets/x\n+y\n*** End Patch";
    assert_eq!(envelope_files(indented).unwrap(), ["secrets/x"]);
}

#[test]
fn one_file_outside_refuses_the_whole_patch() {
    let tree = Tree::new();
    let patched = |text: &str| call("apply_patch", json!({"command": text}));
    assert_allowed(&decided(&patched(TWO), &USUAL, &tree));
    for (inside, outside) in [
        ("src/new.rs", "secrets/new.rs"),
        ("docs/moved.md", "infra/moved.tf"),
        ("src/gone.rs", "gone.rs"),
    ] {
        let text = TWO.replace(inside, outside);
        assert_denied(
            &decided(&patched(&text), &USUAL, &tree),
            GateStage::PathPolicy,
        );
        // opencode's name for the argument, and a bare string.
        let patch = call("patch", json!({"patchText": text}));
        assert_denied(&decided(&patch, &USUAL, &tree), GateStage::PathPolicy);
        assert_denied(
            &decided(&call("apply_patch", json!(text)), &USUAL, &tree),
            GateStage::PathPolicy,
        );
        // In the shell.
        let shell = bash(&format!("apply_patch <<'EOF'\n{text}EOF"));
        assert_denied(&decided(&shell, &USUAL, &tree), GateStage::Shell);
        let quoted = bash(&format!("cd /work && apply_patch '{text}'"));
        assert_denied(&decided(&quoted, &USUAL, &tree), GateStage::Shell);
    }
    for arguments in [
        json!({}),
        json!({"command": "x"}),
        json!({"command": 7}),
        json!(null),
    ] {
        let decision = decided(&call("apply_patch", arguments), &USUAL, &tree);
        assert_denied(&decision, GateStage::PathPolicy);
    }
}

const DIFF: &str = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,2 @@\n keep\n--- secrets/not-a-header\n+++ secrets/nor-this\n";

#[test]
fn a_diff_gives_every_file_of_its_headers() {
    assert_eq!(
        diff_files(DIFF, 1).unwrap(),
        ["src/a.rs", "src/a.rs", "src/a.rs", "src/a.rs"]
    );
    let renamed = "diff --git a/src/a b/secrets/b\nsimilarity index 100%\nrename from src/a\nrename to secrets/b\n";
    assert!(
        diff_files(renamed, 1)
            .unwrap()
            .contains(&"secrets/b".to_owned())
    );
    for (text, expected) in [
        (
            "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n",
            PatchError::SpecialFile(2),
        ),
        ("--- \"a/\\303\"\n", PatchError::QuotedName(1)),
        ("Index: x\n", PatchError::Line(1)),
        ("1,2c\nfoo\n.\nw secrets\n", PatchError::Line(1)),
        ("", PatchError::NoFile),
        (
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n",
            PatchError::Line(4),
        ),
        ("diff --git a/a b b/a b\n", PatchError::Line(1)),
    ] {
        assert_eq!(diff_files(text, 1), Err(expected), "{text}");
    }
}

#[test]
fn git_apply_and_patch_are_known_when_the_patch_stands_in_the_command() {
    let tree = Tree::new();
    let outside = DIFF.replace("b/src/a.rs", "b/secrets/a.rs");
    for program in ["git apply", "git apply -p1 -", "patch -p1"] {
        assert_allowed(&decided(
            &bash(&format!("{program} <<'EOF'\n{DIFF}EOF")),
            &USUAL,
            &tree,
        ));
        let decision = decided(
            &bash(&format!("{program} <<'EOF'\n{outside}EOF")),
            &USUAL,
            &tree,
        );
        assert_denied(&decision, GateStage::Shell);
    }
    for command in [
        "git apply x.patch",
        "git apply < x.patch",
        "curl x | git apply",
        "patch < x.patch",
        &format!("patch <<'EOF'\n{DIFF}EOF"),
        &format!("patch -p1 -o secrets/x <<'EOF'\n{DIFF}EOF"),
        &format!("git apply --directory=secrets <<'EOF'\n{DIFF}EOF"),
    ] {
        assert_denied(&decided(&bash(command), &USUAL, &tree), GateStage::Shell);
    }
    // From a folder below, git counts from the top all the same.
    let command = format!(
        "cd src && git apply <<'EOF'\n{}EOF",
        DIFF.replace("src/", "")
    );
    assert_denied(&decided(&bash(&command), &USUAL, &tree), GateStage::Shell);
}

#[test]
fn a_line_that_is_two_for_others_is_refused() {
    for line in [
        "+a\u{2028}*** Delete File: secrets/x",
        "+a\r*** Delete File: secrets/x",
        " a\u{85}*** Update File: secrets/x",
        "+a\u{c} *** Add File: secrets/x",
        "+a\u{1c}\u{feff}*** Move to: secrets/x",
        "\u{feff}*** Add File: secrets/x",
        "*** Add File:secrets/x",
        "*** Update file: secrets/x",
        "***  Update File: secrets/x",
        "diff --git a/secrets/x b/secrets/x",
        "plain words",
        "*** Begin Patch",
        "*** End Patch\n*** Begin Patch",
    ] {
        let text = format!("*** Begin Patch\n*** Update File: src/a\n@@\n{line}\n*** End Patch\n");
        let found = envelope_files(&text);
        let names_it = found
            .as_ref()
            .is_ok_and(|files| files.iter().any(|file| file == "secrets/x"));
        assert!(found.is_err() || names_it, "{line:?}: {found:?}");
    }
    let crlf = "*** Begin Patch\r\n*** Update File: src/a\r\n@@\r\n-a\r\n+b\r\n*** Move to: src/b \r\n*** End Patch\r\n";
    assert_eq!(envelope_files(crlf).unwrap(), ["src/a", "src/b"]);
}

/// patch ends the name there, git does not.
#[test]
fn a_name_with_a_blank_is_refused() {
    for name in ["b/docs/a.sh x.md", "b/src/a \u{a0}", "\"b/src/a\""] {
        let text = format!("--- a/src/a\n+++ {name}\n@@ -1 +1 @@\n-a\n+b\n");
        assert!(diff_files(&text, 1).is_err(), "{name}");
    }
    let times = "--- a/src/a\t2026-01-01 00:00:00\n+++ b/src/a\t2026-01-01 00:00:00 +0000\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(diff_files(times, 1).unwrap(), ["src/a", "src/a"]);
}
