//! Clone, fetch and push with a real git client.

use super::bench::{Bench, file, git};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_clones_pushes_and_the_pull_request_follows() {
    let bench = Bench::new().await;
    let cloned = bench.git(".", &["clone", "--quiet", &bench.git_url(), "work"]);
    assert!(cloned.status.success(), "{cloned:?}");
    std::fs::write(bench.folder.path().join("work/src/b.txt"), "better\n").unwrap();
    assert!(
        bench
            .git("work", &["checkout", "--quiet", "-b", "fix/b"])
            .status
            .success()
    );
    assert!(
        bench
            .git("work", &["commit", "--quiet", "-am", "Better"])
            .status
            .success()
    );
    let pushed = bench.git("work", &["push", "--quiet", "origin", "fix/b"]);
    assert!(pushed.status.success(), "{pushed:?}");

    let number = bench.pull("fix/b").await;
    assert!(
        bench
            .git("work", &["commit", "--quiet", "--amend", "-m", "Best"])
            .status
            .success()
    );
    assert!(
        !bench
            .git("work", &["push", "--quiet", "origin", "fix/b"])
            .status
            .success(),
        "not a fast forward"
    );
    assert!(
        bench
            .git("work", &["push", "--quiet", "--force", "origin", "fix/b"])
            .status
            .success()
    );
    let head = String::from_utf8(bench.git("work", &["rev-parse", "HEAD"]).stdout).unwrap();
    let pull = bench.get(&format!("/pulls/{number}")).await;
    assert_eq!(pull.body["head"]["sha"], head.trim());

    // The forge offers pull requests to fetch and takes none by push.
    let fetched = bench.git(
        "work",
        &[
            "fetch",
            "--quiet",
            "origin",
            &format!("refs/pull/{number}/head"),
        ],
    );
    assert!(fetched.status.success(), "{fetched:?}");
    let forged = bench.git(
        "work",
        &["push", "origin", &format!("HEAD:refs/pull/{number}/merge")],
    );
    assert!(!forged.status.success());

    // A bare clone by id alone, as somebody who verifies a merge makes it.
    let bare = bench.folder.path().join("bare");
    assert!(git(&bare, &["init", "--quiet", "--bare"]).status.success());
    assert!(
        git(&bare, &["fetch", "--quiet", &bench.git_url(), head.trim()])
            .status
            .success()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_head_closes_and_merging_by_push_merges() {
    let bench = Bench::new().await;
    bench.branch("one", &[("one.txt", file("1\n"))]);
    let two = bench.branch("two", &[("two.txt", file("2\n"))]);
    let (first, second) = (bench.pull("one").await, bench.pull("two").await);
    bench.git(".", &["clone", "--quiet", &bench.git_url(), "work"]);
    assert!(
        bench
            .git(
                "work",
                &["push", "--quiet", "origin", ":one", "origin/two:main"]
            )
            .status
            .success()
    );
    let first = bench.repository.pull(first).unwrap();
    assert!(!first.open && first.merge_commit.is_none());
    let second = bench.repository.pull(second).unwrap();
    assert_eq!(second.merge_commit, Some(two));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_challenged_and_wrong_tokens_refused() {
    // Break the comparison with `Credentials::Right` in server/backend.rs to see this fail.
    let bench = Bench::new().await;
    let address = format!(
        "{}/info/refs?service=git-upload-pack",
        bench.repository.clone_url()
    );
    let challenged = bench.client.get(&address).send().await.unwrap();
    assert_eq!(challenged.status(), 401);
    assert!(
        challenged.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .starts_with("Basic")
    );
    let wrong = bench
        .client
        .get(&address)
        .basic_auth("x-access-token", Some("wrong"))
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), 401);
    let right = bench
        .client
        .get(&address)
        .basic_auth("x-access-token", Some(bench.forge.token()))
        .send()
        .await
        .unwrap();
    assert_eq!(right.status(), 200);
    let stranger = bench.git(
        ".",
        &["clone", "--quiet", &bench.repository.clone_url(), "stolen"],
    );
    assert!(!stranger.status.success());
    let nowhere = address.replace("widget", "gadget");
    let absent = bench
        .client
        .get(nowhere)
        .basic_auth("x", Some(bench.forge.token()))
        .send()
        .await
        .unwrap();
    assert_eq!(absent.status(), 404);
    assert!(bench.repository.reference_changes().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_repository_takes_no_push_and_a_renamed_one_redirects() {
    let bench = Bench::new().await;
    let old = bench.git_url();
    bench.git(".", &["clone", "--quiet", &old, "work"]);
    bench.repository.rename("gadget").unwrap();
    let through_the_old_name = bench.git(
        "work",
        &["push", "--quiet", "origin", "HEAD:refs/heads/new"],
    );
    assert!(
        through_the_old_name.status.success(),
        "{through_the_old_name:?}"
    );
    bench.repository.set_archived(true).unwrap();
    assert!(
        !bench
            .git(
                "work",
                &["push", "--quiet", &bench.git_url(), "HEAD:refs/heads/newer"]
            )
            .status
            .success()
    );
    assert!(
        bench
            .git("work", &["fetch", "--quiet", &bench.git_url()])
            .status
            .success()
    );
    assert!(bench.repository.tip("newer").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_push_and_clone_stream_through() {
    let bench = Bench::new().await;
    bench.git(".", &["clone", "--quiet", &bench.git_url(), "work"]);
    // Four megabytes that do not compress: git sends them in chunks, without a length.
    let mut seed = 7_u64;
    let noise: Vec<u8> = (0..4_000_000)
        .map(|_| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed.to_be_bytes()[0]
        })
        .collect();
    std::fs::write(bench.folder.path().join("work/noise.bin"), &noise).unwrap();
    bench.git("work", &["add", "noise.bin"]);
    bench.git("work", &["commit", "--quiet", "-m", "Noise"]);
    let pushed = bench.git("work", &["push", "--quiet", "origin", "HEAD:main"]);
    assert!(pushed.status.success(), "{pushed:?}");
    assert_eq!(
        bench.repository.file("main", "noise.bin").unwrap().unwrap(),
        noise
    );
    assert!(
        bench
            .git(".", &["clone", "--quiet", &bench.git_url(), "again"])
            .status
            .success()
    );
    assert_eq!(
        std::fs::read(bench.folder.path().join("again/noise.bin")).unwrap(),
        noise
    );
}
