//! Which paths may be shown to a program at all.

use super::*;

fn refused(result: Result<Outcome, SandboxError>) -> String {
    match result {
        Err(reason @ SandboxError::BadPath { .. }) => reason.to_string(),
        other => panic!("expected a refused path, got {other:?}"),
    }
}

// Break: `TOO_WIDE` in `paths::checked`.
#[tokio::test]
async fn whole_systems_homes_and_relative_paths_are_refused() {
    let home = std::env::var("HOME").unwrap();
    let sandbox = sandbox(Mode::Landlock).await;
    for path in [
        "/",
        "/etc",
        "/home",
        "/root",
        "/tmp",
        "/var",
        "/proc/self",
        "/dev/shm",
        "relative",
        "/usr/../etc",
        &home,
    ] {
        for writable in [true, false] {
            let tree = place();
            let mut command = script("true", tree.path());
            if writable {
                command.writable.push(path.into());
            } else {
                command.readable.push(path.into());
            }
            refused(sandbox.run(&command).await);
        }
    }
}

// Break: the `is_symlink` check of `paths::grants` for the first, `stay_inside` for the second.
#[tokio::test]
async fn a_link_cannot_choose_what_becomes_writable() {
    let (tree, victim, elsewhere) = (place(), place(), place());
    std::fs::create_dir(victim.path().join("deep")).unwrap();
    for link in [tree.path(), elsewhere.path()] {
        std::os::unix::fs::symlink(victim.path(), link.join("link")).unwrap();
    }
    for mode in CONFINED {
        for path in [elsewhere.path().join("link"), tree.path().join("link/deep")] {
            let mut command = script("true", tree.path());
            command.writable.push(path);
            assert!(refused(run(mode, &command).await).contains("symbolic link"));
        }
    }
}

// Break: `launcher.starts_with(&real)` in `paths::grants`.
#[tokio::test]
async fn the_binary_that_confines_cannot_be_made_writable() {
    let tree = place();
    let mut command = script("true", tree.path());
    command.writable.push(
        std::fs::canonicalize(launcher())
            .unwrap()
            .parent()
            .unwrap()
            .to_owned(),
    );
    assert!(refused(run(Mode::Landlock, &command).await).contains("caretaker binary"));
}

#[tokio::test]
async fn the_program_starts_only_where_it_may_be() {
    let (tree, other) = (place(), place());
    let mut command = script("true", tree.path());
    command.directory = other.path().to_owned();
    refused(run(Mode::Bubblewrap, &command).await);
    command.directory = tree.path().join("missing");
    refused(run(Mode::Bubblewrap, &command).await);
}

// Break: `without_credentials` in `paths::grants`.
#[tokio::test]
async fn a_toolchain_is_shown_without_the_credentials_beside_it() {
    let home = place();
    let cargo = home.path().join(".cargo");
    std::fs::create_dir_all(cargo.join("bin")).unwrap();
    std::fs::write(cargo.join("bin/tool"), "tool").unwrap();
    std::fs::write(cargo.join("config.toml"), "config").unwrap();
    std::fs::write(cargo.join("credentials.toml"), "token").unwrap();
    std::os::unix::fs::symlink("credentials.toml", cargo.join("alias")).unwrap();
    for mode in CONFINED {
        let tree = place();
        let text = format!(
            "cd {0} && cat bin/tool config.toml; cat credentials.toml alias; echo x > new",
            cargo.display()
        );
        let mut command = script(&text, tree.path());
        command.readable.push(cargo.clone());
        let outcome = run(mode, &command).await.unwrap();
        assert_eq!(
            outcome.stdout.text(),
            "toolconfig",
            "{mode}: {}",
            outcome.stderr.text()
        );
        assert!(!cargo.join("new").exists());
        command.readable = vec![cargo.join("credentials.toml")];
        assert!(refused(run(mode, &command).await).contains("credentials"));
    }
}

// Break: the sort by depth in `paths::grants`.
#[tokio::test]
async fn a_part_of_the_tree_can_be_read_only_with_bubblewrap() {
    let tree = place();
    std::fs::create_dir(tree.path().join(".git")).unwrap();
    let mut command = script("echo x > a && echo x > .git/config", tree.path());
    command.readable.push(tree.path().join(".git"));
    let outcome = run(Mode::Bubblewrap, &command).await.unwrap();
    assert!(!outcome.status.success());
    assert!(tree.path().join("a").exists() && !tree.path().join(".git/config").exists());
    assert!(refused(run(Mode::Landlock, &command).await).contains("install bubblewrap"));
}

#[tokio::test]
async fn what_is_hidden_seems_empty_and_is_as_it_was_outside() {
    let tree = place();
    let path = |name: &str| tree.path().join(name);
    std::fs::create_dir_all(path(".client/deep")).unwrap();
    std::fs::write(path(".client/deep/settings"), "secret").unwrap();
    std::fs::write(path("client.json"), "secret").unwrap();
    let look = "cat .client/deep/settings client.json; ls -A .client; echo x > .client/new; echo x > client.json; rm client.json; \
                mv .client elsewhere; echo y > beside";
    let mut command = script(look, tree.path());
    command.hidden = vec![path(".client"), path("client.json"), path("absent")];
    let outcome = run(Mode::Bubblewrap, &command).await.unwrap();
    assert_eq!(outcome.stdout.text(), "{}\n", "{outcome:?}");
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(
        (
            read(".client/deep/settings"),
            read("client.json"),
            read("beside")
        ),
        ("secret".to_owned(), "secret".to_owned(), "y\n".to_owned())
    );
    assert!(!path("absent").exists() && !path(".client/new").exists());
    // Landlock alone cannot.
    refused(run(Mode::Landlock, &command).await);
}

#[tokio::test]
async fn what_is_hidden_is_no_link() {
    let tree = place();
    let path = |name: &str| tree.path().join(name);
    std::fs::create_dir_all(path("src/hooks")).unwrap();
    std::os::unix::fs::symlink("src", path(".client")).unwrap();
    std::os::unix::fs::symlink("/usr", path(".usr")).unwrap();
    std::os::unix::fs::symlink("nowhere", path(".dangling")).unwrap();
    for hidden in [
        path(".client"),
        path(".client/hooks"),
        path(".usr"),
        path(".dangling"),
        "/usr/bin".into(),
        tree.path().into(),
    ] {
        let mut command = script("true", tree.path());
        command.hidden = vec![hidden];
        refused(run(Mode::Bubblewrap, &command).await);
    }
}
