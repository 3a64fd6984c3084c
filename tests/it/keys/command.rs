//! `caretaker keys` and `caretaker doctor` as their users meet them.

use std::process::{Command, Output, Stdio};

use caretaker::attest::TrustRoot;
use caretaker::clock::{Clock as _, SystemClock};
use caretaker::signer::{self, TRUST_ROOT_SECONDS};

use super::{Home, bytes_of, set_mode};

/// Runs the command in this home alone.
pub(super) fn caretaker(home: &Home, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .args(arguments)
        .current_dir(home.folder.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(home.variables.clone())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Exit code, standard output and standard error, without what differs from run to run.
fn shown(home: &Home, arguments: &[&str]) -> String {
    let output = caretaker(home, arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let all = format!(
        "[{}]\n{}{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr)
    );
    let git = regex::Regex::new("git version .*").unwrap();
    git.replace_all(&home.tidy(&all), "git version …")
        .into_owned()
}

fn unconfined() -> Home {
    Home::with(&[("CARETAKER_SANDBOX__MODE", "none")])
}

#[test]
fn init_makes_keys_once_and_list_shows_them() {
    let home = Home::new();
    insta::assert_snapshot!(shown(&home, &["keys", "init"]), @r"
    [0]
    made the keys of org-… in …/home/keys
      proposer  SHA256:…
      policy    SHA256:…
      approver  SHA256:…
      executor  SHA256:…
      log       SHA256:…
      root      SHA256:…
    trust root version 1, sha256:[digest], allows acting until [time]

    No secret is configured for proposer, policy, approver, executor, log, root: what opens each lies beside it in <use>.secret, 32 random bytes.
    Next: back up …/home/keys; then keep root.key and what opens it offline, since signing never needs it. Give auditors what `caretaker keys export-trust-root` writes. `caretaker doctor` says what else is to be done.
    ");
    insta::assert_snapshot!(shown(&home, &["keys", "list"]), @r"
    [0]
    organisation org-…
    trust root version 1, sha256:[digest], allows acting until [time]
    keys in …/home/keys
      proposer  SHA256:…  opened by file:…/home/keys/proposer.secret
      policy    SHA256:…  opened by file:…/home/keys/policy.secret
      approver  SHA256:…  opened by file:…/home/keys/approver.secret
      executor  SHA256:…  opened by file:…/home/keys/executor.secret
      log       SHA256:…  opened by file:…/home/keys/log.secret
      root      SHA256:…  opened by file:…/home/keys/root.secret
    ");
    insta::assert_snapshot!(shown(&home, &["keys", "init"]), @r"
    [1]
    caretaker: making keys: …/home/keys holds keys already (approver.key), and new ones would orphan every ledger that those signed; see them with `caretaker keys list`, or name another folder under keys.dir
    ");
}

#[test]
fn list_needs_no_secret_and_says_what_is_elsewhere_or_damaged() {
    let home = Home::made("list");
    for name in ["proposer.secret", "root.key"] {
        std::fs::remove_file(home.file(name)).unwrap();
    }
    home.put("policy.key", "nothing");
    insta::assert_snapshot!(shown(&home, &["keys", "list"]), @r"
    [0]
    organisation org-…
    trust root version 1, sha256:[digest], allows acting until [time]
    keys in …/home/keys
      proposer  SHA256:…  opened by file:…/home/keys/proposer.secret
      policy    SHA256:…  policy.key is damaged or unreadable; see `caretaker doctor`
      approver  SHA256:…  opened by file:…/home/keys/approver.secret
      executor  SHA256:…  opened by file:…/home/keys/executor.secret
      log       SHA256:…  opened by file:…/home/keys/log.secret
      root      SHA256:…  not in this folder
    ");
    let output = caretaker(&home, &["keys", "list", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let places: Vec<&str> = document["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["file"].as_str().unwrap())
        .collect();
    assert_eq!(
        places,
        ["here", "damaged", "here", "here", "here", "elsewhere"]
    );
}

#[test]
fn init_says_the_same_in_json() {
    let home = Home::new();
    let output = caretaker(&home, &["keys", "init", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let bytes = home.read("trust-root-1.json");
    let trust = TrustRoot::parse_unpinned(&bytes).unwrap();
    assert_eq!(document["organisation"], trust.document().org.as_str());
    assert_eq!(document["trust_root"]["sha256"], trust.digest().to_string());
    assert_eq!(document["keys"].as_array().unwrap().len(), 6);
}

#[test]
fn what_is_exported_is_the_trust_root_byte_for_byte() {
    let home = Home::made("export");
    let bytes = home.read("trust-root-1.json");
    for arguments in [
        &["keys", "export-trust-root"][..],
        &["keys", "export-trust-root", "-o", "-"],
    ] {
        assert_eq!(caretaker(&home, arguments).stdout, bytes);
    }
    let to_file = ["keys", "export-trust-root", "-o", "root.json"];
    for _ in 0..2 {
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&home, &to_file), @r"
    [0]
    wrote root.json: trust root version 1, sha256:[digest], allows acting until [time]
    ");
        }
        let written = home.folder.path().join("root.json");
        assert_eq!(std::fs::read(&written).unwrap(), bytes);
    }
}

#[test]
fn an_export_that_cannot_be_written_fails_with_one_message() {
    let home = Home::made("export");
    assert!(
        shown(&home, &["keys", "export-trust-root", "-o", "no/where"])
            .starts_with("[1]\ncaretaker: writing")
    );
    insta::assert_snapshot!(shown(&home, &["keys", "export-trust-root", "-o", "."]), @r"
    [1]
    caretaker: writing the trust root to .: there is something that is no ordinary file; name another file, or - for standard output
    ");
    insta::assert_snapshot!(shown(&Home::new(), &["keys", "export-trust-root"]), @r"
    [1]
    caretaker: opening the keys: …/home/keys holds no trust root; run `caretaker keys init`, or name the folder that holds the keys under keys.dir
    ");
}

#[test]
fn a_configuration_file_may_be_named_before_or_after_the_command() {
    let home = Home::new();
    let file = home.folder.path().join("other.yaml");
    std::fs::write(&file, "keys: {dir: elsewhere}\n").unwrap();
    let made = caretaker(&home, &["keys", "init", "--config", "other.yaml"]);
    assert_eq!(made.status.code(), Some(0));
    let listed = caretaker(&home, &["--config", "other.yaml", "keys", "list"]);
    assert_eq!(listed.status.code(), Some(0));
    assert!(home.folder.path().join("elsewhere/root.key").exists());
    assert_eq!(caretaker(&home, &["keys", "list"]).status.code(), Some(1));
}

#[test]
fn doctor_fails_without_keys_and_is_content_with_fresh_ones() {
    let home = unconfined();
    insta::assert_snapshot!(shown(&home, &["doctor", "--offline"]), @r"
    [1]
    ok       configuration  no file, everything is at its default
    ok       home           …/home, not there yet
    ok       git            git version …
    warning  sandbox        mode none: tests and coders may do whatever this user can; remove sandbox.mode unless that is meant
    warning  agent          none: incidents are opened and reported, and nothing is fixed; name a coder under agent.adapter
    FAILED   trust root     opening the keys: …/home/keys holds no trust root; run `caretaker keys init`, or name the folder that holds the keys under keys.dir
    warning  database       sqlite://…/home/caretaker.db is not there yet; `caretaker project register` makes it
    1 failed, 3 warnings
    ");
    caretaker(&home, &["keys", "init"]);
    insta::assert_snapshot!(shown(&home, &["doctor", "--offline"]), @r"
    [0]
    ok       configuration  no file, everything is at its default
    ok       home           …/home
    ok       git            git version …
    warning  sandbox        mode none: tests and coders may do whatever this user can; remove sandbox.mode unless that is meant
    warning  agent          none: incidents are opened and reported, and nothing is fixed; name a coder under agent.adapter
    ok       trust root     version 1, allows acting until [time]
    ok       keys           proposer, policy, approver, executor and log open, each with its own secret
    warning  secrets        what opens the keys of proposer, policy, approver, executor, log lies beside them, so whoever reads the folder can sign; keep the secrets elsewhere and name the places under keys.roles
    warning  root key       …/home/keys/root.key lies with the keys that sign every day, which never need it; move it and what opens it offline
    warning  database       sqlite://…/home/caretaker.db is not there yet; `caretaker project register` makes it
    0 failed, 5 warnings
    ");
}

#[test]
fn doctor_names_every_fault_of_the_keys_at_once() {
    let home = unconfined();
    caretaker(&home, &["keys", "init"]);
    std::fs::remove_file(home.file("policy.key")).unwrap();
    home.put("executor.secret", home.read("approver.secret"));
    set_mode(&home.file("proposer.secret"), 0o644);
    set_mode(&home.file("approver.key"), 0o644);
    set_mode(&home.keys(), 0o755);
    insta::assert_snapshot!(shown(&home, &["doctor", "--offline"]), @r"
    [1]
    ok       configuration  no file, everything is at its default
    ok       home           …/home
    ok       git            git version …
    warning  sandbox        mode none: tests and coders may do whatever this user can; remove sandbox.mode unless that is meant
    warning  agent          none: incidents are opened and reported, and nothing is fixed; name a coder under agent.adapter
    ok       trust root     version 1, allows acting until [time]
    FAILED   keys           looking for the secret of the proposer's key: file …/home/keys/proposer.secret may be read by others (mode 0644); run: chmod 600 '…/home/keys/proposer.secret'
    FAILED   keys           opening the policy's key: …/home/keys/policy.key is missing; restore it from a backup (without a backup the key is lost, and a new trust root has to list another)
    FAILED   keys           opening the executor's key: …/home/keys/executor.key: the secret does not open the executor's key SHA256:…: it is not this file's secret, or the file's header was exchanged; each role has a secret of its own
    warning  keys           …/home/keys/approver.key is open to others (mode 0644); run: chmod 600 '…/home/keys/approver.key'
    warning  keys           …/home/keys is open to others (mode 0755); run: chmod 700 '…/home/keys'
    warning  secrets        what opens the keys of proposer, policy, approver, executor, log lies beside them, so whoever reads the folder can sign; keep the secrets elsewhere and name the places under keys.roles
    warning  root key       …/home/keys/root.key lies with the keys that sign every day, which never need it; move it and what opens it offline
    warning  database       sqlite://…/home/caretaker.db is not there yet; `caretaker project register` makes it
    3 failed, 7 warnings
    ");
    let output = caretaker(&home, &["doctor", "--json", "--offline"]);
    assert_eq!(output.status.code(), Some(1));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["ok"], false);
    assert_eq!(document["checks"][0]["check"], "configuration");
}

#[test]
fn doctor_says_how_an_installation_made_before_the_log_gets_its_key() {
    let home = unconfined();
    caretaker(&home, &["keys", "init"]);
    let home = home.without_the_log();
    let text = shown(&home, &["doctor", "--offline"]);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("each with its own") || line.contains("log key"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    ok       keys           proposer, policy, approver and executor open, each with its own secret
    warning  log key        the trust root lists no key of the log, so that nobody can check the log's checkpoints; run `caretaker keys add log`, for which the root key has to be at hand
    ");
}

#[test]
fn doctor_tells_an_expired_trust_root_from_one_that_ends_soon() {
    let lines = [1, -30 * 24 * 60 * 60].map(|since_its_end| {
        let home = unconfined();
        let made = SystemClock
            .now()
            .plus_seconds(-TRUST_ROOT_SECONDS - since_its_end);
        signer::create(
            &home.configuration(),
            &home.environment(),
            None,
            made,
            &mut bytes_of("old"),
        )
        .unwrap();
        let text = shown(&home, &["doctor", "--offline"]);
        let line = text
            .lines()
            .find(|line| line.contains("trust root"))
            .unwrap();
        format!("{} {line}", text.lines().next().unwrap())
    });
    insta::assert_snapshot!(lines.join("\n"), @r"
    [1] FAILED   trust root     trust root version 1 expired at [time]; have the root keys sign a new version before acting
    [0] warning  trust root     version 1 allows acting until [time]; have the root key sign a new version before then
    ");
}

#[test]
fn doctor_goes_on_without_a_configuration_that_can_be_read() {
    let home = Home::with(&[("CARETAKER_CONFIG", "broken.yaml")]);
    std::fs::write(home.folder.path().join("broken.yaml"), "keyz: {}\n").unwrap();
    insta::assert_snapshot!(shown(&home, &["doctor", "--offline"]), @r#"
    [1]
    FAILED   configuration  …/broken.yaml:1:1: unknown key "keyz"; did you mean keys? Known here: database, server, github, poll, health, health_addresses, health_self_check, keys, agent, sandbox, security, approvals, evidence, identity, notify, anchor, telemetry. The sandbox, the keys and the database are looked at once it can be read
    ok       git            git version …
    1 failed, 0 warnings
    "#);
}

#[test]
fn doctor_misses_git_and_the_coders_program() {
    let mut home = unconfined();
    home.variables
        .push(("PATH".to_owned(), "/nowhere".to_owned()));
    let agent = r#"{"adapter": "command", "command": ["coder-of-nobody"]}"#;
    home.variables
        .push(("CARETAKER_AGENT".to_owned(), agent.to_owned()));
    insta::assert_snapshot!(shown(&home, &["doctor", "--offline"]), @r"
    [1]
    ok       configuration  no file, everything is at its default
    ok       home           …/home, not there yet
    FAILED   git            git is not in PATH; install git 2.38 or newer
    warning  sandbox        mode none: tests and coders may do whatever this user can; remove sandbox.mode unless that is meant
    FAILED   agent          the program coder-of-nobody is not in PATH; install it, or name another under agent.command
    FAILED   trust root     opening the keys: …/home/keys holds no trust root; run `caretaker keys init`, or name the folder that holds the keys under keys.dir
    warning  database       sqlite://…/home/caretaker.db is not there yet; `caretaker project register` makes it
    3 failed, 2 warnings
    ");
}

#[test]
fn a_person_rotates_and_revokes_and_is_told_what_to_do_next() {
    let home = Home::new();
    caretaker(&home, &["keys", "init"]);
    insta::assert_snapshot!(shown(&home, &["keys", "rotate", "approver"]), @r"
    [0]
    trust root version 2, sha256:[digest], allows acting until [time]
      approver  SHA256:… is in use now

    Next:
    1. start serve, worker and web again wherever they run with these keys: a running one signs nothing more until then
    2. copy the folder of keys, without the root key, to other machines that share this database
    3. give auditors what `caretaker keys export-trust-root` writes; from the version that they pin they follow to this one
    4. back up the folder of keys
    5. delete older backups of a key that was replaced; <role>.key.previous only signs what was drafted before, and may go after an hour
    ");
    insta::assert_snapshot!(shown(&home, &["keys", "list"]), @r"
    [0]
    organisation org-…
    trust root version 2, sha256:[digest], allows acting until [time]
    keys in …/home/keys
      proposer  SHA256:…  opened by file:…/home/keys/proposer.secret
      policy    SHA256:…  opened by file:…/home/keys/policy.secret
      approver  SHA256:…  not in this folder, counts until [time]
      approver  SHA256:…  opened by file:…/home/keys/approver.secret
      executor  SHA256:…  opened by file:…/home/keys/executor.secret
      log       SHA256:…  opened by file:…/home/keys/log.secret
      root      SHA256:…  opened by file:…/home/keys/root.secret
    ");
    let listed = caretaker(&home, &["keys", "list", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let policy = document["keys"][1]["keyid"].as_str().unwrap();
    insta::assert_snapshot!(shown(&home, &["keys", "revoke", policy]), @r"
    [1]
    caretaker: revoking a key: say why with --reason; auditors read it
    ");
    let revoke = [
        "keys",
        "revoke",
        policy,
        "--reason",
        "laptop lost",
        "--json",
    ];
    let output = caretaker(&home, &revoke);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["revoked"], policy);
    assert_eq!(document["replaced"][0]["use"], "policy");
    assert_eq!(document["trust_root"]["version"], 3);
    let doctor = shown(&home, &["doctor", "--offline"]);
    assert!(
        doctor.contains("ok       keys           proposer, policy"),
        "{doctor}"
    );
}

#[test]
#[allow(clippy::too_many_lines, reason = "two holders, told as one story")]
fn a_trust_root_of_two_root_keys_is_signed_by_both_holders() {
    let mut home = Home::new();
    home.variables
        .push(("ADA_SECRET".to_owned(), "ada's own words".to_owned()));
    let made = caretaker(&home, &["keys", "init", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let organisation = document["organisation"].as_str().unwrap();
    let new_root = [
        "keys",
        "new-root",
        "--organisation",
        organisation,
        "-o",
        "ada.key",
        "--secret",
        "env:ADA_SECRET",
        "--json",
    ];
    let made = caretaker(&home, &new_root);
    let document: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let public = document["public"].as_str().unwrap();
    let propose = [
        "keys",
        "propose",
        "--add-root",
        public,
        "--threshold",
        "2",
        "-o",
        "next.json",
    ];
    insta::assert_snapshot!(shown(&home, &propose), @r"
    [0]
    wrote next.json
    trust root version 2 of org-…, sha256:[digest], follows sha256:[digest]
      issued at [time], allows acting until [time], threshold 2 of 2 root keys
      root      SHA256:…
      root      SHA256:…
      proposer  SHA256:…
      policy    SHA256:…
      approver  SHA256:…
      executor  SHA256:…
      log       SHA256:…

    Next: each of 1 of the present root keys' holders, and of 2 of the new version's, runs `caretaker keys sign next.json --key ROOT.key` after having looked at it; then `caretaker keys accept next.json` here. Until then nothing changes, and new keys wait in <use>.key.next.
    ");
    let ours = ["keys", "sign", "next.json", "--key", "home/keys/root.key"];
    let hers = [
        "keys",
        "sign",
        "next.json",
        "--key",
        "ada.key",
        "--secret",
        "env:ADA_SECRET",
    ];
    let accept = ["keys", "accept", "next.json"];
    caretaker(&home, &ours);
    // The threshold of the version before is met, that of its own is not.
    insta::assert_snapshot!(shown(&home, &accept), @r"
    [1]
    caretaker: accepting next.json as the trust root after version 1: reading a trust root: 1 of the keys allowed to sign this did, 2 are needed
    ");
    insta::assert_snapshot!(shown(&home, &hers), @r"
    [0]
    trust root version 2 of org-…, sha256:[digest], follows sha256:[digest]
      issued at [time], allows acting until [time], threshold 2 of 2 root keys
      root      SHA256:…
      root      SHA256:…
      proposer  SHA256:…
      policy    SHA256:…
      approver  SHA256:…
      executor  SHA256:…
      log       SHA256:…
    SHA256:… signed this; 2 of its own root keys signed it, 2 are needed (and those of the version before)
    Next: hand the file to the next holder, or back for `caretaker keys accept`
    ");
    insta::assert_snapshot!(shown(&home, &accept), @r"
    [0]
    trust root version 2, sha256:[digest], allows acting until [time]

    Next:
    1. start serve, worker and web again wherever they run with these keys: a running one signs nothing more until then
    2. copy the folder of keys, without the root key, to other machines that share this database
    3. give auditors what `caretaker keys export-trust-root` writes; from the version that they pin they follow to this one
    4. back up the folder of keys
    ");
    // From now on nobody changes anything alone.
    insta::assert_snapshot!(shown(&home, &["keys", "rotate", "policy"]), @r"
    [1]
    caretaker: trust root version 2 needs 2 root keys to sign the next one; write it with `caretaker keys propose`, have each holder sign the file with `caretaker keys sign`, then run `caretaker keys accept`
    ");
    let propose = ["keys", "propose", "--rotate", "policy", "-o", "next.json"];
    assert_eq!(caretaker(&home, &propose).status.code(), Some(0));
    caretaker(&home, &ours);
    assert_eq!(caretaker(&home, &accept).status.code(), Some(1));
    caretaker(&home, &hers);
    assert_eq!(caretaker(&home, &accept).status.code(), Some(0));
    let doctor = shown(&home, &["doctor", "--offline"]);
    assert!(
        doctor.contains("ok       keys           proposer, policy"),
        "{doctor}"
    );
    assert!(doctor.contains("version 3"), "{doctor}");
}
