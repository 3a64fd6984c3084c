//! Ordinary commands of agents, which must go on: a gate that is in the way is taken away.

use caretaker::tool_gate::{NoStages, Posture, Standing, decide};

use super::{Tree, USUAL, assert_allowed, bash, decided, session};

/// What is let through outside of a sandbox as well.
#[rustfmt::skip]
const PLAIN: &[&str] = &[
    "ls", "ls -la src", "pwd", "cat README.md", "head -n 50 src/lib.rs", "tail -n 20 log.txt", "wc -l src/*.rs", "grep -rn 'fn main' src",
    "grep -rn \"/\\*\\*\" src", "rg -n 'TODO|FIXME'", "rg --files -g '*.rs'", "rg -n '^/' src", "find . -name '*.rs' -type f", "find src -type f | head -n 20", "git status", "git status --short",
    "git diff", "git diff --stat HEAD~1", "git log --oneline -n 10", "git show HEAD:src/lib.rs", "git blame src/lib.rs", "git ls-files", "git branch --show-current", "git rev-parse HEAD",
    "git grep -n main", "sed -n '1,50p' src/lib.rs", "sed -i 's/old/new/g' src/lib.rs", "sed -i.bak 's/a/b/' src/a", "mkdir -p src/new/deep", "touch src/new.rs", "rm src/old.rs", "rm -rf src/old",
    "mv src/a.rs src/b.rs", "cp src/a.rs src/b.rs", "chmod +x src/run.sh", "echo hello > src/x", "printf 'a\\nb\\n' >> src/x", "cat > src/x <<'EOF'\nfn main() {}\nEOF", "cat src/a | sort | uniq -c | sort -rn | head",
    "cd src && ls", "for f in src/*.rs; do echo \"$f\"; head -n 3 \"$f\"; done", "if [ -f Cargo.toml ]; then echo yes; fi", "test -d src && echo there", "which cargo", "node --version", "python3 --version", "du -sh src", "tree -L 2",
    "diff src/a src/b", "stat src/a", "file src/a", "sort -u names.txt", "tr a-z A-Z < src/a", "cut -d: -f1 src/a", "xargs -n 1 echo < list", "find . -name '*.rs' | xargs grep -l main", "find . -print0 | xargs -0 wc -l", "ls $HOME", "cat \"$file\"", "date", "sleep 1",
    "bash -lc 'ls src'", "timeout 30 ls", "env LANG=C ls", "LC_ALL=C sort src/a", "jq .name package.json", "basename src/a.rs", "echo $((1 + 2))", "cat src/a 2>/dev/null || true", "tee src/log < src/a", "[ \"$?\" = 0 ] && echo fine",
];

/// What runs programs that nobody can look into, which the sandbox holds.
#[rustfmt::skip]
const SANDBOXED: &[&str] = &[
    "cargo build", "cargo test --workspace", "npm test", "npm run build", "pytest -q", "python3 -c 'print(1)'", "python3 script.py", "node index.js", "make", "make test", "go test ./...", "cargo clippy -- -D warnings", "cargo fmt",
    "./run.sh", "awk '{print $1}' src/a", "perl -ne 'print' src/a", "while IFS= read -r line; do echo \"$line\"; done < src/a", "cd .. && ls", "curl -s http://localhost:8080/health", "case x in x) ls;; esac", "[[ -f x ]] && ls", "tar tf a.tar",
    "PYTHONPATH=src pytest", "export A=b; ls", "f() { ls; }; f", "nohup ls", "for i in {1..3}; do ls; done", "source .venv/bin/activate && pytest", "python3 - <<'EOF'\nprint(1)\nEOF", "x=1; echo $x",
];

#[test]
fn ordinary_commands_go_on_everywhere() {
    for command in PLAIN {
        assert_allowed(&decided(&bash(command), &USUAL, &Tree::new()));
    }
}

#[test]
fn in_the_sandbox_programs_go_on_too() {
    let session = session(&USUAL, true);
    for command in PLAIN.iter().chain(SANDBOXED) {
        let decision = decide(
            &bash(command),
            Standing::Gated(&session),
            Posture::Closed,
            &Tree::new(),
            &NoStages,
        );
        assert_allowed(&decision);
    }
    assert!(PLAIN.len() + SANDBOXED.len() > 60);
}
