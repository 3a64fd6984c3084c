//! The reader of commands against the shells that run them: every command of a table is run, in a folder of its own, and whatever
//! changed a file outside of the allowlist must have been refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use caretaker::tool_gate::Answer;

use super::{Tree, bash, decided};

/// Commands whose text looks like less than they do, at least in one shell or with one program.
#[rustfmt::skip]
const TABLE: &[&str] = &[
    // Shells that are given a text, and programs that run another one.
    "sh -c 'touch secrets/new'", "bash -lc 'touch secrets/new'", "bash -c -e 'touch secrets/new'", "env touch secrets/new",
    "env -i PATH=\"$PATH\" touch secrets/new", "nohup touch secrets/new", "timeout 5 touch secrets/new",
    "timeout -k 1 5 touch secrets/new", "nice -n 5 touch secrets/new", "eval 'touch secrets/new'", "eval touch secrets/new",
    "exec touch secrets/new", "command touch secrets/new", "builtin eval 'touch secrets/new'", "setsid touch secrets/new",
    "stdbuf -o L touch secrets/new", "echo touch secrets/new | sh", "sh < evil.sh", ". ./evil.sh", "sh ./evil.sh",
    "echo secrets/new | xargs touch", "echo x | xargs -E cat touch secrets/new", "echo x | xargs --delimiter : touch secrets/new",
    "echo x | xargs -rd : touch secrets/new", "echo x | xargs --process-slot-var cat touch secrets/new",
    "echo x | xargs -0E cat touch secrets/new", "cat /dev/null | xargs -a list touch", "xargs --arg-file list touch",
    "echo x | xargs -I{} sh -c 'touch secrets/{}'", "echo x | xargs -IX touch secrets/X", "echo secrets/new | xargs -n 1 sh -c 'touch \"$0\"'",
    "cat evil.sh | sh 3<<'EOF'\nls\nEOF", "cat evil.diff | patch -p1 3<<'EOF'\n--- a/src/a\n+++ b/src/a\n@@ -1 +1 @@\n-a\n+b\nEOF",
    "sh 0<evil.sh <<'EOF' 0<evil.sh\nls\nEOF", "\\touch secrets/new", "'touch' secrets/new", "to\\\nuch secrets/new", "t\"ou\"ch secrets/new",
    // Quotes, escapes, ends of lines.
    "echo \"`: \\\"'\\\"; touch secrets/new; : \\\"'\\\"`\"", "echo $'\\'; touch secrets/new #'", "echo x > secrets/ne\\\nw",
    "for x in secrets/new; do echo > src/../$\\\nx; done", "for x in ../secrets/new; do echo > \"src/$\\\nx\"; done",
    "for x in ../secrets/new; do echo > src/$x\\\n; done", "cat <<EOF\nE\\\nOF\ntouch secrets/new\nEOF",
    "cat <<EOF\na\\\nEOF\ntouch src/x\nEOF\n", "cat <<-EOF\n\tx\n\tEOF\ntouch secrets/new", "cat <<'E F'\nE F\ntouch secrets/new",
    "cat <<EOF\n$(touch secrets/new)\nEOF", "cat <<EOF\n`touch secrets/new`\nEOF", "cat <<\\EOF\n`ls`\nEOF\ntouch secrets/new",
    "cat <<EOF; touch secrets/new\nx\nEOF", "cat <<A <<B\na\nA\nb\nB\ntouch secrets/new", "echo a#b; touch secrets/new", "echo # x\ntouch secrets/new",
    "echo x \\\n# y\ntouch secrets/new", "echo x\r\ntouch secrets/new", "touch $'secrets/new'", "touch $'\\x73ecrets/new'", "touch secrets/{new,old}",
    "touch s?crets/x", "touch s*/new", "echo \"$(touch secrets/new)\"", "echo \"${x:-$(touch secrets/new)}\"", "echo $((x=1)) $(touch secrets/new)",
    ": ${x:=`touch secrets/new`}", "echo \"\\`\"; touch secrets/new; echo \"\\`\"", "echo '`'; touch secrets/new; echo '`'",
    "if true; then touch secrets/new; fi", "while true; do touch secrets/new; break; done", "! touch secrets/new", "{ touch secrets/new; }",
    "(touch secrets/new)", "f() { touch secrets/new; }; f", "case x in x) touch secrets/new;; esac", "true && touch secrets/new", "false || touch secrets/new",
    "true & touch secrets/new", "time touch secrets/new", "true |& touch secrets/new", "ls |\ntouch secrets/new", "trap 'touch secrets/new' EXIT",
    "printf -v x y; touch secrets/new", "touch src/ok; touch secrets/new", "a=secrets/new; touch $a", "alias ls='touch secrets/new'\nls",
    "cd secrets && touch new", "cd src && touch ../secrets/new", "cd src; cd ../secrets; touch new", "CDPATH=secrets cd . ; touch secrets/new",
    "for path in secrets; do touch $path/new; done", "IFS=x; a=touchxsecrets/new; $a", "set -- touch secrets/new; \"$@\"", "let 'x=1'; touch secrets/new",
    // Redirections.
    "echo x > secrets/new", "echo x >> secrets/x", "echo x >| secrets/x", "echo x >secrets/x", "echo x 2>secrets/new", "echo x &> secrets/new",
    "echo x &>> secrets/new", "echo x >& secrets/new", "cat <> secrets/new", "> secrets/new", "exec 3> secrets/new", "exec 3<> secrets/new; echo x >&3",
    "echo x 1>secrets/new", "echo x >'secrets/new'", "{ echo x; } > secrets/new", "echo x > src/../secrets/new", "echo x > ./secrets//new",
    "echo x >! secrets/new", "cd src && echo x >! ../secrets/new", "echo x > \"$PWD\"/secrets/new", "echo x > ~+/secrets/new",
    "echo x | tee secrets/new", "echo x | tee -a secrets/x", "echo x | tee src/ok secrets/new", "echo x > >(tee secrets/new); sleep 0.2",
    "cat <(touch secrets/new)", "x=$(<evil.sh); eval \"$x\"",
    // Variables that change programs.
    "PATH=.:$PATH ls2", "BASH_ENV=./evil.sh bash -c true", "ENV=./evil.sh sh -c true", "GIT_EXTERNAL_DIFF='touch secrets/new' git diff", "export PATH=.:$PATH; ls2",
    "PAGER='touch secrets/new' git -p log", "GIT_PAGER='touch secrets/new' git -p log", "GIT_DIR=.git git config core.pager x", "env PATH=.:$PATH ls2",
    // Programs that write.
    "sed -i s/s/t/ secrets/x", "sed -i.bak s/s/t/ secrets/x", "sed --in-place s/s/t/ secrets/x", "sed -n -i p secrets/x", "sed -ni p secrets/x",
    "sed s/s/t/ secrets/x -i", "sed -n 'w secrets/new' src/a", "sed -n 's/a/b/w secrets/new' src/a", "sed 's/a/touch secrets\\/new/e' src/a",
    "sed '1e touch secrets/new' src/a", "sed -e 's/a/b/' -e 'w secrets/new' src/a", "sed -f evil.sed src/a", "sed --expression='w secrets/new' src/a",
    "sed '/[^]/]/w secrets/new' src/a", "sed 's/[]/]/x/;w secrets/new' src/a", "sed -E -i 's/s/t/' secrets/x", "sed 'y/a/b/;w secrets/new' src/a",
    "sed '1!{w secrets/new\n}' list src/a", "sed -s -i p secrets/x", "sed '$!N;w secrets/new' src/a", "sed '\\,a,w secrets/new' src/a",
    "cp src/a secrets/new", "cp -t secrets src/a", "cp --target-directory=secrets src/a", "cp --target-directory secrets src/a", "mv src/a secrets/new", "mv secrets/x src/x",
    "ln -s ../secrets src/out; touch src/out/new", "ln src/a secrets/new", "ln -sf ../src/a secrets/x", "install src/a secrets/new", "install -d secrets/new", "install -t secrets src/a",
    "dd if=src/a of=secrets/new", "truncate -s 0 secrets/x", "rm secrets/x", "rm -rf secrets", "unlink secrets/x", "rmdir secrets/empty", "mkdir secrets/new", "mkdir -p src/../secrets/new",
    "touch secrets/new", "chmod 600 secrets/x", "sort -o secrets/new src/a", "sort --output=secrets/new src/a", "sort --outp secrets/new src/a", "uniq src/a secrets/new",
    "find . -name x -delete", "find src -exec touch secrets/new ';'", "find src -fprint secrets/new", "find src -fls secrets/new", "find src -execdir touch ../secrets/new ';'", "find . -name x -ok rm {} ';'",
    "awk 'BEGIN{print > \"secrets/new\"}'", "awk 'BEGIN{system(\"touch secrets/new\")}'", "perl -e 'open F,\">secrets/new\"'", "python3 -c 'open(\"secrets/new\",\"w\")'", "make -f evil.mk",
    "tar cf secrets/new src", "tar xf evil.tar", "split -b 1 src/a secrets/new", "csplit -f secrets/new src/a 1", "xxd src/a secrets/new", "tee secrets/new < src/a", "patch -p1 < evil.diff", "patch secrets/x evil.diff",
    "printf 'a\\n' | tee secrets/new", "od src/a > secrets/new", "base64 src/a > secrets/new", "date > secrets/new", "yes | head -n 1 > secrets/new", "shuf -o secrets/new src/a", "pr src/a > secrets/new",
    // git.
    "git -c alias.x='!touch secrets/new' x", "git -c core.pager='touch secrets/new' -p log", "git -c core.fsmonitor='touch secrets/new; false' status", "git config alias.x '!touch secrets/new'; git x",
    "git diff --output=secrets/new", "git diff --outp secrets/new", "git log --output=secrets/new", "git show --output secrets/new", "git apply evil.diff", "git apply < evil.diff", "git checkout -- secrets", "git checkout-index -f secrets/x",
    "git restore secrets/x", "git clean -fdx", "git rm -f secrets/x", "git mv secrets/x src/y", "git stash", "git reset --hard", "git worktree add ../other", "git archive -o secrets/new HEAD", "git bundle create secrets/new HEAD",
    "git format-patch -o secrets/new HEAD --root", "git grep -O'touch secrets/new' a", "git grep --open-files-in-pager='touch secrets/new' a", "git -C src/.. rm -f secrets/x", "git --git-dir=.git --work-tree=. checkout -f -- secrets",
    "git --exec-path=. ls2", "git bisect run touch secrets/new", "git submodule foreach 'touch secrets/new'", "git hash-object -w src/a", "git update-ref refs/heads/x HEAD", "git am < evil.diff", "git init secrets/new", "git read-tree -u --reset HEAD",
    "git fast-export HEAD > secrets/new", "git for-each-ref --format='%(refname)' > secrets/new", "git rebase -x 'touch secrets/new' HEAD", "git commit -qam x", "git tag x", "git branch x", "git notes add -m x", "git filter-branch -f --tree-filter 'touch secrets/new'",
];

/// Everything below a folder, with what it holds.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(place) = waiting.pop() {
        for entry in std::fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            let status = std::fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(folder).unwrap().to_owned();
            let held = if status.is_dir() {
                waiting.push(path);
                "folder".to_owned()
            } else if status.is_symlink() {
                std::fs::read_link(&path).unwrap().display().to_string()
            } else {
                use std::os::unix::fs::PermissionsExt as _;
                format!(
                    "{:o} {:?}",
                    status.permissions().mode(),
                    std::fs::read(&path).ok()
                )
            };
            found.insert(name, held);
        }
    }
    found
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
    drop(quiet(command.args(arguments).current_dir(folder)).status());
}

fn quiet(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
}

/// A worktree with a repository, a folder that may be written, and one that may not.
fn prepared(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for name in ["src", "secrets/empty"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let diff = "--- a/secrets/x\n+++ b/secrets/x\n@@ -1 +1 @@\n-secret\n+changed\n";
    for (name, text) in [
        ("src/a", "a\n"),
        ("secrets/x", "secret\n"),
        ("evil.sh", "touch secrets/new\n"),
        ("evil.sed", "w secrets/new\n"),
        ("evil.mk", "all:\n\ttouch secrets/new\n"),
        ("evil.diff", diff),
        ("list", "secrets/new\n"),
        ("ls2", "#!/bin/sh\ntouch secrets/new\n"),
        ("git-ls2", "#!/bin/sh\ntouch secrets/new\n"),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    for name in ["ls2", "git-ls2"] {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.join(name), mode).unwrap();
    }
    git(folder, &["init", "-q", "--template="]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "a"]);
    std::fs::write(folder.join("src/a"), "changed\n").unwrap();
    std::fs::write(folder.join("secrets/untracked"), "x\n").unwrap();
}

/// What a command changed outside of `src`, run by a shell.
fn changed(shell: &str, command: &str, template: &Path) -> Vec<PathBuf> {
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("work");
    let mut copy = Command::new("cp");
    assert!(
        copy.arg("-a")
            .arg(template)
            .arg(&work)
            .status()
            .unwrap()
            .success()
    );
    let before = snapshot(place.path());
    let mut run = Command::new("timeout");
    run.args(["10", shell, "-c", command]);
    run.current_dir(&work)
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_EDITOR", "true")
        .env("HOME", place.path());
    drop(quiet(&mut run).status());
    let after = snapshot(place.path());
    let names = before.keys().chain(after.keys());
    let differs = |name: &&PathBuf| before.get(*name) != after.get(*name);
    let outside = |name: &&PathBuf| {
        // What git keeps in order by itself while it reads.
        !name.starts_with("work/src") && !name.ends_with(".git/index")
    };
    let mut found: Vec<PathBuf> = names.filter(differs).filter(outside).cloned().collect();
    found.dedup();
    found
}

fn shells() -> Vec<&'static str> {
    let there = |shell: &&str| {
        quiet(Command::new(shell).args(["-c", "true"]))
            .status()
            .is_ok_and(|ended| ended.success())
    };
    ["sh", "bash", "zsh"].into_iter().filter(there).collect()
}

fn is_refused(command: &str) -> bool {
    decided(&bash(command), &["src/"], &Tree::new()).answer == Answer::Deny
}

#[test]
fn what_a_shell_does_outside_was_refused() {
    let shells = shells();
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("template");
    prepared(&template);
    let mut harmful = 0;
    let mut missed = Vec::new();
    for command in TABLE {
        let found: Vec<_> = shells
            .iter()
            .map(|shell| (shell, changed(shell, command, &template)))
            .collect();
        let harms = found.iter().any(|(_, files)| !files.is_empty());
        harmful += usize::from(harms);
        if harms && !is_refused(command) {
            missed.push(format!("{command:?} changed {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    // The table shows something only where shells and programs are there.
    assert!(
        harmful > TABLE.len() / 3,
        "only {harmful} of {} did any harm here",
        TABLE.len()
    );
}

/// Commands that no shell of this machine takes for what they are elsewhere.
#[test]
fn what_other_systems_do_with_a_command_is_refused_too() {
    for command in [
        "cd src && echo x >! ../.git/hooks/pre-commit",
        "base64 -i src/a -o secrets/new",
        "arch -arm64 touch secrets/new",
        "for path in src; do ls; done",
        "read path < src/a; ls",
        "[ 'a[`touch secrets/new`]' -eq 0 ]",
        "[ 'PATH=1' -eq 0 ]",
        "ls\u{0} -la",
        "xargs -J % touch % secrets/new",
    ] {
        assert!(is_refused(command), "{command:?}");
    }
}
