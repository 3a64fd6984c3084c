//! What a hostile program tries.

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use super::*;

// Break: `Access::Write => AccessFs::from_all` granted to the system paths, or `--ro-bind` into `--bind`.
#[tokio::test]
async fn nothing_outside_the_writable_directories_can_be_changed() {
    let outside = place();
    let canary = outside.path().join("canary");
    for mode in CONFINED {
        std::fs::write(&canary, "untouched").unwrap();
        let canary = canary.display();
        let attempts = [
            format!("echo x > {canary}"),
            format!("echo x >> {canary}"),
            format!("rm {canary}"),
            format!("mv {canary} ./moved"),
            format!("ln {canary} ./linked && echo x > ./linked"),
            format!("perl -e \"truncate(qq({canary}),0) or exit 1\""),
            format!("mkdir {}/new", outside.path().display()),
            "touch /usr/new".to_owned(),
            "touch /etc/new".to_owned(),
            "touch /dev/new".to_owned(),
            "touch /new".to_owned(),
        ];
        all_fail(mode, &attempts).await;
        let left = std::fs::read_to_string(outside.path().join("canary")).unwrap();
        assert_eq!(left, "untouched", "{mode}");
        assert_eq!(
            std::fs::read_dir(outside.path()).unwrap().count(),
            1,
            "{mode}"
        );
    }
}

// Break: the `--remount-ro /proc` of `bubblewrap::arguments` together with its Landlock rule for `/proc`.
#[tokio::test]
async fn the_kernel_cannot_be_configured_even_when_caretaker_is_root() {
    for mode in CONFINED {
        // Opening is enough to show it, and changes nothing where the test fails.
        let files = [
            "kernel/core_pattern",
            "kernel/hostname",
            "vm/overcommit_memory",
            "kernel/modprobe",
        ];
        let attempts: Vec<String> = files
            .iter()
            .map(|file| format!(": >> /proc/sys/{file}"))
            .collect();
        all_fail(mode, &attempts).await;
        all_fail(
            mode,
            &[
                ": >> /proc/sysrq-trigger".to_owned(),
                "mount -t tmpfs none /tmp".to_owned(),
            ],
        )
        .await;
    }
}

// Break: add "/" to `paths::SYSTEM`.
#[tokio::test]
async fn secrets_outside_cannot_be_read() {
    let secret = "canary-5ca1ab1e";
    let elsewhere = place();
    std::fs::write(elsewhere.path().join("token"), secret).unwrap();
    let home = std::env::var("HOME").unwrap();
    let in_home = tempfile::tempdir_in(&home).ok();
    if let Some(directory) = &in_home {
        std::fs::write(directory.path().join("token"), secret).unwrap();
    }
    for mode in CONFINED {
        let places = [Some(elsewhere.path()), in_home.as_ref().map(TempDir::path)];
        let mut attempts: Vec<String> = [
            "/etc/shadow",
            "/etc/sudoers",
            "/proc/1/environ/x",
            "/var/log/dpkg.log",
        ]
        .iter()
        .map(|file| format!("cat {file}"))
        .collect();
        for directory in places.into_iter().flatten() {
            let directory = directory.display();
            attempts.push(format!("cat {directory}/token"));
            attempts.push(format!("ls {directory} | grep token"));
            attempts.push(format!("cat /proc/self/root{directory}/token"));
            attempts.push(format!("cp {directory}/token ."));
        }
        attempts.push(format!("ls {home} | grep ."));
        attempts.push("ls /root | grep .".to_owned());
        all_fail(mode, &attempts).await;
    }
}

// Break: remove `.env_clear()` in `Sandbox::start` and `--clearenv`.
#[tokio::test]
async fn no_environment_but_the_commands_own_is_visible() {
    let secret = "canary-0ddba11";
    let mut other = std::process::Command::new("sleep")
        .arg("600")
        .env("DEPLOY_TOKEN", secret)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    for mode in CONFINED {
        let tree = place();
        let mut command = script(
            "env; cat /proc/[0-9]*/environ /proc/self/environ | tr '\\0' '\\n'",
            tree.path(),
        );
        command.environment = vec![("GREETING".to_owned(), "hello there".to_owned())];
        let seen = run(mode, &command).await.unwrap();
        assert!(!seen.stdout.text().contains(secret), "{mode}");
        let known = [
            "GREETING", "PATH", "HOME", "TMPDIR", "LANG", "PWD", "OLDPWD", "SHLVL", "_",
        ];
        for line in seen.stdout.text().lines() {
            let name = line.split('=').next().unwrap();
            assert!(known.contains(&name), "{mode}: {line}");
        }
        assert!(
            seen.stdout.text().contains("GREETING=hello there\n"),
            "{mode}"
        );
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

// Break: empty the `call::SOCKET` rules in `filter::compile` and take `--unshare-all` away.
#[tokio::test]
async fn there_is_no_network() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let tcp_port = tcp.local_addr().unwrap().port();
    let udp_port = udp.local_addr().unwrap().port();
    let local = place();
    let local = local.path().join("socket");
    let _listener = UnixListener::bind(&local).unwrap();
    let connect = |family: u32| format!("perl -e \"socket(S,{family},1,0) or exit 1\"");
    for mode in CONFINED {
        let mut attempts = vec![
            format!("bash -c \"exec 3<>/dev/tcp/127.0.0.1/{tcp_port}\""),
            format!("bash -c \"exec 3<>/dev/tcp/localhost/{tcp_port}\""),
            format!("bash -c \"echo x > /dev/udp/127.0.0.1/{udp_port}\""),
            format!(
                "perl -MSocket -e \"socket(S,AF_UNIX,1,0) or exit 1; connect(S,sockaddr_un(qq({}))) or exit 1\"",
                local.display()
            ),
        ];
        // inet, inet6, netlink, packet, alg, vsock: each is another way out of a network namespace or into the kernel.
        attempts.extend([2, 10, 16, 17, 38, 40].map(connect));
        if mode == Mode::Landlock {
            attempts.push(connect(1));
        }
        all_fail(mode, &attempts).await;
    }
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram came out");
    tcp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err(), "a connection came out");
}

// Break: give `Sockets::Loopback` the Landlock network rules, or drop `--unshare-all`.
#[tokio::test]
async fn a_private_loopback_reaches_itself_and_nothing_else() {
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let text = format!(
        "perl -MIO::Socket::INET -e '
            $server = IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1)) or die;
            IO::Socket::INET->new(PeerAddr => q(127.0.0.1), PeerPort => $server->sockport) or die;
            print qq(inside\\n);
            IO::Socket::INET->new(PeerAddr => q(127.0.0.1), PeerPort => {port}) or print qq(outside refused\\n);
            socket(S, 40, 1, 0) or print qq(vsock refused\\n)'"
    );
    let tree = place();
    let mut command = script(&text, tree.path());
    command.private_loopback = true;
    let outcome = run(Mode::Bubblewrap, &command).await.unwrap();
    assert_eq!(
        outcome.stdout.text(),
        "inside\noutside refused\nvsock refused\n",
        "{}",
        outcome.stderr.text()
    );
    let outcome = run(Mode::Landlock, &command).await.unwrap();
    assert!(
        !outcome.status.success(),
        "Landlock alone has no loopback of its own to give"
    );
    outside.set_nonblocking(true).unwrap();
    assert!(outside.accept().is_err());
}

// Break: bind "/" read-only, or drop the Landlock restriction.
#[tokio::test]
async fn a_link_in_the_tree_leads_nowhere() {
    let outside = place();
    std::fs::write(outside.path().join("canary"), "secret").unwrap();
    for mode in CONFINED {
        let tree = place();
        std::os::unix::fs::symlink(outside.path(), tree.path().join("way-out")).unwrap();
        let text = "cat way-out/canary; echo x > way-out/canary; echo x > way-out/new; ln -s /etc/shadow s; cat s";
        let outcome = run(mode, &script(text, tree.path())).await.unwrap();
        assert_eq!(outcome.stdout.text(), "", "{mode}");
        assert!(!outcome.status.success());
        assert_eq!(
            std::fs::read_to_string(outside.path().join("canary")).unwrap(),
            "secret",
            "{mode}"
        );
        assert!(!outside.path().join("new").exists(), "{mode}");
    }
}

// Break: remove `call::UNSHARE` from `filter::NEVER` and `--disable-userns`.
#[tokio::test]
async fn no_further_namespaces_and_no_way_around_the_filter() {
    // io_uring_setup, keyctl, bpf, perf_event_open, open_by_handle_at, userfaultfd; then unshare in the x32 table.
    let numbers: [u64; 7] = match std::env::consts::ARCH {
        "x86_64" => [425, 250, 321, 298, 304, 323, 0x4000_0000 + 272],
        _ => [425, 219, 280, 241, 265, 282, 0x4000_0000],
    };
    for mode in CONFINED {
        let mut attempts: Vec<String> = ["-U", "-r", "-n", "-m", "-p --fork"]
            .map(|flags| format!("unshare {flags} true"))
            .to_vec();
        attempts.push("perl -e \"exit(fork() ? 0 : 0)\"; nsenter -t 1 -n true".to_owned());
        attempts.extend(
            numbers.map(|number| format!("perl -e \"exit(syscall({number},0,0,0,0) < 0)\"")),
        );
        all_fail(mode, &attempts).await;
    }
}

// Break: remove `drop_capabilities()` from `confine::restrict`.
#[tokio::test]
async fn there_are_no_privileges_to_use_or_to_gain() {
    for mode in CONFINED {
        let outcome = shell(
            mode,
            "while read -r line; do echo \"$line\"; done < /proc/self/status",
        )
        .await;
        let seen: Vec<String> = outcome
            .stdout
            .text()
            .lines()
            .map(|line| line.replace('\t', " "))
            .collect();
        let none = "0000000000000000";
        let expected = ["CapPrm: ", "CapEff: ", "CapAmb: "].map(|name| format!("{name}{none}"));
        for line in expected
            .iter()
            .map(String::as_str)
            .chain(["NoNewPrivs: 1", "Seccomp: 2"])
        {
            assert!(
                seen.iter().any(|seen| seen == line),
                "{mode}: {line} not in {seen:?}"
            );
        }
    }
}

// Break: the Landlock signal scope and `filter::signal_rules`; or `--unshare-pid` out of `--unshare-all`.
#[tokio::test]
async fn other_processes_cannot_be_seen_into_or_signalled() {
    let mut other = std::process::Command::new("sleep")
        .arg("600")
        .env("MARKER", "of-the-other")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let (pid, own) = (other.id(), std::process::id());
    for mode in CONFINED {
        // A process of the same number may live in the namespace, so the attempts look for what is known outside only.
        let mut attempts = vec![
            "cat /proc/[0-9]*/environ | grep -a of-the-other".to_owned(),
            "cat /proc/[0-9]*/cmdline | tr \"\\0\" \" \" | grep -a \"slee[p] 600\"".to_owned(),
            "cat /proc/[0-9]*/cmdline | grep -a -E \"sandbox-supervis[e]|deps/i[t]\"".to_owned(),
            format!("cat /proc/{own}/maps | grep deps/i[t]"),
        ];
        if mode == Mode::Landlock {
            attempts.extend([pid, own].map(|pid| format!("kill -9 {pid}")));
            // The supervisor is the parent.
            attempts.push("kill -9 $PPID".to_owned());
            // Everything at once; signal 0 only asks, so that a broken sandbox does not end the machine's session.
            attempts.push("perl -e \"kill(0, -1) or exit 1\"".to_owned());
        }
        all_fail(mode, &attempts).await;
        assert!(
            other.try_wait().unwrap().is_none(),
            "{mode}: the other process was killed"
        );
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

// Break: grant `scratch.report()` in `supervise::confinement`.
#[tokio::test]
async fn a_program_cannot_pretend_that_the_sandbox_failed() {
    let text = "echo forged > /run/caretaker/report; for f in /tmp/caretaker-sandbox-*/report; do echo x > $f; done";
    for mode in CONFINED {
        let outcome = shell(mode, &format!("( {text} ) 2>/dev/null; exit 0")).await;
        assert_eq!(outcome.status, Status::Exited(0), "{mode}");
    }
}
