//! What it costs to ask the forge again and again.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use caretaker::forge::ObjectId;

use super::bench::{Bench, file, forge};
use super::runs::{job, run};

/// Makes everything under a folder look as if nobody had touched it for years.
fn aged(folder: &Path) {
    let then = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            aged(&entry.path());
        } else if entry.file_name() != "config" {
            let opened = std::fs::File::open(entry.path()).unwrap();
            opened.set_modified(then).unwrap();
        }
    }
    let opened = std::fs::File::open(folder).unwrap();
    opened.set_modified(then).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nothing_changes_git_is_not_asked() {
    let bench = Bench::new().await;
    let main = bench.repository.tip("main").unwrap();
    bench
        .repository
        .add_run(run(main, None, Some("failure"), vec![]))
        .unwrap();
    aged(bench.repository.git_directory());
    let first = bench.get("/actions/runs").await;
    assert_eq!(first.status, 200);
    // Without its objects and its configuration this is no repository to git, so whoever asked git would fail.
    let (config, aside) = (
        bench.repository.git_directory().join("config"),
        bench.folder.path().join("aside"),
    );
    std::fs::rename(&config, &aside).unwrap();
    std::fs::rename(
        bench.repository.git_directory().join("objects"),
        bench.folder.path().join("objects"),
    )
    .unwrap();
    let again = bench.get("/actions/runs").await;
    assert_eq!(again.status, 200, "{}", again.body);
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("etag"), first.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_behind_the_forges_back_is_seen() {
    let bench = Bench::new().await;
    let main = bench.repository.tip("main").unwrap();
    let other = bench
        .repository
        .commit_object(std::slice::from_ref(&main), &[("x", file("x"))], "Other")
        .unwrap();
    let directory = bench.repository.git_directory().to_path_buf();
    let tip = || bench.repository.tip("main").unwrap();
    let by_git = |to: &ObjectId| {
        bench.bare(&["update-ref", "refs/heads/main", to.as_str()]);
    };
    let by_file = |to: &ObjectId| {
        std::fs::write(directory.join("refs/heads/main"), format!("{to}\n")).unwrap();
    };
    let packed = |to: &ObjectId| {
        by_git(to);
        bench.bare(&["pack-refs", "--all"]);
    };
    let turns: [(&str, &dyn Fn(&ObjectId)); 3] = [
        ("git", &by_git),
        ("the file", &by_file),
        ("packed references", &packed),
    ];
    for (how, turn) in turns {
        for to in [&other, &main] {
            aged(&directory);
            tip();
            turn(to);
            assert_eq!(tip(), *to, "changed by {how}");
        }
    }
}

/// Asks once over a connection that stays open; the whole answer.
fn ask(stream: &mut TcpStream, path: &str, token: &str, tag: &str) -> Vec<u8> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: forge\r\nuser-agent: load\r\nauthorization: Bearer {token}\r\nif-none-match: {tag}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut part = vec![0; 65_536];
    loop {
        let length = stream.read(&mut part).unwrap();
        assert!(length > 0, "the connection ended");
        answer.extend(&part[..length]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let wanted = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        if head.starts_with("HTTP/1.1 304") || body.len() >= wanted {
            return answer;
        }
    }
}

/// CPU time of this process so far, in milliseconds.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks * 10
}

/// Prints what it costs; with `CARETAKER_FORGE_LOAD=1000` for a thousand repositories.
#[tokio::test(flavor = "multi_thread")]
async fn many_repositories_are_polled_at_little_cost() {
    let count: usize = std::env::var("CARETAKER_FORGE_LOAD")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    let folder = tempfile::tempdir().unwrap();
    let forge = forge(folder.path()).await;
    let started = std::time::Instant::now();
    for index in 0..count {
        let files = [
            ("README.md", file("# widget\n")),
            (".github/workflows/ci.yml", file("on: push\n")),
        ];
        let repository = forge
            .create_repository("acme", &format!("r{index}"), &files)
            .unwrap();
        let jobs = vec![job("test", Some("failure"), Some("log\n"))];
        let tip = repository.tip("main").unwrap();
        for _ in 0..3 {
            repository
                .add_run(run(tip.clone(), None, Some("failure"), jobs.clone()))
                .unwrap();
        }
        aged(&repository.git_directory().join("refs"));
    }
    writeln!(
        std::io::stdout(),
        "{count} repositories with runs made in {:?}",
        started.elapsed()
    )
    .unwrap();
    let (address, token) = (
        forge.url().trim_start_matches("http://").to_owned(),
        forge.token().to_owned(),
    );
    let polling = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut tags = vec![String::new(); count];
        for (round, status) in ["200", "200", "304", "304"].into_iter().enumerate() {
            let (cpu_before, started) = (cpu(), std::time::Instant::now());
            for (index, tag) in tags.iter_mut().enumerate() {
                let path = format!("/repos/acme/r{index}/actions/runs?per_page=100");
                let sent = if status == "304" {
                    tag.as_str()
                } else {
                    "none"
                };
                let answer = ask(&mut stream, &path, &token, sent);
                let text = String::from_utf8_lossy(&answer);
                assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
                let line = text.lines().find_map(|line| line.strip_prefix("etag: "));
                line.unwrap().clone_into(tag);
            }
            writeln!(
                std::io::stdout(),
                "round {round}: {count} answers {status} in {:?}, {} ms of CPU with the client",
                started.elapsed(),
                cpu() - cpu_before
            )
            .unwrap();
        }
    };
    tokio::task::spawn_blocking(polling).await.unwrap();
}
