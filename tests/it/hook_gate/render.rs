//! Each client's configuration of hooks.

use std::path::Path;

use caretaker::hook_gate::{Adapter, Hooks};

use super::Desk;

#[test]
fn every_clients_configuration_is_as_it_reads_it() {
    let hooks = Hooks {
        program: Path::new("/usr/local/bin/caretaker"),
        session: "S1",
        socket: Some(Path::new("/run/caretaker gate/s.sock")),
        home: Some(Path::new("/var/lib/caretaker")),
        ttl: 600,
    };
    let rendered: Vec<String> = Adapter::ALL
        .iter()
        .map(|adapter| format!("== {}\n{}", adapter.name(), hooks.render(*adapter)))
        .collect();
    insta::assert_snapshot!(
        "every_clients_configuration_is_as_it_reads_it",
        rendered.join("\n")
    );
}

#[test]
fn a_client_without_blocking_hooks_gets_nothing_and_is_told_so() {
    let desk = Desk::new();
    for adapter in ["aider", "crush", "command", ""] {
        let ran = desk.run(
            &[
                "hook-gate",
                "render",
                "--adapter",
                adapter,
                "--session",
                "S1",
            ],
            b"",
        );
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
        assert!(ran.stderr.contains("nothing is rendered"), "{}", ran.stderr);
    }
}

#[test]
fn what_is_rendered_names_this_program_by_its_whole_path() {
    let desk = Desk::new();
    let ran = desk.run(
        &[
            "hook-gate",
            "render",
            "--adapter",
            "codex",
            "--session",
            "S1",
        ],
        b"",
    );
    assert!(ran.stdout.contains(super::program()), "{}", ran.stdout);
    assert!(ran.stdout.contains(desk.home().to_str().unwrap()));
    let refused = desk.run(
        &[
            "hook-gate",
            "render",
            "--adapter",
            "codex",
            "--session",
            "a b",
        ],
        b"",
    );
    assert_eq!(refused.code, 1);
}
