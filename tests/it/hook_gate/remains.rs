//! What dead sessions leave: sockets go, but none at which somebody listens, and nothing that is no socket.

use std::os::unix::net::UnixListener;

use caretaker::hook_gate::{Home, SessionId};

use super::Desk;

// The line to break is named in `hook_gate::remains`.
#[test]
fn a_socket_at_which_somebody_listens_stays() {
    let desk = Desk::empty();
    let home = Home::new(&desk.home());
    assert_eq!(home.clear_sockets().unwrap(), 0, "there is no folder yet");
    let folder = desk.home().join("hook-gate");
    std::fs::create_dir(&folder).unwrap();
    let alive = UnixListener::bind(home.socket("alive")).unwrap();
    drop(UnixListener::bind(home.socket("dead")).unwrap());
    drop(UnixListener::bind(folder.join("other.sock")).unwrap());
    std::fs::write(home.socket("file"), "no socket").unwrap();
    std::os::unix::fs::symlink(folder.join("other.sock"), home.socket("link")).unwrap();
    assert_eq!(home.clear_sockets().unwrap(), 1);
    let left = |part: &str| home.socket(part).symlink_metadata().is_ok();
    assert!(left("alive") && left("file") && left("link") && !left("dead"));
    assert!(folder.join("other.sock").exists());
    drop(alive);
    assert_eq!(home.clear_sockets().unwrap(), 1);
}

#[test]
fn a_folder_is_forgotten_without_following_links() {
    let desk = Desk::new();
    let home = Home::new(&desk.home());
    let outside = desk.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "kept").unwrap();
    std::os::unix::fs::symlink(&outside, desk.session_folder().join("link")).unwrap();
    let sessions = home.sessions().unwrap();
    let id = SessionId::parse("S1").unwrap();
    assert_eq!(sessions, std::slice::from_ref(&id));
    home.forget(&id).unwrap();
    assert!(!desk.session_folder().exists());
    assert!(outside.join("kept").exists());
    assert!(home.sessions().unwrap().is_empty());
}
