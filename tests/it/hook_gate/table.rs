//! The neighbour's own table once more, through processes and a real file system.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Desk, policy};

#[test]
fn every_row_of_the_measured_table_has_its_answer() {
    let desk = Desk::new();
    std::fs::create_dir(desk.path("elsewhere")).unwrap();
    symlink(desk.path("elsewhere"), desk.work().join("src/link_out")).unwrap();
    symlink("../docs", desk.work().join("src/link_in")).unwrap();
    let absolute = desk.work().join("src/a.txt");
    for path in [
        "src/a.txt",
        absolute.to_str().unwrap(),
        "secrets/../src/x",
        "src/link_in/x.md",
        "docs/a/b.md",
        "src",
    ] {
        desk.write(path).allowed();
    }
    for path in [
        "secrets/x",
        "src/../secrets/x",
        "src/link_out/x",
        "src/link_in/x.txt",
        "srcx/a",
    ] {
        assert_eq!(
            desk.write(path).blocked(),
            format!("out-of-scope write refused: {path} not under allowlist ['docs/*.md', 'src/']")
        );
    }
    let notebook = |input| desk.before("NotebookEdit", &input);
    notebook(json!({"notebook_path": "secrets/n"})).blocked();
    notebook(json!({"file_path": "src/ok", "notebook_path": "secrets/n"})).blocked();
    desk.before("write", &json!({"filePath": "secrets/x"}))
        .blocked();
    // No path key, and a shell that writes: the neighbour lets both through.
    desk.before("Write", &json!({})).blocked();
    desk.bash("echo x > secrets/a").blocked();
    desk.bash("rm -rf secrets").blocked();
    desk.before("Read", &json!({"file_path": "/etc/passwd"}))
        .allowed();
    desk.stop().allowed();
}

#[test]
fn an_allowlist_of_everything_opens_neither_git_nor_the_gate() {
    let mut policy = policy();
    policy["path_allowlist"] = json!(["*"]);
    let desk = Desk::with(&policy, &[]);
    desk.write("anything/x").allowed();
    desk.write(".git/config").blocked();
    desk.write(".claude/settings.json").blocked();
    let own = desk.session_folder().join("policy.json");
    let own = own.to_str().unwrap();
    assert!(desk.write(own).blocked().contains("protected path refused"));
    desk.before("Read", &json!({"file_path": own})).blocked();
    desk.bash(&format!("cat {own}")).blocked();
}

#[test]
fn a_policy_that_enforces_nothing_lets_both_hooks_pass() {
    let desk = Desk::with(
        &json!({"v": 1, "task_id": "t", "path_allowlist": [], "producers": []}),
        &[],
    );
    desk.write("/etc/passwd").allowed();
    desk.stop().allowed();
}
