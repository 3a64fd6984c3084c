//! What a gated agent writes, by its client: events, patches, shell commands; and the policy that gates it.

use caretaker::tool_gate::patch::{diff_files, envelope_files};
use caretaker::tool_gate::shell::classify;
use caretaker::tool_gate::{Access, Call, Policy, effects};

use super::{Target, text, words};

pub(super) fn targets() -> Vec<Target> {
    vec![event(), envelope(), diff(), shell(), policy()]
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// What writes names what it writes, or why that cannot be told.
fn event() -> Target {
    let good = bytes(&[
        r#"{"session_id":"s","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"src/a","content":"b"}}"#,
        r#"{"sessionId":"s","cwd":"/w","toolName":"bash","toolArgs":{"command":"echo x > y","mode":"sync"}}"#,
        r#"{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n"}}"#,
        r#"{"tool_name":"MultiEdit","tool_input":"{\"edits\":[{\"file_path\":\"a\"}]}"}"#,
    ]);
    Target::new("hook-event", good, |bytes| {
        let call = Call::read(bytes).map_err(words)?;
        let found = effects(&call, &[]);
        let writes = |touches: &[caretaker::tool_gate::Touch]| {
            touches.iter().any(|touch| touch.access == Access::Write)
        };
        let told = found.unreadable.is_some()
            || !found.shell.unclassified.is_empty()
            || writes(&found.named)
            || writes(&found.shell.touches)
            || found.class != caretaker::tool_gate::ToolClass::Write;
        assert!(told, "a write that names nothing");
        Ok(())
    })
}

fn envelope() -> Target {
    let good = bytes(&[
        "*** Begin Patch\n*** Add File: src/a\n+x\n*** Update File: b\n*** Move to: c\n@@\n-a\n+b\n*** Delete File: d\n*** End Patch\n",
    ]);
    Target::new("patch-envelope", good, |bytes| {
        let given = text(bytes)?;
        let files = envelope_files(given).map_err(words)?;
        let headers = given
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("*** ") && line.contains(": "));
        assert_eq!(files.len(), headers.count(), "a header without its file");
        Ok(())
    })
}

fn diff() -> Target {
    let good = bytes(&[
        "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\nindex 1..2 100644\n--- a/x\n+++ b/y\n@@ -1,2 +1,2 @@ f\n a\n-b\n+c\n",
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n",
    ]);
    Target::new("unified-diff", good, |bytes| {
        let files = diff_files(text(bytes)?, 1).map_err(words)?;
        assert!(!files.is_empty() && files.iter().all(|file| !file.is_empty()));
        Ok(())
    })
}

/// A redirection that stands in the text is found, or the command is refused.
fn shell() -> Target {
    let good = bytes(&[
        "cd src && grep -n x *.rs | head -5; echo done > out.txt",
        "for f in a b; do sed -i 's/a/b/g' x; done",
        "cat <<'EOF' | tee a\n$(x)\nEOF\n",
        "bash -lc \"ls; [ -f a ] && echo $(wc -l < b)\"",
        "git apply - <<'EOF'\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nEOF\n",
        "env LANG=C timeout 5 find . -name '*.rs' | xargs grep -l y",
    ]);
    let mut target = Target::new("shell", good, |bytes| {
        let given = text(bytes)?;
        let found = classify(given, &[], &[]);
        // A command of letters with one plain redirection behind it writes there, whatever it is.
        let marked = format!("{given}\n> fuzz-mark");
        let again = classify(&marked, &[], &[]);
        let seen = again
            .touches
            .iter()
            .any(|touch| touch.path.ends_with("fuzz-mark"));
        assert!(
            seen || !again.unclassified.is_empty(),
            "a redirection was lost"
        );
        match found.unclassified.first() {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        }
    });
    target.longest = 20_000;
    target
}

fn policy() -> Target {
    let good = bytes(&[
        r#"{"path_allowlist":["src/","docs/*.md"],"producers":[{"command":["true"],"kind":"test","name":"tests","required":true}],"task_id":"task-1","v":1}"#,
        r#"{"v":1,"task_id":"t"}"#,
    ]);
    Target::new("gate-policy", good, |bytes| {
        let policy = Policy::parse(bytes).map_err(words)?;
        assert!(!policy.task().is_empty());
        assert!(
            policy
                .producers()
                .iter()
                .all(|producer| !producer.command.is_empty())
        );
        Ok(())
    })
}
