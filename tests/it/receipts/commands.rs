//! `caretaker token` and `caretaker receipts` as their users meet them: files, what is printed, exit codes.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use caretaker::receipts::{PemKey, public_pem};
use serde_json::Value;

use super::desk::{NOON, payload};

const CALENDAR: &str = r#"{"statement":"Check today's calendar and report conflicts","tools":["calendar_read"],"constraints":{"allowed_values":{"window":["today"]}}}"#;

/// A folder with an issuer's keys, and a home of its own.
struct Place(tempfile::TempDir);

/// What a command printed, and its exit code.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.keys("issuer", 1);
        place.keys("gate", 2);
        place.keys("stranger", 3);
        place
    }

    fn keys(&self, name: &str, seed: u8) {
        let (key, pem) = PemKey::generate(&mut |buffer: &mut [u8]| {
            buffer.fill(seed);
            Ok(())
        })
        .unwrap();
        self.write(&format!("{name}.pem"), &pem);
        self.write(&format!("{name}.pub"), &public_pem(&key.public()));
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caretaker"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("CARETAKER_HOME", self.path().join("home"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(arguments).output().unwrap();
        Ran {
            code: status.code(),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        }
    }

    /// Mints into a file.
    fn mint(&self, file: &str, tool: &str, more: &[&str]) {
        let now = NOON.to_string();
        let mut arguments = vec![
            "token",
            "mint",
            "--key",
            "issuer.pem",
            "--agent",
            "agent:fixer",
            "--tool",
            tool,
            "--ttl",
            "3600",
            "--now",
            &now,
        ];
        arguments.extend(more);
        let ran = self.run(&arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        self.write(file, &ran.out);
    }

    /// Checks at a minute past noon, into `receipts.jsonl`, signed by the gate's key.
    fn check(&self, token: &str, tool: &str, args: &str, more: &[&str]) -> Ran {
        let now = (NOON + 60).to_string();
        let mut arguments = vec![
            "token",
            "check",
            "--json",
            "--token",
            token,
            "--trusted-key",
            "issuer.pub",
            "--tool",
            tool,
            "--args",
            args,
            "--now",
            &now,
            "--receipt-key",
            "gate.pem",
        ];
        arguments.extend(more);
        self.run(&arguments)
    }
}

#[test]
fn from_minting_to_a_verified_record() {
    let place = Place::new();
    place.mint("token.json", "calendar_read", &["--intent", CALENDAR]);
    let file = ["--receipts", "receipts.jsonl"];
    let good = place.check(
        "token.json",
        "calendar_read",
        r#"{"window":"today"}"#,
        &file,
    );
    assert_eq!(good.code, Some(0), "{}", good.err);
    let said = good.json();
    assert_eq!(
        (said["decision"].as_str(), said["stage"].as_str()),
        (Some("ALLOW"), None)
    );
    let bad = place.check("token.json", "calendar_read", r#"{"window":"5y"}"#, &file);
    assert_eq!(bad.code, Some(1));
    let said = bad.json();
    assert_eq!(said["stage"], "intent");
    assert_eq!(
        payload(said["receipt"].as_str().unwrap())["x_gate"]["decision"],
        "DENY"
    );

    // Root and two decisions; the last line is the receipt that was printed.
    let lines = place.read("receipts.jsonl");
    assert_eq!(lines.lines().count(), 3);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["jws"], &last["receipt_hash"]),
        (&said["receipt"], &said["receipt_hash"])
    );

    let verify = |more: &[&str]| {
        let mut arguments = vec![
            "receipts",
            "verify",
            "receipts.jsonl",
            "--json",
            "--trusted-key",
            "gate.pub",
        ];
        arguments.extend(more);
        place.run(&arguments)
    };
    let verified = verify(&["--token", "token.json"]);
    assert_eq!(verified.code, Some(0), "{}", verified.out);
    assert_eq!(verified.json()["receipts"], 3);
    assert_eq!(verified.json()["head"], said["head"]);

    // A dropped tail shows against count and head.
    let cut: String = lines
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    place.write("receipts.jsonl", &cut);
    assert_eq!(verify(&[]).code, Some(0));
    let head = said["head"]["hash"].as_str().unwrap();
    let found = verify(&["--count", "3", "--head", head]);
    assert_eq!(found.code, Some(1));
    assert_eq!(
        found.json()["failures"][0]["reason"],
        "2 receipts, but 3 were written"
    );
}

#[test]
fn people_read_words() {
    let place = Place::new();
    place.mint("token.json", "calendar_read", &["--intent", CALENDAR]);
    let now = (NOON + 60).to_string();
    let check = |args: &str| {
        let ran = place.run(&[
            "token",
            "check",
            "--token",
            "token.json",
            "--trusted-key",
            "issuer.pub",
            "--tool",
            "calendar_read",
            "--args",
            args,
            "--now",
            &now,
            "--receipt-key",
            "gate.pem",
            "--receipts",
            "r.jsonl",
        ]);
        format!("{:?}\n{}{}", ran.code, ran.out, ran.err)
    };
    let told = [
        check(r#"{"window":"today"}"#),
        check(r#"{"window":"5y"}"#),
        {
            let ran = place.run(&["receipts", "verify", "r.jsonl", "--trusted-key", "gate.pub"]);
            format!("{:?}\n{}", ran.code, ran.out)
        },
        {
            let ran = place.run(&[
                "receipts",
                "verify",
                "r.jsonl",
                "--trusted-key",
                "stranger.pub",
            ]);
            format!("{:?}\n{}", ran.code, ran.out)
        },
        {
            let ran = place.run(&[
                "receipts",
                "verify",
                "none.jsonl",
                "--trusted-key",
                "gate.pub",
            ]);
            format!("{:?}\n{}{}", ran.code, ran.out, ran.err)
        },
    ];
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_refusal_is_said_in_words_and_as_a_document() {
    let place = Place::new();
    place.mint(
        "parent.json",
        "pay",
        &["--constraints", r#"{"max_value":{"amount":10}}"#],
    );
    let now = NOON.to_string();
    let minted = |more: &[&str]| {
        let mut arguments = vec![
            "token",
            "mint",
            "--key",
            "issuer.pem",
            "--tool",
            "pay",
            "--now",
            &now,
        ];
        arguments.extend(more);
        place.run(&arguments)
    };
    let child = |more: &[&str]| {
        let mut arguments = vec![
            "token",
            "attenuate",
            "--key",
            "issuer.pem",
            "--parent",
            "parent.json",
            "--now",
            &now,
        ];
        arguments.extend(more);
        place.run(&arguments)
    };
    let told: Vec<String> = [
        minted(&["--agent", "fixer", "--ttl", "60"]),
        minted(&["--agent", "agent:fixer", "--ttl", "-60"]),
        minted(&[
            "--agent",
            "agent:fixer",
            "--ttl",
            "60",
            "--constraints",
            r#"{"max":1}"#,
        ]),
        minted(&[
            "--agent",
            "agent:fixer",
            "--ttl",
            "60",
            "--intent",
            r#"{"statement":"x","tools":["read"]}"#,
        ]),
        minted(&["--agent", "agent:fixer", "--ttl", "60", "--intent", "{"]),
        minted(&[
            "--agent",
            "agent:fixer",
            "--ttl",
            "60",
            "--key",
            "issuer.pub",
        ]),
        child(&["--constraints", r#"{"max_value":{"amount":99}}"#]),
        child(&["--constraints", r#"{"max_value":{"amount":99}}"#, "--json"]),
        child(&["--tool", "read"]),
        child(&["--ttl", "7200"]),
    ]
    .into_iter()
    .map(|ran| format!("{:?} {}{}", ran.code, ran.out, ran.err))
    .collect();
    insta::assert_snapshot!(told.concat());
    assert_eq!(minted(&["--agent", "agent:fixer"]).code, Some(2));
}

#[test]
fn a_child_needs_its_parent_and_a_revoked_parent_has_no_children() {
    let place = Place::new();
    place.mint("parent.json", "pay", &[]);
    let now = NOON.to_string();
    let child = place.run(&[
        "token",
        "attenuate",
        "--key",
        "issuer.pem",
        "--parent",
        "parent.json",
        "--agent",
        "agent:fixer.a",
        "--ttl",
        "600",
        "--now",
        &now,
    ]);
    assert_eq!(child.code, Some(0), "{}", child.err);
    place.write("child.json", &child.out);
    let alone = place.check("child.json", "pay", "{}", &[]);
    assert_eq!(
        (alone.code, alone.json()["stage"].as_str()),
        (Some(1), Some("chain"))
    );
    let with = |agent: &str| {
        place.check(
            "child.json",
            "pay",
            "{}",
            &["--chain", "parent.json", "--agent", agent],
        )
    };
    assert_eq!(with("agent:fixer.a").code, Some(0));
    assert_eq!(with("agent:fixer").json()["stage"], "agent");

    let revoked = place.run(&["token", "revoke", "--token", "parent.json", "--json"]);
    assert_eq!(
        (revoked.code, &revoked.json()["new"]),
        (Some(0), &Value::Bool(true))
    );
    let again = place.run(&["token", "revoke", "--token", "parent.json", "--json"]);
    assert_eq!(
        (again.code, &again.json()["new"]),
        (Some(0), &Value::Bool(false))
    );
    let denied = with("agent:fixer.a");
    assert_eq!(
        (denied.code, denied.json()["stage"].as_str()),
        (Some(1), Some("revoked"))
    );
    // A list that was damaged, and one that was named and is not there, deny.
    place.write("home/receipts/revoked-tokens", "nonsense\n");
    assert_eq!(with("agent:fixer.a").json()["stage"], "revocation-list");
    let named = place.check("parent.json", "pay", "{}", &["--revocations", "none"]);
    assert_eq!(named.json()["stage"], "revocation-list");
}

#[test]
fn what_cannot_be_recorded_is_not_allowed() {
    let place = Place::new();
    place.mint("token.json", "pay", &[]);
    place.write("foreign.jsonl", "{\"not\":\"ours\"}\n");
    place.write("cut.jsonl", "{\"receipt_hash\":\"sha256:");
    for file in [
        "none/receipts.jsonl",
        "/dev/full",
        "home",
        "foreign.jsonl",
        "cut.jsonl",
    ] {
        std::fs::create_dir_all(place.path().join("home")).unwrap();
        let ran = place.check("token.json", "pay", "{}", &["--receipts", file]);
        let said = ran.json();
        assert_eq!(
            (ran.code, said["decision"].as_str(), said["stage"].as_str()),
            (Some(1), Some("DENY"), Some("receipt")),
            "{file}"
        );
        assert_eq!(said["receipt"], Value::Null);
    }
    let ran = place.check("token.json", "pay", "{}", &["--receipt-key", "none.pem"]);
    assert_eq!(ran.code, Some(2), "the key is named twice");
    // Nothing was written over what is not ours, and a denial stays what it is.
    assert_eq!(place.read("foreign.jsonl"), "{\"not\":\"ours\"}\n");
    let ran = place.check("token.json", "read", "{}", &["--receipts", "cut.jsonl"]);
    assert_eq!(ran.json()["stage"], "tool");
    assert!(ran.err.contains("its last line is cut off"), "{}", ran.err);
}

#[test]
fn another_gates_chain_is_not_gone_on_with() {
    let place = Place::new();
    place.mint("token.json", "pay", &[]);
    let file = ["--receipts", "receipts.jsonl"];
    assert_eq!(place.check("token.json", "pay", "{}", &file).code, Some(0));
    let now = (NOON + 60).to_string();
    let other = place.run(&[
        "token",
        "check",
        "--json",
        "--token",
        "token.json",
        "--trusted-key",
        "issuer.pub",
        "--tool",
        "pay",
        "--args",
        "{}",
        "--now",
        &now,
        "--receipt-key",
        "stranger.pem",
        "--receipts",
        "receipts.jsonl",
    ]);
    assert_eq!(other.json()["stage"], "receipt");
}

#[test]
fn an_installation_makes_its_own_key_and_verifies_with_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.mint("token.json", "pay", &[]);
    let now = (NOON + 60).to_string();
    let ran = place.run(&[
        "token",
        "check",
        "--json",
        "--token",
        "token.json",
        "--trusted-key",
        "issuer.pub",
        "--tool",
        "pay",
        "--args",
        "{}",
        "--now",
        &now,
        "--receipts",
        "receipts.jsonl",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let key = place.path().join("home/receipts/gate.pem");
    assert_eq!(
        std::fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        ran.json()["receipt_key"]["public_key_pem"],
        place.read("home/receipts/gate.pub.pem")
    );
    assert_eq!(
        place.run(&["receipts", "verify", "receipts.jsonl"]).code,
        Some(0)
    );
    // A key that is named is the only one that counts.
    let other = place.run(&[
        "receipts",
        "verify",
        "receipts.jsonl",
        "--trusted-key",
        "issuer.pub",
    ]);
    assert_eq!(other.code, Some(1));
}

#[test]
fn documents_that_cannot_be_read_deny() {
    let place = Place::new();
    place.mint("token.json", "pay", &[]);
    place.write("garbage", "garbage");
    place.write("large", &" ".repeat(100_000));
    for token in ["garbage", "large", "none", "home", "issuer.pub"] {
        let ran = place.check(token, "pay", "{}", &[]);
        let said = ran.json();
        assert_eq!(
            (ran.code, said["decision"].as_str(), said["stage"].as_str()),
            (Some(1), Some("DENY"), Some("token")),
            "{token}"
        );
        // That, too, is recorded.
        assert_eq!(
            payload(said["receipt"].as_str().unwrap())["x_gate"]["stage"],
            "token"
        );
    }
    assert_eq!(
        place.check("token.json", "pay", "{", &[]).json()["stage"],
        "arguments"
    );
    assert_eq!(
        place
            .check("token.json", "pay", r#"{"amount":1.5}"#, &[])
            .json()["stage"],
        "arguments"
    );
    let chain = place.check("token.json", "pay", "{}", &["--chain", "garbage"]);
    assert_eq!(chain.json()["stage"], "chain");
    let key = place.run(&[
        "token",
        "check",
        "--token",
        "token.json",
        "--trusted-key",
        "garbage",
        "--tool",
        "pay",
        "--args",
        "{}",
    ]);
    assert_eq!((key.code, key.out.as_str()), (Some(1), ""));
}

#[test]
fn checks_at_the_same_time_make_one_chain() {
    let place = Place::new();
    place.mint("token.json", "pay", &[]);
    let now = (NOON + 60).to_string();
    let arguments = [
        "token",
        "check",
        "--token",
        "token.json",
        "--trusted-key",
        "issuer.pub",
        "--tool",
        "pay",
        "--args",
        "{}",
        "--now",
        &now,
        "--receipt-key",
        "gate.pem",
        "--receipts",
        "receipts.jsonl",
    ];
    let running: Vec<_> = (0..12)
        .map(|_| {
            place
                .command(&arguments)
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let verified = place.run(&[
        "receipts",
        "verify",
        "receipts.jsonl",
        "--json",
        "--trusted-key",
        "gate.pub",
        "--count",
        "13",
    ]);
    assert_eq!(verified.code, Some(0), "{}", verified.out);
}

#[test]
fn a_line_without_end_takes_no_memory() {
    use std::io::Write as _;
    let place = Place::new();
    let mut file = std::fs::File::create(place.path().join("huge.jsonl")).unwrap();
    let part = vec![b'a'; 1 << 20];
    for _ in 0..300 {
        file.write_all(&part).unwrap();
    }
    file.write_all(b"\n{}\n").unwrap();
    drop(file);
    // With less memory than the line is long.
    let verify = format!(
        "ulimit -v 268435; exec {} receipts verify huge.jsonl --json --trusted-key gate.pub",
        env!("CARGO_BIN_EXE_caretaker")
    );
    let output = Command::new("sh")
        .args(["-c", &verify])
        .current_dir(place.path())
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        said["failures"][0]["reason"],
        "the line has more than 66560 bytes"
    );
    assert_eq!(said["failure_count"], 2);
}
