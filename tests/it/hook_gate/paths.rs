//! Where paths are on a real file system.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::Desk;

#[test]
fn links_are_resolved_as_deep_as_they_exist() {
    let desk = Desk::new();
    let work = desk.work();
    std::fs::create_dir(desk.path("elsewhere")).unwrap();
    std::fs::create_dir(work.join("secrets")).unwrap();
    symlink(desk.path("elsewhere"), work.join("src/out")).unwrap();
    symlink("../secrets", work.join("src/in")).unwrap();
    symlink("nowhere/yet", work.join("src/dangling")).unwrap();
    symlink("/etc/caretaker-none", work.join("src/dangling_out")).unwrap();
    symlink("round", work.join("src/round")).unwrap();
    symlink("out", work.join("src/twice")).unwrap();
    for path in [
        "src/out/new/deep/file",
        "src/in/x",
        "src/dangling_out",
        "src/round/x",
        "src/twice/x",
        "src/twice",
    ] {
        desk.write(path).blocked();
        desk.bash(&format!("echo x > {path}")).blocked();
    }
    desk.write("src/dangling").allowed();
    desk.write("src/new/deep/file").allowed();
}

/// A client may take `..` out of a path before it opens it, or leave that to the file system; behind a link these differ.
#[test]
fn dots_behind_a_link_are_ambiguous() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.work().join("src/a/b")).unwrap();
    symlink("src/a/b", desk.work().join("l")).unwrap();
    // By spelling src/x, by the file system src/a/x: both are allowed, and they are two files.
    desk.write("l/../src/x").blocked();
    desk.write("l/../x").blocked();
    desk.write("src/a/../x").allowed();
}

#[test]
fn what_cannot_be_a_path_is_refused() {
    let desk = Desk::new();
    let long = format!("src/{}", "a".repeat(300));
    let deep = format!("src/{}x", "a/".repeat(3000));
    for path in [
        "",
        "~",
        "~/x",
        "src/a\u{0}b",
        "file:///etc/passwd",
        long.as_str(),
        deep.as_str(),
        "/proc/self/root/etc/x",
    ] {
        desk.write(path).blocked();
    }
    let file = desk.work().join("src/file");
    std::fs::write(&file, "x").unwrap();
    // Below a file nothing can be; to say no to it is the file system's business.
    desk.write("src/file/x").allowed();
}

#[test]
fn a_file_with_another_name_elsewhere_is_refused() {
    let desk = Desk::new();
    std::fs::write(desk.path("outside.txt"), "x").unwrap();
    std::fs::hard_link(desk.path("outside.txt"), desk.work().join("src/twin")).unwrap();
    desk.write("src/twin").blocked();
}

#[test]
fn relative_paths_count_from_the_clients_folder() {
    let desk = Desk::new();
    let event = |folder: &std::path::Path, path: &str| {
        json!({"cwd": folder, "tool_name": "write_file", "tool_input": {"file_path": path}})
            .to_string()
    };
    let check = |event: String| desk.check("PreToolUse", event.as_bytes());
    check(event(&desk.work().join("src"), "a")).allowed();
    check(event(&desk.work().join("src"), "../docs/a.md")).allowed();
    check(event(&desk.work().join("src"), "../../x")).blocked();
    check(event(std::path::Path::new("/tmp"), "src/a")).blocked();
    check(event(std::path::Path::new("relative"), "src/a")).blocked();
}

/// The worktree itself may be reached through a link.
#[test]
fn a_worktree_behind_a_link_is_the_same_worktree() {
    let desk = Desk::new();
    symlink(desk.work(), desk.path("alias")).unwrap();
    let path = desk.path("alias/src/a");
    desk.write(path.to_str().unwrap()).allowed();
    let path = desk.path("alias/.git/config");
    desk.write(path.to_str().unwrap()).blocked();
}

/// A client may take them away before it opens the file.
#[test]
fn blanks_around_a_path_hide_nothing() {
    let desk = Desk::with(
        &json!({"v": 1, "task_id": "t", "path_allowlist": ["*"], "producers": []}),
        &[],
    );
    for path in [
        " /etc/caretaker-none",
        " ../x",
        "\t.git/config",
        " .git/config",
        ".git /config",
        "\u{feff}.git/config",
        "\u{a0}/etc/x",
        "src/a ",
        "src/a\n",
        "FILE:///etc/x",
        "/proc/self/cwd/src/a",
    ] {
        desk.write(path).blocked();
    }
    desk.write("src/a b").allowed();
}
