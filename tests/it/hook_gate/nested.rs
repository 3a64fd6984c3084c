//! Folders that are removed or moved with what lies in them.

use super::Desk;

#[test]
fn a_folder_that_holds_a_repository_stays() {
    let desk = Desk::new();
    for name in [
        "src/sub/.git/hooks",
        "src/sub/deep/.claude",
        "src/plain/deep",
    ] {
        std::fs::create_dir_all(desk.work().join(name)).unwrap();
    }
    for command in [
        "rm -r src/sub",
        "rm -rf src/sub",
        "rm -Rf src",
        "rm --recursive src/sub",
        "mv src/sub src/other",
        "mv src/sub/deep src/deep",
        "chmod -R 777 src/sub",
        "rm -fr -- src/sub",
        "mv -t src/plain src/sub",
        "rm -r src/plain src/sub",
    ] {
        let reason = desk.bash(command).blocked();
        assert!(
            reason.starts_with("protected path refused"),
            "{command}: {reason}"
        );
    }
    desk.bash("rm -r src/plain").allowed();
    desk.bash("mv src/plain src/other").allowed();
    desk.bash("rm -rf src/missing").allowed();
}

#[test]
fn a_folder_with_more_than_is_looked_through_stays() {
    let desk = Desk::new();
    let folder = desk.work().join("src/many");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..20_001 {
        std::fs::write(folder.join(number.to_string()), "").unwrap();
    }
    desk.bash("rm -r src/many").blocked();
}

#[test]
fn hooks_do_not_come_with_a_folder_that_is_renamed() {
    let desk = Desk::with(
        &serde_json::json!({"v": 1, "task_id": "t", "path_allowlist": ["*"], "producers": []}),
        &[],
    );
    desk.bash("mkdir -p src/x/hooks").allowed();
    desk.bash("mv src/x .github").blocked();
    desk.bash("ln -s src/x .github").blocked();
    desk.write(".github/workflows/ci.yml").allowed();
}
