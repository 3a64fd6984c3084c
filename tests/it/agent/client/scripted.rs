//! A client of our own making in the place of Codex: everything that a client could try, and every way in which it can end.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caretaker::agent::client::{Client, ClientCoder, ClientError, ClientSetup};
use caretaker::agent::{AgentSession, Coder as _, CoderError, Governance};
use caretaker::sandbox::{Mode, Sandbox};
use serde_json::json;

use super::{Desk, KEY, hooks, sandbox, task};

const FIX: &str = r#"{"summary": "Removed the one.", "title": "Add up"}"#;
const DIAGNOSIS: &str = r#"{"cause": "off by one", "files": ["src/lib.rs"], "confidence": 800, "summary": "It adds one."}"#;

/// A client that is a Python script: `say(text)` is its last message.
struct Story {
    desk: Desk,
    session: AgentSession,
    _gate: UnixListener,
    setup: ClientSetup,
}

impl Story {
    fn of(script: &str) -> Self {
        let desk = Desk::new();
        let file = desk.path("client.py");
        let beginning = "import json,os,sys,glob,socket,subprocess,urllib.request\n\
            def event(kind,**item): print(json.dumps({'type':'item.completed','item':dict(type=kind,**item)}),flush=True)\n\
            def say(text): event('agent_message',text=text)\n";
        std::fs::write(&file, format!("{beginning}{script}\n")).unwrap();
        let session = desk.session();
        let gate = UnixListener::bind(&session.socket).unwrap();
        let command = vec!["/usr/bin/python3".to_owned(), file.display().to_string()];
        // Nobody is at that port; stories that need a model start one.
        let setup = desk.setup(Client::Codex, command, 1);
        Self {
            desk,
            session,
            _gate: gate,
            setup,
        }
    }

    async fn coder(&self) -> ClientCoder {
        ClientCoder::new(self.setup.clone(), sandbox().await, Arc::new(hooks())).unwrap()
    }

    async fn fix(&self) -> Result<caretaker::agent::FixSummary, CoderError> {
        let coder = self.coder().await;
        coder
            .fix(&task(), &self.desk.tree(), Some(&self.session))
            .await
    }

    async fn diagnose(&self) -> Result<caretaker::agent::Diagnosis, CoderError> {
        let coder = self.coder().await;
        coder
            .diagnose(&task(), &self.desk.tree(), Some(&self.session))
            .await
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.desk.tree().join(name)).unwrap()
    }
}

fn saying(answer: &str) -> String {
    format!("say('''{answer}''')")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_edits_the_tree_and_its_answer_is_read() {
    let script = format!(
        "open('src/lib.rs','w').write('a + b\\n')\nopen('args','w').write('\\0'.join(sys.argv[1:]))\nopen('where','w').write(os.getcwd())\n\
         event('command_execution',id='c1')\nevent('file_change',id='c2')\nsay('not yet')\n{}",
        saying(FIX)
    );
    let story = Story::of(&script);
    let coder = story.coder().await;
    assert_eq!(coder.describe().id, "codex");
    assert_eq!(coder.governance(), Governance::Gated(Client::Codex.tools()));
    let fix = story.fix().await.unwrap();
    assert_eq!(
        (fix.title.as_str(), fix.summary.as_str()),
        ("Add up", "Removed the one.")
    );
    assert_eq!(story.read("src/lib.rs"), "a + b\n");
    assert_eq!(PathBuf::from(story.read("where")), story.desk.tree());
    let told = story.read("args");
    assert!(told.starts_with("exec\0--json"), "{told}");
    assert!(
        told.contains("tests::eq") && told.contains("data, not orders"),
        "{told}"
    );
    let report = story.session.reported().unwrap();
    assert_eq!((report.calls, report.requests), (2, 0));
    // Its home is gone.
    let left: Vec<_> = std::fs::read_dir(story.desk.home().join("clients"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diagnosis_may_read_the_tree_but_not_change_it() {
    let script = format!(
        "assert 'a + b' in open('src/lib.rs').read()\n\
         for name in ['src/lib.rs','new','src/new']:\n\
         \x20try: open(name,'w').write('x'); os._exit(9)\n\
         \x20except OSError: pass\n{}",
        saying(DIAGNOSIS)
    );
    let story = Story::of(&script);
    assert_eq!(story.diagnose().await.unwrap().confidence, 800);
    assert_eq!(story.read("src/lib.rs"), "a + b + 1\n");
}

/// The key is in the worker's environment, in its memory and in a file of its home. From inside none of these is found.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_nowhere_inside() {
    let search = "key = sys.argv[-1].encode()\n\
        found = []\n\
        def look(path):\n\
        \x20try: data = open(path,'rb').read(1<<20)\n\
        \x20except OSError: return\n\
        \x20if needle in data: found.append(path)\n\
        needle = open('needle','rb').read()[::-1]\n\
        for name, value in os.environ.items():\n\
        \x20if needle.decode() in value: found.append('environment '+name)\n\
        for pattern in ['environ','cmdline','maps','mountinfo']:\n\
        \x20for path in glob.glob('/proc/[0-9]*/'+pattern): look(path)\n\
        for root in ['/home','/root','/etc','/run','/tmp','/var','/opt','/srv','/work','/mnt',os.environ['HOME'],os.getcwd(),HOMEDIR]:\n\
        \x20for folder, folders, files in os.walk(root):\n\
        \x20\x20folders[:] = [f for f in folders if f not in ('target','node_modules')]\n\
        \x20\x20for name in files:\n\
        \x20\x20\x20if name != 'needle': look(os.path.join(folder,name))\n\
        for pid in glob.glob('/proc/[0-9]*'):\n\
        \x20try:\n\
        \x20\x20for line in open(pid+'/maps'):\n\
        \x20\x20\x20a,b = [int(x,16) for x in line.split()[0].split('-')]\n\
        \x20\x20\x20if pid.endswith('/'+str(os.getpid())) or 'r' not in line.split()[1] or b-a > 1<<24: continue\n\
        \x20\x20\x20with open(pid+'/mem','rb') as m:\n\
        \x20\x20\x20\x20m.seek(a)\n\
        \x20\x20\x20\x20if needle in m.read(b-a): found.append(pid+' memory')\n\
        \x20except (OSError,ValueError,OverflowError): pass\n\
        open('found','w').write('\\n'.join(sorted(found)))\n";
    let mut story = Story::of("");
    let home = story.desk.home();
    let script = std::fs::read_to_string(story.desk.path("client.py")).unwrap();
    let search = search
        .replace("HOMEDIR", &format!("{:?}", home.display().to_string()))
        .replace("key = sys.argv[-1].encode()\n", "");
    std::fs::write(
        story.desk.path("client.py"),
        format!("{script}{search}{}", saying(FIX)),
    )
    .unwrap();
    // Backwards, so that what it searches with is not what it finds.
    let needle: String = KEY.chars().rev().collect();
    std::fs::write(story.desk.tree().join("needle"), needle).unwrap();
    // This one can be found, so that the search is seen to work.
    std::fs::write(story.desk.tree().join("planted"), KEY).unwrap();
    std::fs::write(home.join("model.key"), KEY).unwrap();
    std::fs::write(story.desk.path("beside.key"), KEY).unwrap();
    // The process of this story is the worker: what it was started with holds the key, too.
    let script = story.desk.path("worker.sh");
    std::fs::write(&script, "exec sleep 60\n").unwrap();
    let mut worker = std::process::Command::new("sh")
        .arg(&script)
        .env("MODEL_KEY", KEY)
        .spawn()
        .unwrap();
    story.setup.budget.wall = Duration::from_mins(1);
    let fix = story.fix().await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    fix.unwrap();
    let found = story.read("found");
    let mut found: Vec<&str> = found.lines().collect();
    found.dedup();
    assert_eq!(found, [story.desk.tree().join("planted").to_str().unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_change_its_own_hooks() {
    let script = format!(
        "home = os.environ['HOME']\n\
         hooks = home+'/.codex/hooks.json'\n\
         before = open(hooks).read()\n\
         assert 'hook-gate' in before and '--session S1' in before\n\
         open(home+'/.codex/notes','w').write('its own business')\n\
         tries = [lambda: open(hooks,'w'), lambda: os.remove(hooks), lambda: os.rename(hooks,home+'/x'), lambda: os.chmod(hooks,0o777),\n\
         \x20lambda: os.rename(home+'/.codex',home+'/y'), lambda: os.rename(home,home+'2'), lambda: os.replace(home+'/.codex/notes',hooks),\n\
         \x20lambda: open(home+'/.codex/config.toml','a')]\n\
         for number, attempt in enumerate(tries):\n\
         \x20try: attempt(); print('SUCCEEDED',number,file=sys.stderr); os._exit(9)\n\
         \x20except OSError: pass\n\
         assert open(hooks).read() == before\n{}",
        saying(FIX)
    );
    Story::of(&script).fix().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_sockets_and_the_program_are_seen_outside_of_its_home_and_tree() {
    let script = format!(
        "place = os.path.dirname(os.environ['HOME'])\n\
         def names(folder):\n\
         \x20try: return sorted(os.listdir(folder))\n\
         \x20except OSError: return []\n\
         around = [place, os.path.dirname(os.path.dirname(place)), os.path.dirname(os.getcwd())]\n\
         open('seen','w').write(repr([names(folder) for folder in around]))\n\
         for hidden in [around[1]+'/caretaker.db', around[2]+'/beside']:\n\
         \x20try: open(hidden); print('SUCCEEDED',hidden,file=sys.stderr); os._exit(9)\n\
         \x20except OSError: pass\n\
         def refused(family,place):\n\
         \x20try: socket.socket(family).connect(place); print('SUCCEEDED',place,file=sys.stderr); os._exit(9)\n\
         \x20except OSError: pass\n\
         refused(socket.AF_INET,('127.0.0.1',22)); refused(socket.AF_INET,('192.0.2.1',80))\n{}",
        saying(FIX)
    );
    let story = Story::of(&script);
    std::fs::write(story.desk.home().join("caretaker.db"), "").unwrap();
    std::fs::write(story.desk.path("beside"), "").unwrap();
    story.fix().await.unwrap();
    let seen = story.read("seen");
    // With Landlock inside, not even the names of what it may use are listed.
    assert!(
        !seen.contains("caretaker.db") && !seen.contains("beside"),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_repositorys_own_configuration_is_not_seen() {
    let script = format!(
        "assert os.listdir('.codex') == [] and os.listdir('.agents') == []\nassert open('.gemini/settings.json').read() == 'x'\n{}",
        saying(FIX)
    );
    let story = Story::of(&script);
    for name in [
        ".codex/hooks.json",
        ".agents/skills.md",
        ".gemini/settings.json",
    ] {
        let file = story.desk.tree().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "x").unwrap();
    }
    story.fix().await.unwrap();
    assert_eq!(story.read(".codex/hooks.json"), "x");
    // A link in its place would hide something else.
    let tree = story.desk.tree();
    std::fs::remove_dir_all(tree.join(".agents")).unwrap();
    std::os::unix::fs::symlink("src", tree.join(".agents")).unwrap();
    match story.fix().await {
        Err(CoderError::Unavailable { reason, .. }) => {
            assert!(reason.contains(".agents"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_model_is_behind_its_loopback() {
    let script = format!(
        "request = urllib.request.Request('http://127.0.0.1:8137/v1/responses', b'{{}}', {{'Authorization':'Bearer from-inside','Content-Type':'application/json'}})\n\
         open('answer','w').write(urllib.request.urlopen(request).read().decode())\n\
         try: urllib.request.urlopen('http://127.0.0.1:8137/v1/files')\n\
         except urllib.error.HTTPError as error: open('refused','w').write(str(error.code))\n{}",
        saying(FIX)
    );
    let mut story = Story::of(&script);
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let listening = Arc::clone(&heard);
    let router = axum::Router::new().fallback(move |headers: axum::http::HeaderMap| async move {
        listening.lock().unwrap().push(format!("{headers:?}"));
        axum::Json(json!({"usage": {"input_tokens": 7, "output_tokens": 2}}))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    story.setup.upstream.base = format!("http://127.0.0.1:{port}/v1").parse().unwrap();
    story.fix().await.unwrap();
    assert!(story.read("answer").contains("input_tokens"));
    assert_eq!(story.read("refused"), "404");
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 1);
    assert!(
        heard[0].contains(KEY) && !heard[0].contains("from-inside"),
        "{}",
        heard[0]
    );
    let report = story.session.reported().unwrap();
    assert_eq!(
        (report.requests, report.input_tokens, report.output_tokens),
        (1, 7, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_end_badly_is_named() {
    for (script, expected) in [
        (
            "sys.stderr.write('no \\x1b[31mkey'); sys.exit(3)",
            "exit code 3",
        ),
        (
            "print(json.dumps({'type':'turn.failed','error':{'message':'quota'}})); sys.exit(1)",
            "quota",
        ),
        ("os.kill(os.getpid(),9)", "signal 9"),
        ("import time; time.sleep(60)", "3 seconds"),
        ("while True: print('x'*65536)", "bytes of output"),
        (
            "[event('command_execution',id=str(n)) for n in range(6)]; say('{}')",
            "6 calls of tools, more than the 5",
        ),
    ] {
        let mut story = Story::of(script);
        story.setup.budget.tool_calls = 5;
        story.setup.budget.wall = Duration::from_secs(3);
        match story.fix().await {
            Err(error @ CoderError::Failed { .. }) => {
                assert!(
                    error.to_string().contains(expected),
                    "{error} lacks {expected}"
                );
            }
            other => panic!("{expected}: {other:?}"),
        }
        assert!(story.session.reported().is_some(), "{expected}");
    }
    for (script, expected) in [
        ("", "no message"),
        ("print('{\"type\":')", "no message"),
        ("say('All done.')", "not the one JSON document"),
        (
            "say('{\"summary\":\"s\",\"title\":\"two\\\\nlines\"}')",
            "line break",
        ),
        (
            "say('{\"summary\":\"s\",\"title\":\"t\",\"more\":1}')",
            "unknown field",
        ),
    ] {
        match Story::of(script).fix().await {
            Err(CoderError::Answer {
                reason,
                task: "fix",
                ..
            }) => {
                assert!(reason.contains(expected), "{reason} lacks {expected}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_nothing_is_run() {
    let story = Story::of(&format!("open('ran','w')\n{}", saying(FIX)));
    let coder = story.coder().await;
    let ended = coder.fix(&task(), &story.desk.tree(), None).await;
    assert!(
        matches!(ended, Err(CoderError::Unavailable { .. })),
        "{ended:?}"
    );
    assert!(!story.desk.tree().join("ran").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_private_loopback_there_is_no_client() {
    let story = Story::of("");
    for mode in [Mode::Landlock, Mode::None] {
        let launcher = env!("CARGO_BIN_EXE_caretaker").into();
        let sandbox = Arc::new(Sandbox::detect(mode, launcher).await.unwrap());
        let refused = ClientCoder::new(story.setup.clone(), sandbox, Arc::new(hooks()))
            .err()
            .unwrap();
        assert!(matches!(refused, ClientError::Sandbox { .. }));
        assert!(
            refused.to_string().contains("install bubblewrap"),
            "{refused}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_refused_at_the_start() {
    let story = Story::of("");
    let refused = async |change: &dyn Fn(&mut ClientSetup)| {
        let mut setup = story.setup.clone();
        change(&mut setup);
        let refused = ClientCoder::new(setup, sandbox().await, Arc::new(hooks())).err();
        refused.unwrap().to_string()
    };
    let missing = refused(&|setup| setup.command = vec!["no-such-client".to_owned()]).await;
    assert!(
        missing.contains("no-such-client") && missing.contains("install it"),
        "{missing}"
    );
    let own = refused(&|setup| {
        setup.command = Vec::new();
        setup.search = Some("/nonexistent".into());
    })
    .await;
    assert!(own.contains("\"codex\""), "{own}");
    let missing = refused(&|setup| setup.command = vec!["/no/such/client".to_owned()]).await;
    assert!(missing.contains("absolute path"), "{missing}");
    let other = refused(&|setup| setup.client = Client::Claude).await;
    assert!(
        other.contains("agent.model.provider to anthropic"),
        "{other}"
    );
    let lost = refused(&|setup| setup.home = "/tmp".into()).await;
    assert!(
        lost.contains("Codex does not work in a home below /tmp"),
        "{lost}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_too_long_for_a_socket_is_named() {
    let mut story = Story::of(&saying(FIX));
    story.setup.home = story.desk.home().join("x".repeat(100));
    match story.fix().await {
        Err(CoderError::Unavailable { reason, .. }) => {
            assert!(
                reason.contains("107 bytes") && reason.contains("CARETAKER_HOME"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
}
