//! `caretaker incident` and `caretaker approval` as their users meet them: a prepared home, processes, exit codes.

mod answering;
mod approvals;
mod doctor;
mod incidents;
mod projects;
mod refusals;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use caretaker::approve::{ApprovalRequest, ApprovalToken, Binding, MergeMethod};
use caretaker::change::{ChangeDocument, Oid, Sha256Digest};
use caretaker::clock::{Clock as _, Millis, SystemClock};
use caretaker::gate::{Class, Verdict};
use caretaker::id::{ApprovalId, IncidentId, OrganisationId, ProjectId, ProposalId};
use caretaker::incident::{
    ClosedReason, DecisionFact, DiagnosisFact, Fact, Failure, FailureKind, FixFact, NewLink,
    Outcome, Reproduction, Snapshot,
};
use caretaker::store::{Claim, Commit, Observed, Project, ProjectState, Store, WatchMode};
use caretaker::worker::repository_folder;
use caretaker::workspace::TrustedRepository;

const LEASE: Duration = Duration::from_mins(1);
/// Who is asked, unless a story says otherwise.
const OWNER: &str = "local:ada";

/// A home with a database, one watched project, and the project's trusted repository with a base and a fix.
struct Desk {
    folder: tempfile::TempDir,
    store: Store,
    project: Project,
    base: Oid,
    head: Oid,
}

/// The key from which the nonces of links follow.
fn seal(home: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let file = caretaker::signer::credential_file(&home.join("keys"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, [5; 32]).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl Desk {
    async fn new() -> Self {
        Self::of(OWNER).await
    }

    /// The project's owner is asked.
    async fn of(owner: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let url = format!("sqlite://{}", home.join("caretaker.db").display());
        let store = Store::open(&url).await.unwrap();
        let now = store.now().await.unwrap();
        let project = project(owner, now);
        let organisation = &project.organisation;
        let ensured = store.ensure_organisation(organisation, "example", now);
        ensured.await.unwrap();
        store.insert_project(&project, b"sealed").await.unwrap();
        store.confirm_project(&project, None, now).await.unwrap();
        let place = repository_folder(&home, &project.id);
        TrustedRepository::open_or_create(&place).unwrap();
        let base = commit(&place, "a + b", None);
        let head = commit(&place, "a - b", Some(base));
        Self {
            folder,
            store,
            project,
            base,
            head,
        }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn repository(&self) -> PathBuf {
        repository_folder(&self.home(), &self.project.id)
    }

    async fn snapshot(&self, incident: &IncidentId) -> Snapshot {
        let scope = self.store.within(&self.project.organisation);
        let snapshot = scope.snapshot(incident, SystemClock.now()).await;
        snapshot.unwrap().unwrap()
    }

    /// A failed job becomes an incident that a worker holds.
    async fn story(&self, job: &str) -> Story<'_> {
        let now = self.store.now().await.unwrap();
        let mut entropy = [0; 10];
        entropy.copy_from_slice(&Sha256Digest::of(job.as_bytes()).as_bytes()[..10]);
        let incident = IncidentId::new(now, entropy);
        let failure = failure(job, self.base);
        let observed = self
            .store
            .observe(&self.project, &failure, None, &incident, now);
        assert_eq!(observed.await.unwrap(), Observed::Opened(incident.clone()));
        let claim = self.store.claim("worker", now, LEASE).await.unwrap();
        let claim = claim.unwrap();
        assert_eq!(claim.incident, incident, "another one was due");
        Story {
            snapshot: self.snapshot(&incident).await,
            desk: self,
            claim,
        }
    }

    /// Runs the command as ada.
    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_as("ada", arguments)
    }

    fn run_as(&self, user: &str, arguments: &[&str]) -> Ran {
        run(&self.home(), user, arguments)
    }
}

/// One incident while a worker holds it.
struct Story<'a> {
    desk: &'a Desk,
    claim: Claim,
    snapshot: Snapshot,
}

impl Story<'_> {
    async fn step(&mut self, outcome: Outcome) {
        let now = SystemClock.now();
        let store = &self.desk.store;
        let commit = store.commit(&self.claim, &self.snapshot, &outcome, now, LEASE);
        match commit.await.unwrap() {
            Commit::Done(after) => self.snapshot = *after,
            other => panic!("not committed: {other:?}"),
        }
    }

    /// The worker gives it back.
    async fn rest(self, until: Option<Millis>, reason: &str, attempts: u32) -> IncidentId {
        let version = self.snapshot.version;
        let rest = self
            .desk
            .store
            .rest(&self.claim, version, until, reason, attempts);
        assert!(rest.await.unwrap());
        self.claim.incident
    }

    /// It ends without a change.
    async fn close(mut self) -> IncidentId {
        self.step(Outcome::fact(Fact::Closed {
            reason: ClosedReason::NotReproducible,
            detail: "cargo test succeeds at the failing commit in the sandbox".to_owned(),
        }))
        .await;
        self.rest(None, "", 0).await
    }

    /// Everything up to the open pull request.
    async fn propose(&mut self, diagnosis: &str) {
        let digest = Sha256Digest::of(b"evidence");
        let desk = self.desk;
        let fix = FixFact {
            branch: "caretaker/fix-1".to_owned(),
            base_commit: desk.base,
            commit: desk.head,
            tree: tree(&desk.repository(), desk.head),
            change: change(&desk.repository(), desk.base, desk.head),
            title: "The difference is a difference".to_owned(),
            body: "It was a sum.".to_owned(),
            lines: Some(2),
            binary: Some(false),
            tests: vec![digest],
            patch: None,
            session: None,
        };
        let facts = [
            Fact::Reproduced(Reproduction::Red {
                command: vec!["cargo".to_owned(), "test".to_owned()],
                sandbox: "none".to_owned(),
                evidence: digest,
                repeated: Vec::new(),
            }),
            Fact::Extracted {
                evidence: digest,
                count: 1,
                suspicious: false,
                missing: None,
            },
            Fact::Diagnosed(DiagnosisFact {
                cause: diagnosis.to_owned(),
                files: vec!["difference.rs".parse().unwrap()],
                confidence: 900,
                summary: diagnosis.to_owned(),
                agent: "scripted".to_owned(),
                model: None,
                remark: "answers fixed in advance".to_owned(),
                manifest: digest,
                session: None,
            }),
            Fact::Screened { passed: true },
            Fact::Fixed(fix),
            Fact::Decided(DecisionFact {
                proposal: ProposalId::new(Millis(0), [5; 10]),
                verdict: Verdict::Approve,
                class: Class::Functional,
                document: serde_json::json!({"verdict": "approve", "reasons": ["difference.rs is sensitive"]}),
                rules: digest,
                proposal_event: Sha256Digest::of(b"proposal"),
                decision_event: Sha256Digest::of(b"decision"),
            }),
            Fact::Pushed { commit: desk.head },
            Fact::Opened {
                number: 7,
                url: "https://github.example/acme/difference/pull/7".to_owned(),
            },
        ];
        for fact in facts {
            self.step(Outcome::fact(fact)).await;
        }
    }

    /// The question, as it is asked when nothing is wrong.
    fn request(&self) -> ApprovalRequest {
        let fix = self.snapshot.fix().unwrap();
        let project = &self.desk.project;
        ApprovalRequest {
            binding: Binding {
                repository_id: project.repository_id.clone(),
                host: project.host.clone(),
                pull_request: 7,
                base_ref: "main".to_owned(),
                merge_base: fix.base_commit,
                head_ref: fix.branch.clone(),
                head_commit: fix.commit,
                head_tree: fix.tree,
                change: fix.change.clone(),
                merge_method: MergeMethod::Squash,
                title: fix.title.clone(),
                body: fix.body.clone(),
                expires_at: SystemClock.now().plus_seconds(3_600),
            },
            proposal: Sha256Digest::of(b"proposal"),
            decision: Sha256Digest::of(b"decision"),
            principal: project.owner.clone(),
        }
    }

    /// A link is sent, and the worker waits for the answer.
    async fn ask(mut self, request: ApprovalRequest) -> Asked {
        seal(&self.desk.home());
        let name = Sha256Digest::of(self.claim.incident.as_str().as_bytes());
        let token = ApprovalToken::from_random(*name.as_bytes());
        let (digest, principal) = (request.digest(), request.principal.clone());
        let until = request.binding.expires_at;
        self.step(Outcome::fact(Fact::Requested {
            request: Box::new(request),
        }))
        .await;
        // Made after the question, so that the history has one order however the clock ticks.
        let now = SystemClock.now();
        let approval = ApprovalId::new(now, [3; 10]);
        let link = NewLink {
            approval: approval.clone(),
            token: token.hash(),
            request: digest,
            principal,
            issued_at: now,
            expires_at: until,
        };
        self.step(Outcome {
            link: Some(link),
            ..Outcome::default()
        })
        .await;
        self.step(Outcome::fact(Fact::LinkSent { approval })).await;
        let reason = "waiting for the owner's answer";
        Asked {
            token,
            incident: self.rest(Some(until), reason, 0).await,
        }
    }
}

/// An incident whose owner was asked.
struct Asked {
    incident: IncidentId,
    /// The link that was sent.
    token: ApprovalToken,
}

impl Asked {
    /// Asked in good order.
    async fn about(desk: &Desk, job: &str) -> Self {
        let mut story = desk.story(job).await;
        story.propose("the sign is wrong").await;
        let request = story.request();
        story.ask(request).await
    }

    fn id(&self) -> &str {
        self.incident.as_str()
    }
}

/// What a process left behind.
struct Ran {
    code: Option<i32>,
    out: String,
    error: String,
}

impl Ran {
    fn json(&self) -> serde_json::Value {
        assert_eq!((self.code, self.error.as_str()), (Some(0), ""));
        serde_json::from_str(&self.out).unwrap()
    }

    /// Exit code and everything printed, without what differs from run to run.
    fn shown(&self) -> String {
        let code = self.code.unwrap();
        let text = format!("[{code}]\n{}{}", self.out, self.error);
        let masks = [
            (r"/\S*/home/", "…/home/"),
            (r"inc-[0-9a-v]{26}", "inc-…"),
            (r"prj-[0-9a-v]{26}", "prj-…"),
            (r"apr-[0-9a-v]{26}", "apr-…"),
            (r"\b[0-9a-f]{64}\b", "[digest]"),
            (r"\b[0-9a-f]{40}\b", "[object]"),
            (r"20\d\d-\d\d-\d\dT[0-9:.]+Z", "[time]"),
            (r"20\d\d-\d\d-\d\d [0-9:]+ UTC", "[time]"),
        ];
        masks.into_iter().fold(text, |text, (mask, shown)| {
            let mask = regex::Regex::new(mask).unwrap();
            mask.replace_all(&text, shown).into_owned()
        })
    }
}

fn run(home: &Path, user: &str, arguments: &[&str]) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .args(arguments)
        .current_dir(home.parent().unwrap())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("USER", user)
        .env("CARETAKER_HOME", home)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: status.code(),
        out: String::from_utf8(stdout).unwrap(),
        error: String::from_utf8(stderr).unwrap(),
    }
}

fn project(owner: &str, now: Millis) -> Project {
    Project {
        id: ProjectId::new(now, [2; 10]),
        organisation: OrganisationId::new(now, [1; 10]),
        url: "https://github.example/acme/difference".to_owned(),
        repository_id: "4711".to_owned(),
        full_name: "acme/difference".to_owned(),
        host: "github.example".to_owned(),
        rules: "denied: []\n".to_owned(),
        rules_digest: Sha256Digest::of(b"rules"),
        intent: String::new(),
        owner: owner.parse().unwrap(),
        state: ProjectState::Draft,
        frozen: None,
        draft_digest: Sha256Digest::of(b"draft"),
        created_at: now,
        confirmed_at: None,
        watch: WatchMode::Ci,
        health: "[]".to_owned(),
        schedule: None,
        removed_at: None,
    }
}

fn failure(job: &str, commit: Oid) -> Failure {
    Failure {
        kind: FailureKind::Code,
        workflow_id: 7,
        workflow: Some("ci".to_owned()),
        scope: "push".to_owned(),
        base_ref: "main".to_owned(),
        job: Some(job.to_owned()),
        job_id: Some(9),
        run_id: 1_042,
        attempt: 1,
        commit,
        url: Some("https://github.example/acme/difference/actions/runs/1042".to_owned()),
        detail: None,
    }
}

/// A commit with one file, made by git itself; the same arguments give the same commit.
fn commit(repository: &Path, line: &str, parent: Option<Oid>) -> Oid {
    let blob = git(repository, &["hash-object", "-w", "--stdin"], line);
    let listing = format!("100644 blob {}\tdifference.rs\n", blob.trim());
    let tree = git(repository, &["mktree"], &listing);
    let parent = parent.map(|parent| parent.to_string());
    let mut arguments = vec!["commit-tree", tree.trim(), "-m", "made by git"];
    if let Some(parent) = &parent {
        arguments.extend(["-p", parent]);
    }
    git(repository, &arguments, "").trim().parse().unwrap()
}

fn tree(repository: &Path, commit: Oid) -> Oid {
    let name = format!("{commit}^{{tree}}");
    let tree = git(repository, &["rev-parse", &name], "");
    tree.trim().parse().unwrap()
}

fn change(repository: &Path, base: Oid, head: Oid) -> ChangeDocument {
    let repository = TrustedRepository::open_or_create(repository).unwrap();
    ChangeDocument::from(&repository.change_set(base, head).unwrap())
}

fn git(repository: &Path, arguments: &[&str], stdin: &str) -> String {
    let mut child = Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_AUTHOR_DATE", "1700000000 +0000"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_DATE", "1700000000 +0000"),
        ])
        .current_dir(repository)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(stdin.as_bytes()).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}
