//! The configuration: what is read, what is refused, and how the refusal reads.

mod alignment;
mod money;
mod rules_file;
mod secrets;

use std::path::{Path, PathBuf};

use caretaker::attest::KeyUse;
use caretaker::clock::Millis;
use caretaker::config::{
    Adapter, Configuration, Environment, Notifier, PollSchedule, SandboxMode, SecretSource,
};

/// A folder of its own, with a home beside the configuration.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        file
    }

    fn environment(&self, more: &[(&str, &str)]) -> Environment {
        let home = self.home().display().to_string();
        let all = std::iter::once(("CARETAKER_HOME", home.as_str())).chain(more.iter().copied());
        Environment::new(all, self.path())
    }

    fn load_with(
        &self,
        content: impl AsRef<[u8]>,
        variables: &[(&str, &str)],
    ) -> Result<Configuration, String> {
        let file = self.write("caretaker.yaml", content);
        Configuration::load(Some(&file), &self.environment(variables))
            .map_err(|error| self.shown(&error))
    }

    fn load(&self, content: impl AsRef<[u8]>) -> Result<Configuration, String> {
        self.load_with(content, &[])
    }

    /// A message without the name of the temporary folder.
    fn shown(&self, error: &dyn std::fmt::Display) -> String {
        error
            .to_string()
            .replace(&format!("{}/", self.path().display()), "")
    }
}

/// The message with which some content is refused.
fn refusal(content: impl AsRef<[u8]>) -> String {
    Place::new().load(content).unwrap_err()
}

fn refusals(contents: &[&str]) -> String {
    contents.iter().map(refusal).collect::<Vec<_>>().join("\n")
}

const SMALLEST: &str = r#"
database: {url: "sqlite://state/caretaker.db"}
server: {listen: "127.0.0.1:8080", public_url: "http://127.0.0.1:8080"}
github: {api_url: "http://127.0.0.1:4000", web_url: "http://127.0.0.1:4000", git_url: "http://127.0.0.1:4000"}
poll: {schedule: "*/2 * * * * *"}                      # cron with seconds
keys: {dir: "state/keys", roles: {proposer: {secret: "env:CARETAKER_PROPOSER_SECRET"}, policy: {secret: "file:/run/policy"}, log: {secret: "file:log.secret"}}}
agent: {adapter: command, command: [python3, coder.py]}
sandbox: {mode: none}
approvals: {link_ttl_seconds: 86400}
notify: [{kind: webhook, url: "http://127.0.0.1:4100/hook?key=s3cret"}]
identity: {require: link}
"#;

#[test]
fn the_smallest_configuration_is_read_and_its_paths_resolve_against_its_folder() {
    let place = Place::new();
    let coder = place.write("coder.py", "");
    let configuration = place.load(SMALLEST).unwrap();
    let folder = place.path().display();
    assert_eq!(
        configuration.database.secret(),
        format!("sqlite://{folder}/state/caretaker.db")
    );
    assert_eq!(configuration.keys.dir, place.path().join("state/keys"));
    let secret = |key| configuration.keys.secret(key);
    assert_eq!(
        secret(KeyUse::Proposer).source,
        SecretSource::Environment("CARETAKER_PROPOSER_SECRET".to_owned())
    );
    assert_eq!(
        secret(KeyUse::Log).source,
        SecretSource::File(place.path().join("log.secret"))
    );
    assert!(secret(KeyUse::Executor).generated);
    assert_eq!(
        secret(KeyUse::Executor).source,
        SecretSource::File(place.path().join("state/keys/executor.secret"))
    );
    assert_eq!(configuration.agent.adapter, Some(Adapter::Command));
    assert_eq!(
        configuration.agent.command,
        ["python3".to_owned(), coder.display().to_string()]
    );
    assert_eq!(configuration.agent.files, [coder]);
    assert_eq!(configuration.sandbox.mode, SandboxMode::None);
    assert_eq!(
        configuration.github.api_url.as_str(),
        "http://127.0.0.1:4000"
    );
    let Notifier::Webhook { url } = &configuration.notify[0];
    assert_eq!(
        url.secret().as_str(),
        "http://127.0.0.1:4100/hook?key=s3cret"
    );
    assert!(!format!("{configuration:?}").contains("s3cret"));
}

#[test]
fn json_is_yaml_too() {
    let json =
        serde_json::json!({"server": {"listen": "localhost:9000"}, "notify": []}).to_string();
    assert_eq!(
        Place::new().load(json).unwrap().server.listen.to_string(),
        "127.0.0.1:9000"
    );
}

#[test]
fn without_a_file_everything_lies_in_the_home() {
    let place = Place::new();
    let configuration = Configuration::load(None, &place.environment(&[])).unwrap();
    assert_eq!(configuration.file, None);
    assert_eq!(
        configuration.database.secret(),
        format!("sqlite://{}/caretaker.db", place.home().display())
    );
    assert_eq!(configuration.keys.dir, place.home().join("keys"));
    assert_eq!(configuration.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(
        configuration.github.api_url.as_str(),
        "https://api.github.com"
    );
    assert_eq!(configuration.approvals.link_ttl_seconds, 86_400);
    assert_eq!(configuration.poll.schedule, None);
    assert_eq!(
        (
            configuration.poll.quiet_seconds,
            configuration.poll.busy_seconds,
            configuration.poll.requests_per_hour
        ),
        (60, 20, 120)
    );
    assert_eq!(configuration.agent.adapter, None);
}

#[test]
fn the_home_is_the_xdg_state_folder_unless_named() {
    let home = |variables: &[(&str, &str)]| {
        Environment::new(variables.iter().copied(), Path::new("/srv"))
            .home()
            .map_err(|error| error.to_string())
    };
    assert_eq!(
        home(&[("HOME", "/home/a")]).unwrap(),
        Path::new("/home/a/.local/state/caretaker")
    );
    assert_eq!(
        home(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "/s")]).unwrap(),
        Path::new("/s/caretaker")
    );
    assert_eq!(
        home(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "relative")]).unwrap(),
        Path::new("/home/a/.local/state/caretaker")
    );
    assert_eq!(
        home(&[("CARETAKER_HOME", "here")]).unwrap(),
        Path::new("/srv/here")
    );
    assert!(home(&[]).unwrap_err().contains("set CARETAKER_HOME"));
}

#[test]
fn the_file_is_the_named_one_then_the_variables_then_the_one_at_home() {
    let place = Place::new();
    place.write("home/caretaker.yaml", "approvals: {link_ttl_seconds: 1}");
    place.write("caretaker.yaml", "approvals: {link_ttl_seconds: 99}");
    let two = place.write("two.yaml", "approvals: {link_ttl_seconds: 2}");
    let three = place.write("three.yaml", "approvals: {link_ttl_seconds: 3}");
    let variable = [("CARETAKER_CONFIG", two.to_str().unwrap())];
    let ttl = |given: Option<&Path>, variables: &[(&str, &str)]| {
        Configuration::load(given, &place.environment(variables))
            .unwrap()
            .approvals
            .link_ttl_seconds
    };
    // Break it: look into the current folder too; a checkout could then bring its own configuration.
    assert_eq!(ttl(None, &[]), 1);
    assert_eq!(ttl(None, &variable), 2);
    assert_eq!(ttl(Some(&three), &variable), 3);
    let missing =
        Configuration::load(Some(Path::new("nowhere.yaml")), &place.environment(&[])).unwrap_err();
    assert!(
        place
            .shown(&missing)
            .starts_with("reading the configuration file nowhere.yaml: No such file"),
        "{missing}"
    );
    let folder = Configuration::load(Some(place.path()), &place.environment(&[])).unwrap_err();
    assert!(folder.to_string().contains("name an ordinary file"));
}

#[test]
fn variables_override_keys_and_a_misspelt_one_is_an_error() {
    let place = Place::new();
    let variables = [
        ("CARETAKER_SERVER__LISTEN", "127.0.0.1:9"),
        ("CARETAKER_APPROVALS__LINK_TTL_SECONDS", "60"),
        ("CARETAKER_AGENT__ADAPTER", "command"),
        ("CARETAKER_AGENT__COMMAND", "[python3, x.py]"),
        ("CARETAKER_KEYS__ROLES__POLICY__SECRET", "env:P"),
        (
            "CARETAKER_NOTIFY",
            r#"[{"kind": "webhook", "url": "https://example.com/h"}]"#,
        ),
        ("CARETAKER_PROPOSER_SECRET", "not a key, and left alone"),
    ];
    let configuration = place
        .load_with("server: {listen: 127.0.0.1:1}", &variables)
        .unwrap();
    assert_eq!(configuration.server.listen.to_string(), "127.0.0.1:9");
    assert_eq!(configuration.approvals.link_ttl_seconds, 60);
    assert_eq!(configuration.agent.command, ["python3", "x.py"]);
    assert_eq!(
        configuration.keys.secret(KeyUse::Policy).source.to_string(),
        "env:P"
    );
    assert_eq!(configuration.notify.len(), 1);
    let messages: Vec<String> = [
        ("CARETAKER_SERVER__LISTN", "x"),
        ("CARETAKER_SERVR__LISTEN", "x"),
        ("CARETAKER_SERVER__LISTEN__PORT", "1"),
        ("CARETAKER_APPROVALS__LINK_TTL_SECONDS", "soon"),
        ("CARETAKER_SANDBOX__MODE", "jail"),
        ("CARETAKER_DATABASE", "postgres://u:hunter2@h/d"),
        ("CARETAKER_HEALTH", "[{url: x}"),
        ("CARETAKER_KEYS__ROLES__POLICY__SECRT", "hunter2"),
        ("CARETAKER_KEYS__ROLES__POLICY__SECRET", "hunter2"),
    ]
    .map(|variable| place.load_with("", &[variable]).unwrap_err())
    .to_vec();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    environment variable CARETAKER_SERVER__LISTN: unknown key "listn"; did you mean listen? Known here: listen, public_url
    environment variable CARETAKER_SERVR__LISTEN: unknown key "servr"; did you mean server? Known here: agent, anchor, approvals, database, evidence, github, health, health_addresses, health_self_check, identity, keys, notify, poll, sandbox, security, server, telemetry
    environment variable CARETAKER_SERVER__LISTEN__PORT: server.listen has no keys of its own; give the whole value in one variable
    environment variable CARETAKER_APPROVALS__LINK_TTL_SECONDS: this value is not a whole number that fits here
    environment variable CARETAKER_SANDBOX__MODE: "jail" is not one of the words allowed here; known here: auto, bubblewrap, landlock, none
    environment variable CARETAKER_DATABASE: expected keys with values here, as in key: value
    environment variable CARETAKER_HEALTH: expected a list here, as in [a, b]
    environment variable CARETAKER_KEYS__ROLES__POLICY__SECRT: unknown key "secrt"; did you mean secret? Known here: secret, signer
    environment variable CARETAKER_KEYS__ROLES__POLICY__SECRET: a secret is named as env:NAME, file:PATH or credential:NAME; it does not itself belong into the configuration
    "#);
}

#[test]
fn unknown_and_duplicate_keys_are_errors_with_line_column_and_the_nearest_name() {
    insta::assert_snapshot!(refusals(&[
        "server:\n  listn: 127.0.0.1:1\n",
        "databse: {url: x}",
        "server: {}\nserver: {}\n",
        "keys:\n  roles:\n    aprover: {secret: \"env:A\"}\n",
        "agent: {adapter: comand}",
        "zzzzzzzzzzzz: 1",
        "notify: [{kind: webhook, ulr: x}]",
        "notify: [{kind: mail, url: x}]",
    ]), @r#"
    caretaker.yaml:2:3: unknown key "listn"; did you mean listen? Known here: listen, public_url
    caretaker.yaml:1:1: unknown key "databse"; did you mean database? Known here: database, server, github, poll, health, health_addresses, health_self_check, keys, agent, sandbox, security, approvals, evidence, identity, notify, anchor, telemetry
    caretaker.yaml:2:1: the key "server" stands twice; keep one
    caretaker.yaml:3:5: unknown key "aprover"; did you mean approver? Known here: proposer, policy, approver, executor, root, log
    caretaker.yaml:1:18: "comand" is not one of the words allowed here; did you mean command? Known here: builtin, claude, codex, gemini, qwen, copilot, opencode, goose, scripted, command
    caretaker.yaml:1:1: unknown key "zzzzzzzzzzzz"; known here: database, server, github, poll, health, health_addresses, health_self_check, keys, agent, sandbox, security, approvals, evidence, identity, notify, anchor, telemetry
    caretaker.yaml:1:10: unknown key "ulr"; did you mean url? Known here: url
    caretaker.yaml:1:11: "mail" is not one of the words allowed here; known here: webhook
    "#);
}

#[test]
fn bad_values_are_errors_that_say_the_mend() {
    insta::assert_snapshot!(refusals(&[
        "server: {listen: example.com}",
        "server: {public_url: \"ftp://x/\"}",
        "github:\n  api_url: http://ghe.example.com/api\n",
        "github: {api_url: \"https://me:pw@x/\"}",
        "database: {url: \"mysql://root:hunter2@x/y\"}",
        "poll: {schedule: \"* * * * *\"}",
        "poll: {schedule: \"0 0 0 30 2 *\"}",
        "keys: {roles: {policy: {secret: hunter2}}}",
        "keys: {roles: {policy: {}}}",
        "approvals: {link_ttl_seconds: -1}",
        "approvals: {link_ttl_seconds: soon}",
        "approvals: {interactive: yes}",
        "server: [1, 2]",
        "server: {listen: *x}",
        "server: {listen: !x}",
        "server: {listen: }",
        "server: {listen: [",
        "server: {listen: \"x}",
        "server:\n\tlisten: x",
        "database: \"postgres://u:hunter2@h/d\"",
        "server: {}\n---\nserver: {}\n",
        "<<: {server: {}}",
    ]), @r#"
    caretaker.yaml:1:18: this is not an address to listen on; write one such as 127.0.0.1:8080
    caretaker.yaml:1:22: the scheme ftp is not supported; use https, or http on loopback
    caretaker.yaml:2:12: http to ghe.example.com would send tokens in clear text; use https (http is for loopback only)
    caretaker.yaml:1:19: the URL holds a user name or password; remove it
    caretaker.yaml:1:17: this is not a database address; write sqlite://PATH, or postgres://USER@HOST/NAME
    caretaker.yaml:1:18: this is not a schedule; write six fields, seconds first, as in "*/30 * * * * *" for every thirty seconds
    caretaker.yaml:1:18: this schedule never comes; check its day and month
    caretaker.yaml:1:33: a secret is named as env:NAME, file:PATH or credential:NAME; it does not itself belong into the configuration
    caretaker.yaml: keys.roles: policy names neither a secret nor a signer; give one, or remove it
    caretaker.yaml:1:31: this value is not a whole number that fits here
    caretaker.yaml:1:31: this value is not a whole number that fits here
    caretaker.yaml:1:26: this value is not a yes-or-no; write true or false
    caretaker.yaml:1:9: expected keys with values here, as in key: value
    caretaker.yaml:1:18: a value that starts with * is read as a YAML alias; put it in quotes, as in "*.pem"
    caretaker.yaml:1:20: a value that starts with ! is read as a YAML tag; put it in quotes if the ! is meant
    caretaker.yaml:1:16: nothing stands here; write a text, or remove the key
    caretaker.yaml:1:18: expected a text here
    caretaker.yaml:1:18: this is not YAML: unclosed quote
    caretaker.yaml:2:2: this is not YAML: tabs disallowed within this context (block indentation)
    caretaker.yaml:1:11: expected keys with values here, as in key: value
    caretaker.yaml:3:1: the file holds more than one document (---); keep one
    caretaker.yaml:1:1: merge keys (<<) are not supported; write the keys out
    "#);
    assert_eq!(
        refusal(b"server:\n  listen: \"\xff\"\n"),
        "caretaker.yaml:2:12: this byte is not UTF-8; save the file as UTF-8"
    );
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    insta::assert_snapshot!(refusals(&[
        "server: {listen: \"0.0.0.0:8080\"}",
        "github: {api_url: \"https://ghe.example.com/api/v3\"}",
        "agent: {adapter: command}",
        "agent: {adapter: scripted, command: [x]}",
        "agent: {command: [x]}",
        "keys: {roles: {policy: {secret: \"env:S\"}, approver: {secret: \"env:S\"}}}",
        "keys: {roles: {log: {signer: {socket: log.sock}}}}",
        "approvals: {link_ttl_seconds: 0}",
        "approvals: {link_ttl_seconds: 2592001}",
    ]), @r"
    caretaker.yaml: server.listen: 0.0.0.0:8080 is reachable from other machines, while approval links are the only proof of identity; listen on 127.0.0.1, behind a proxy that authenticates
    caretaker.yaml: github: api_url and web_url are set together (git_url is web_url unless set too), so that no token goes to another host; add the missing one
    caretaker.yaml: agent.command: the adapter is `command`, but no program is named; write it as a list, as in [python3, coder.py]
    caretaker.yaml: agent.command: a program is named, but the adapter runs none; set agent.adapter: command or a client's name, or remove it
    caretaker.yaml: agent.command: a program is named, but the adapter runs none; set agent.adapter: command or a client's name, or remove it
    caretaker.yaml: keys.roles: policy and approver have the same secret (env:S); each needs one of its own
    caretaker.yaml: keys.roles: the log key is used in this process only
    caretaker.yaml: approvals.link_ttl_seconds: 0 is not between 1 and 2592000 (thirty days)
    caretaker.yaml: approvals.link_ttl_seconds: 2592001 is not between 1 and 2592000 (thirty days)
    ");
}

#[test]
fn what_this_version_does_not_have_is_refused_and_never_silently_ignored() {
    for (asked, key) in [
        ("identity: {require: passkey}", "identity.require"),
        (
            "identity: {per_class: {data: two-person}}",
            "identity.per_class",
        ),
        ("telemetry: {otlp: x}", "telemetry"),
        // A listener beyond loopback does not become acceptable through a method that is not there.
        (
            "server: {listen: \"0.0.0.0:1\"}\nidentity: {require: oidc}",
            "identity.require",
        ),
    ] {
        assert_eq!(
            refusal(asked),
            format!(
                "caretaker.yaml: {key}: not available in this version; remove it, or use a version that has it"
            )
        );
    }
    Place::new()
        .load("security: {failure_posture: closed, intent_alignment: {enabled: false, threshold: 0.5}}\ntelemetry: {enabled: false, otlp: x}\nanchor: {}\nhealth: []\napprovals: {interactive: true, timeout_seconds: 60, smart_auto_approve: true}")
        .unwrap();
    assert!(
        refusal("security: {intent_alignment: {enabeld: true}}").contains("did you mean enabled?")
    );
}

#[test]
fn an_agent_without_its_model_or_with_an_empty_budget_is_refused() {
    let key = "api_key: \"env:K\"";
    for (asked, expected) in [
        (
            "{model: {provider: anthropic}}".to_owned(),
            "agent.model: a model is named, but the adapter uses none",
        ),
        (
            "{adapter: builtin}".to_owned(),
            "agent.model: the adapter needs a model",
        ),
        (
            "{adapter: codex}".to_owned(),
            "agent.model: the adapter needs a model",
        ),
        (
            "{adapter: builtin, model: {provider: openai, name: m}}".to_owned(),
            "agent.model: its key is missing",
        ),
        (
            format!("{{adapter: builtin, model: {{provider: openai, {key}}}}}"),
            "agent.model: its name is 1 to 200",
        ),
        (
            format!("{{adapter: builtin, model: {{name: m, {key}}}}}"),
            "agent.model: its provider is missing",
        ),
        (
            format!(
                "{{adapter: builtin, command: [x], model: {{provider: openai, name: m, {key}}}}}"
            ),
            "agent.command: a program is named, but the adapter runs none",
        ),
        (
            "{profile: careful}".to_owned(),
            "agent.profile: there is no such profile",
        ),
        (
            "{budget: {tokens: 0}}".to_owned(),
            "agent.budget: each limit is at least 1",
        ),
        (
            "{budget: {wall_seconds: 86401}}".to_owned(),
            "agent.budget: each limit is at least 1",
        ),
    ] {
        let message = refusal(format!("agent: {asked}"));
        let expected = format!("caretaker.yaml: {expected}");
        assert!(message.starts_with(&expected), "{asked}: {message}");
    }
    let place = Place::new();
    let loaded = place
        .load("agent: {adapter: builtin, model: {provider: ollama, name: \"qwen3:8b\"}}")
        .unwrap();
    let model = loaded.agent.model.unwrap();
    assert_eq!(model.base_url.to_string(), "http://127.0.0.1:11434");
    assert_eq!(loaded.agent.budget.tool_calls, 200);
}

#[test]
fn hostile_texts_are_refused_in_bounded_time_and_memory() {
    let bomb: String = (0..9)
        .map(|level| {
            format!(
                "a{level}: &a{level} [{}]\n",
                vec![format!("*a{}", level - 1); 9].join(",")
            )
        })
        .collect::<String>()
        .replace("*a-1", "x");
    let deep = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_block: String = (0..2_000)
        .map(|level| format!("{}a:\n", " ".repeat(level % 300)))
        .collect();
    let many = "- x\n".repeat(200_000);
    let anchors = (0..2_000)
        .map(|number| format!("k{number}: &a{number} x\n"))
        .collect::<String>();
    for text in [bomb, deep, deep_block, many, anchors] {
        let message = refusal(&text);
        assert!(message.starts_with("caretaker.yaml:"), "{message}");
        assert!(message.len() < 600, "{message}");
    }
    let large = refusal(vec![b'#'; 3 * 1024 * 1024]);
    assert!(large.contains("larger than 1048576 bytes"), "{large}");
}

#[test]
fn a_schedule_knows_its_next_moment() {
    let next = |schedule: &str, now: &str| {
        let now: jiff::Timestamp = now.parse().unwrap();
        let schedule: PollSchedule = schedule.parse().unwrap();
        schedule
            .next_after(Millis(now.as_millisecond()))
            .map(|moment| moment.to_string())
    };
    for (schedule, now, expected) in [
        (
            "*/2 * * * * *",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:02Z",
        ),
        (
            "*/2 * * * * *",
            "2026-01-01T00:00:01.999Z",
            "2026-01-01T00:00:02Z",
        ),
        (
            "*/30 * * * * *",
            "2026-12-31T23:59:30Z",
            "2027-01-01T00:00:00Z",
        ),
        (
            "5 4 3 * * *",
            "2026-02-28T03:04:05Z",
            "2026-03-01T03:04:05Z",
        ),
        (
            "0 0 12 29 2 *",
            "2026-01-01T00:00:00Z",
            "2028-02-29T12:00:00Z",
        ),
        (
            "0 0 9 * * MON",
            "2026-01-01T00:00:00Z",
            "2026-01-05T09:00:00Z",
        ),
        (
            "0 0 9 * * * 2027",
            "2026-01-01T00:00:00Z",
            "2027-01-01T09:00:00Z",
        ),
    ] {
        assert_eq!(
            next(schedule, now).as_deref(),
            Some(expected),
            "{schedule} after {now}"
        );
    }
    assert_eq!(next("0 0 9 * * * 2020", "2026-01-01T00:00:00Z"), None);
}

#[test]
fn the_example_for_operators_is_a_configuration() {
    let example = include_str!("../../deploy/caretaker.yaml");
    let configuration = Place::new().load(example).unwrap();
    assert!(configuration.database.is_embedded());
    assert!(!configuration.keys.secret(KeyUse::Approver).generated);
    assert_eq!(configuration.agent.command, ["python3", "coder.py"]);
    assert_eq!(configuration.notify.len(), 1);
}

#[test]
fn a_profile_that_can_never_match_is_refused() {
    for profiles in [
        r#"{"": {default: deny}}"#,
        r#"{"a\0b": {default: deny}}"#,
        r#"{" careful": {default: deny}}"#,
        r#"{careful: {default: allow, tools: {"Write ": deny}}}"#,
        r#"{careful: {default: allow, tools: {"": deny}}}"#,
        r#"{careful: {default: allow, tools: {"Wri\u00a0te": deny}}}"#,
    ] {
        let message = refusal(format!("approvals: {{profiles: {profiles}}}"));
        assert!(
            message.starts_with("caretaker.yaml: approvals.profiles: the profile"),
            "{profiles}: {message}"
        );
    }
}
