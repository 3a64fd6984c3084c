//! The git executable: what it does for us, and that it gives nothing away.

mod credential;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use caretaker::change::Oid;
use caretaker::workspace::git_command::{
    GitCommand, GitError, Merged, Push, RefName, Refspec, Remote,
};
use proptest::prelude::*;
use tempfile::TempDir;

/// Two bare repositories: one that stands for the remote, one that is ours.
struct Pair {
    directory: TempDir,
}

impl Pair {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pair = Self { directory };
        for repository in [pair.theirs(), pair.ours()] {
            plain_git(
                &repository,
                &["init", "--quiet", "--bare", "--template=", "."],
            );
        }
        pair
    }

    fn theirs(&self) -> PathBuf {
        self.directory.path().join("theirs.git")
    }

    fn ours(&self) -> PathBuf {
        self.directory.path().join("ours.git")
    }

    fn remote(&self) -> Remote {
        Remote::new(&format!("file://{}", self.theirs().display()), None).unwrap()
    }

    fn git(&self) -> GitCommand {
        let git = GitCommand::new(self.ours(), env!("CARGO_BIN_EXE_caretaker")).unwrap();
        git.with_deadline(Duration::from_secs(20))
    }

    async fn push(&self, commit: Option<&str>, expected: Option<&str>) -> Result<(), GitError> {
        let push = Push {
            reference: reference("refs/heads/fix"),
            commit: commit.map(oid),
            expected: expected.map(oid),
        };
        self.git().push(&self.remote(), &push).await
    }

    /// Installs a hook at the remote that refuses with `message`.
    fn refuse_with(&self, message: &str) {
        let hooks = self.theirs().join("hooks");
        std::fs::create_dir_all(&hooks).unwrap();
        hook(
            &hooks.join("update"),
            &format!("echo '{message}' >&2; exit 1"),
        );
    }
}

fn hook(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Git as a test needs it to set things up, away from the developer's own settings.
fn plain_git(repository: &Path, arguments: &[&str]) -> String {
    std::fs::create_dir_all(repository).unwrap();
    let mut git = Command::new("git");
    git.current_dir(repository).args(arguments);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for (name, value) in [("NAME", "A Person"), ("EMAIL", "person@example.org")] {
        git.env(format!("GIT_AUTHOR_{name}"), value)
            .env(format!("GIT_COMMITTER_{name}"), value);
    }
    git.env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000");
    let output = git.output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A commit of `files` (path, content) on top of `parents`.
fn commit(repository: &Path, files: &[(&str, &str)], parents: &[&str]) -> String {
    let index = repository.join("index");
    drop(std::fs::remove_file(&index));
    for (path, content) in files {
        let file = repository.join("content");
        std::fs::write(&file, content).unwrap();
        let blob = plain_git(repository, &["hash-object", "-w", "content"]);
        let entry = format!("100644,{blob},{path}");
        plain_git(
            repository,
            &["update-index", "--add", "--cacheinfo", &entry],
        );
    }
    let tree = plain_git(repository, &["write-tree"]);
    let mut arguments = vec!["commit-tree", "-m", "a change", &tree];
    arguments.extend(parents.iter().flat_map(|parent| ["-p", parent]));
    plain_git(repository, &arguments)
}

fn oid(text: impl AsRef<str>) -> Oid {
    text.as_ref().parse().unwrap()
}

fn reference(name: &str) -> RefName {
    name.parse().unwrap()
}

fn tip(repository: &Path, name: &str) -> Option<String> {
    let listed = plain_git(
        repository,
        &["for-each-ref", "--format=%(objectname)", name],
    );
    (!listed.is_empty()).then_some(listed)
}

#[tokio::test]
async fn refs_and_commits_are_fetched() {
    let pair = Pair::new();
    let first = commit(&pair.theirs(), &[("a", "1\n")], &[]);
    let second = commit(&pair.theirs(), &[("a", "2\n")], &[&first]);
    plain_git(&pair.theirs(), &["update-ref", "refs/heads/main", &second]);
    plain_git(
        &pair.theirs(),
        &["config", "uploadpack.allowAnySHA1InWant", "true"],
    );
    let to = |name: &str| reference(&format!("refs/remote/{name}"));
    let by_ref = Refspec::Ref {
        from: reference("refs/heads/main"),
        to: to("main"),
    };
    let by_id = Refspec::Commit {
        from: oid(&first),
        to: to("first"),
    };
    pair.git()
        .fetch(&pair.remote(), &[by_ref.clone(), by_id])
        .await
        .unwrap();
    assert_eq!(tip(&pair.ours(), "refs/remote/main"), Some(second));
    assert_eq!(tip(&pair.ours(), "refs/remote/first"), Some(first.clone()));
    assert!(!pair.ours().join("FETCH_HEAD").exists());
    // A branch that was rewound is followed.
    plain_git(&pair.theirs(), &["update-ref", "refs/heads/main", &first]);
    pair.git().fetch(&pair.remote(), &[by_ref]).await.unwrap();
    assert_eq!(tip(&pair.ours(), "refs/remote/main"), Some(first));
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let pair = Pair::new();
    let to = || reference("refs/remote/x");
    let absent = Refspec::Ref {
        from: reference("refs/heads/absent"),
        to: to(),
    };
    let failed = pair
        .git()
        .fetch(&pair.remote(), std::slice::from_ref(&absent))
        .await
        .unwrap_err();
    assert!(matches!(failed, GitError::NotThere { .. }), "{failed}");
    let unknown = Refspec::Commit {
        from: oid("1".repeat(40)),
        to: to(),
    };
    let failed = pair
        .git()
        .fetch(&pair.remote(), &[unknown])
        .await
        .unwrap_err();
    assert!(matches!(failed, GitError::NotThere { .. }), "{failed}");
    let nowhere = Remote::new("file:///no/such/repository.git", None).unwrap();
    let failed = pair.git().fetch(&nowhere, &[absent]).await.unwrap_err();
    assert!(
        matches!(failed, GitError::AuthenticationOrAbsent { .. }),
        "{failed}"
    );
}

// Break: the `--force-with-lease` of `Push::lease`.
#[tokio::test]
async fn a_push_happens_only_from_the_expected_state() {
    let pair = Pair::new();
    let first = commit(&pair.ours(), &[("a", "1\n")], &[]);
    let second = commit(&pair.ours(), &[("a", "2\n")], &[]);
    let at = || tip(&pair.theirs(), "refs/heads/fix");
    let stale = |result: Result<(), GitError>| matches!(result, Err(GitError::StaleLease { .. }));

    pair.push(Some(&first), None).await.unwrap();
    assert_eq!(at(), Some(first.clone()));
    pair.push(Some(&first), None)
        .await
        .expect("the answer was lost, the push is repeated");
    assert!(
        stale(pair.push(Some(&second), None).await),
        "it exists by now"
    );
    assert!(
        stale(pair.push(Some(&second), Some(&second)).await),
        "it is somewhere else"
    );
    assert_eq!(at(), Some(first.clone()));
    pair.push(Some(&second), Some(&first))
        .await
        .expect("a lease allows what is not a fast-forward");
    assert_eq!(at(), Some(second.clone()));
    assert!(stale(pair.push(None, Some(&first)).await));
    pair.push(None, Some(&second)).await.unwrap();
    assert_eq!(at(), None);
}

#[tokio::test]
async fn refusals_of_the_remote_are_told_apart() {
    let pair = Pair::new();
    let fix = commit(&pair.ours(), &[("a", "1\n")], &[]);
    pair.refuse_with("GH006: Protected branch update failed");
    let failed = pair.push(Some(&fix), None).await.unwrap_err();
    assert!(
        matches!(&failed, GitError::Refused { said, .. } if said.contains("GH006")),
        "{failed}"
    );
}

/// What GitHub prints, word for word, in the form `git push --porcelain` passes it on: the remote's own reason cannot be
/// produced by a local hook, so a stand-in for git prints it.
#[tokio::test]
async fn a_missing_workflow_permission_is_recognised() {
    let pair = Pair::new();
    let fix = commit(&pair.ours(), &[("a", "1\n")], &[]);
    let bin = tempfile::tempdir().unwrap();
    let line = "!\\t0:refs/heads/fix\\t[remote rejected] (refusing to allow a GitHub App to create or update workflow \
                `.github/workflows/ci.yml` without `workflows` permission)";
    hook(
        &bin.path().join("git"),
        &format!(
            "printf 'To x\\n{}\\nDone\\n'; exit 1",
            line.replace('\'', "")
        ),
    );
    let git = pair.git().with_program(bin.path().join("git"));
    let push = Push {
        reference: reference("refs/heads/fix"),
        commit: Some(oid(&fix)),
        expected: None,
    };
    let failed = git.push(&pair.remote(), &push).await.unwrap_err();
    assert!(
        matches!(failed, GitError::WorkflowPermission { .. }),
        "{failed}"
    );
}

// Break: `core.hooksPath` in `SETTINGS`.
#[tokio::test]
async fn nothing_in_the_repository_is_executed() {
    let pair = Pair::new();
    let first = commit(&pair.theirs(), &[("a", "1\n")], &[]);
    plain_git(&pair.theirs(), &["update-ref", "refs/heads/main", &first]);
    let marker = pair.directory.path().join("executed");
    let hooks = pair.ours().join("hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for name in [
        "reference-transaction",
        "pre-push",
        "post-checkout",
        "pre-auto-gc",
    ] {
        hook(&hooks.join(name), &format!("touch {}", marker.display()));
    }
    let helper = format!("!touch {}", marker.display());
    plain_git(&pair.ours(), &["config", "credential.helper", &helper]);
    plain_git(&pair.ours(), &["config", "core.fsmonitor", &helper[1..]]);
    let refspec = Refspec::Ref {
        from: reference("refs/heads/main"),
        to: reference("refs/remote/main"),
    };
    pair.git().fetch(&pair.remote(), &[refspec]).await.unwrap();
    pair.push(Some(&first), None).await.unwrap();
    assert_eq!(tip(&pair.ours(), "refs/remote/main"), Some(first));
    assert!(!marker.exists());
}

#[tokio::test]
async fn merges_are_made_without_touching_a_ref() {
    let pair = Pair::new();
    let repository = pair.ours();
    let many = "1\n2\n3\n4\n5\n6\n7\n8\n";
    let start = commit(&repository, &[("a", many), ("old/b", many)], &[]);
    let base = commit(&repository, &[("a", many), ("new/b", many)], &[&start]);
    let head = commit(
        &repository,
        &[
            ("a", "0\n2\n3\n4\n5\n6\n7\n8\n"),
            ("old/b", &format!("{many}9\n")),
        ],
        &[&start],
    );
    let Merged::Tree(tree) = pair
        .git()
        .merge_tree(&oid(&base), &oid(&head))
        .await
        .unwrap()
    else {
        panic!("the changes do not touch each other");
    };
    let listed = plain_git(
        &repository,
        &["ls-tree", "-r", "--name-only", &tree.to_string()],
    );
    assert_eq!(listed, "a\nnew/b", "the renamed file is followed");

    let clash = commit(
        &repository,
        &[("a", &many.replace('1', "one")), ("old/b", many)],
        &[&start],
    );
    let conflict = pair
        .git()
        .merge_tree(&oid(&clash), &oid(&head))
        .await
        .unwrap();
    assert_eq!(conflict, Merged::Conflict(vec![b"a".to_vec()]));

    let missing = pair
        .git()
        .merge_tree(&oid("1".repeat(40)), &oid(&head))
        .await
        .unwrap_err();
    assert!(matches!(missing, GitError::Other { .. }), "{missing}");
    assert_eq!(plain_git(&repository, &["for-each-ref"]), "");
}

// Break: the arms of `Remote::new`.
#[test]
fn addresses_that_could_lead_elsewhere_are_refused() {
    for address in [
        "http://github.com/o/n.git",
        "http://127.0.0.1.evil.example/o/n.git",
        "https://x-access-token:secret-word@github.com/o/n.git",
        "https://secret-word@github.com/o/n.git",
        "ssh://git@github.com/o/n.git",
        "git@github.com:o/n.git",
        "git://github.com/o/n.git",
        "ext::sh -c touch% x",
        "file://other.example/repository.git",
        "https://github.com/o/n.git?secret-word",
        "--upload-pack=touch x",
        "/plain/path",
        "",
    ] {
        let refused = Remote::new(address, None).unwrap_err();
        assert!(matches!(refused, GitError::BadAddress { .. }), "{address}");
        assert!(!refused.to_string().contains("secret-word"), "{refused}");
    }
    for address in [
        "https://github.com/o/n.git",
        "http://127.0.0.1:3000/o/n.git",
        "http://localhost/o/n",
        "http://[::1]/n",
    ] {
        Remote::new(address, None).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_ref_name_we_take_is_one_that_git_takes(name in "(refs/|-)?[a-z./@{~^: *\\\\\\-é]{0,12}(\\.lock)?") {
        if let Ok(taken) = name.parse::<RefName>() {
            let checked = Command::new("git").args(["check-ref-format", &taken.to_string()]).status().unwrap();
            prop_assert!(checked.success(), "{}", name);
        }
    }
}
