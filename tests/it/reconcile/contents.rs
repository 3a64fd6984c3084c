//! Every kind of change lands exactly as it was approved, whatever the interface's list of files makes of it.

use caretaker::approve::MergeMethod;
use caretaker::change::Mode;
use caretaker::forge::FileEdit;

use super::bench::{BRANCH, Bench, file, moded};

const SUBMODULE_BEFORE: &str = "1111111111111111111111111111111111111111";
const SUBMODULE_AFTER: &str = "2222222222222222222222222222222222222222";

/// Modes before and after of every entry, in order.
fn modes(binding: &caretaker::approve::Binding) -> Vec<(Mode, Mode)> {
    let entries = &binding.change.entries;
    entries
        .iter()
        .map(|it| (it.old_mode, it.new_mode))
        .collect()
}

fn paths(binding: &caretaker::approve::Binding) -> Vec<String> {
    let entries = &binding.change.entries;
    entries.iter().map(|it| it.path.clone().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executable_bit_alone_is_a_change() {
    let before = [("deploy.sh", file("true\n")), ("README", file("read me\n"))];
    let bench = Bench::new(&before, &[("deploy.sh", moded(0o100_755, "true\n"))]).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    assert_eq!(modes(&binding), [(Mode::Regular, Mode::Executable)]);
    bench.lands(&binding).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_becomes_a_link_with_the_same_bytes_is_a_change() {
    let before = [("conf", file("README")), ("README", file("read me\n"))];
    let bench = Bench::new(&before, &[("conf", moded(0o120_000, "README"))]).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    assert_eq!(modes(&binding), [(Mode::Regular, Mode::Symlink)]);
    let entry = &binding.change.entries[0];
    assert_eq!(entry.old_oid, entry.new_oid, "only the mode tells");
    bench.lands(&binding).await;
}

/// A base where somebody has done the same meanwhile is not the base that was approved: the mode counts as the content does.
#[tokio::test(flavor = "multi_thread")]
async fn a_mode_that_differs_at_the_base_is_seen_although_the_bytes_agree() {
    let before = [("tool", file("true\n")), ("README", file("read me\n"))];
    let bench = Bench::new(&before, &[("tool", file("false\n"))]).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let edit = [("tool", moded(0o100_755, "true\n"))];
    bench.repository.commit("main", &edit, "chmod").unwrap();
    // Break: compare `here.oid != entry.old.oid` alone in `landing_place` of src/reconcile/compare.rs.
    assert!(
        bench
            .blocked_by(&binding)
            .await
            .contains(&"pre-image".to_owned())
    );
}

/// `ignore = all` keeps a submodule out of `git diff` and of every tool that asks it.
#[tokio::test(flavor = "multi_thread")]
async fn a_submodule_that_its_own_settings_hide_is_in_the_change() {
    let settings =
        "[submodule \"lib\"]\n\tpath = lib\n\turl = https://example.org/lib\n\tignore = all\n";
    let before = [
        (".gitmodules", file(settings)),
        ("lib", moded(0o160_000, SUBMODULE_BEFORE)),
        ("src.txt", file("a\n")),
    ];
    let edits = [
        ("lib", moded(0o160_000, SUBMODULE_AFTER)),
        ("src.txt", file("b\n")),
    ];
    let bench = Bench::new(&before, &edits).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    assert_eq!(paths(&binding), ["lib", "src.txt"]);
    assert_eq!(modes(&binding)[0], (Mode::Gitlink, Mode::Gitlink));
    bench.lands(&binding).await;
}

/// The same pull request shown to a person without the submodule: what they saw is not what is live.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_did_not_show_the_submodule_is_for_another_change() {
    use caretaker::change::{ChangeDocument, ChangeSet, ObjectFormat};
    let before = [
        ("lib", moded(0o160_000, SUBMODULE_BEFORE)),
        ("src.txt", file("a\n")),
    ];
    let edits = [
        ("lib", moded(0o160_000, SUBMODULE_AFTER)),
        ("src.txt", file("b\n")),
    ];
    let bench = Bench::new(&before, &edits).await;
    let mut binding = bench.binding(MergeMethod::Squash).await;
    let whole = ChangeSet::try_from(&binding.change).unwrap();
    let shown = whole.entries()[1..].to_vec();
    binding.change = ChangeDocument::from(&ChangeSet::new(ObjectFormat::Sha1, shown).unwrap());
    // Break: return early from `entries` in src/reconcile/compare.rs.
    let rules = bench.blocked_by(&binding).await;
    assert!(rules.contains(&"change-digest".to_owned()), "{rules:?}");
    assert_eq!(bench.asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_is_one_removal_and_one_addition() {
    let text = "one\ntwo\nthree\nfour\nfive\n";
    let before = [("old/name", file(text)), ("README", file("read me\n"))];
    let edits = [
        ("old/name", FileEdit::Remove),
        ("new/name", file(&format!("{text}six\n"))),
    ];
    let bench = Bench::new(&before, &edits).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    assert_eq!(paths(&binding), ["new/name", "old/name"]);
    let live = bench.live(&binding).await.unwrap();
    assert_eq!(
        live.files.len(),
        1,
        "the interface shows one row: {:?}",
        live.files
    );
    assert_eq!(live.files[0].status, "renamed");
    bench.lands(&binding).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_an_addition() {
    let text = "one\ntwo\nthree\nfour\nfive\n";
    let before = [("original", file(text)), ("README", file("read me\n"))];
    let bench = Bench::new(&before, &[("copy", file(text))]).await;
    let binding = bench.binding(MergeMethod::Merge).await;
    assert_eq!(paths(&binding), ["copy"]);
    let proof = bench.lands(&binding).await;
    assert_eq!(proof.parent, binding.merge_base);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_differ_in_case_alone_are_two_names() {
    let before = [("src/Sum.rs", file("a\n")), ("README", file("read me\n"))];
    let edits = [
        ("src/Sum.rs", FileEdit::Remove),
        ("src/sum.rs", file("a\n")),
    ];
    let bench = Bench::new(&before, &edits).await;
    let binding = bench.binding(MergeMethod::Rebase).await;
    assert_eq!(paths(&binding), ["src/Sum.rs", "src/sum.rs"]);
    // A rebase keeps the branch's own message, so that nothing in it names our attempt; its proposal does.
    let answer = bench.merge(&binding).await;
    assert!(
        matches!(answer, caretaker::execute::MergeAnswer::Merged(_)),
        "{answer:?}"
    );
    let landing = bench.landing(&binding).await;
    assert!(
        matches!(landing, caretaker::reconcile::Landing::Proven(_)),
        "{landing:?}"
    );
}

/// Composed and decomposed: they look alike and are different files.
#[tokio::test(flavor = "multi_thread")]
async fn names_that_look_alike_are_two_names() {
    let (composed, decomposed) = ("caf\u{e9}.txt", "cafe\u{301}.txt");
    let before = [(composed, file("a\n")), ("README", file("read me\n"))];
    let bench = Bench::new(&before, &[(decomposed, file("b\n"))]).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    assert_eq!(paths(&binding), [decomposed]);
    bench.lands(&binding).await;
    let kept = bench.repository.file("main", composed).unwrap();
    assert_eq!(kept.as_deref(), Some(b"a\n".as_slice()));
}

/// What was approved is a commit. The same entries in another commit are somebody else's.
#[tokio::test(flavor = "multi_thread")]
async fn another_commit_with_the_same_content_is_not_the_approved_one() {
    let before = [("a", file("a\n")), ("README", file("read me\n"))];
    let bench = Bench::new(&before, &[("a", file("b\n"))]).await;
    let binding = bench.binding(MergeMethod::Squash).await;
    let main = bench.repository.tip("main").unwrap();
    let twin = bench
        .repository
        .commit_object(&[main], &[("a", file("b\n"))], "The same, by somebody else")
        .unwrap();
    let branch = format!("refs/heads/{BRANCH}");
    bench.repository.force_reference(&branch, &twin).unwrap();
    let rules = bench.blocked_by(&binding).await;
    assert_eq!(rules, ["head-commit", "head-commit-after-list"]);
}
