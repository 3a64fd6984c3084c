//! Registering a repository of a forge, confirming it, and watching it from then on.

mod as_app;
mod command;
mod credential;
mod doctor;
mod removal;
mod renaming;
mod stand_in;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caretaker::attest::predicate::PolicyVersion;
use caretaker::attest::{Envelope, OrganisationEvent, Predicate, Role, authenticate};
use caretaker::change::Sha256Digest;
use caretaker::clock::{Millis, SystemClock};
use caretaker::config::{Poll, ServiceUrl, health_checks};
use caretaker::connector::Connector;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{GithubConnector, GithubOptions, check_token};
use caretaker::forge::{Forge, ForgeOptions, Moment, Plant, Planted, start};
use caretaker::id::{OrganisationId, ProjectId};
use caretaker::onboard::{
    self, Confirmation, Office, OnboardError, Registered, Registration, Repository, draft_digest,
    pause, register, resume,
};
use caretaker::signer::{CredentialSeal, Keyring, system_randomness};
use caretaker::store::{Project, ProjectState, Store, WatchMode};
use caretaker::watch::{Watch, run};
use caretaker::worker::Connectors;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

const NOW: Millis = Millis(1_790_000_000_000);
const RULES: &str = "denied: ['src/auth/**']\n";

/// A forge, an installation and a person who registers.
struct Bench {
    forge: Forge,
    planted: Planted,
    store: Store,
    organisation: OrganisationId,
    seal: CredentialSeal,
    base: ServiceUrl,
    _folder: tempfile::TempDir,
}

fn connector(
    base: &str,
    full_name: &str,
    token: SecretString,
) -> Result<Arc<dyn Connector>, String> {
    check_token(&token).map_err(|error| error.to_string())?;
    let (owner, name) = full_name.split_once('/').unwrap();
    let options = GithubOptions {
        api_url: base.to_owned(),
        web_url: base.to_owned(),
        git_url: base.to_owned(),
        owner: owner.to_owned(),
        name: name.to_owned(),
        credential: Arc::new(PersonalToken::new(token)),
        expected_repository_id: None,
        deadline: Duration::from_secs(20),
    };
    let made = GithubConnector::alone(options, Arc::new(SystemClock));
    made.map(|made| Arc::new(made) as Arc<dyn Connector>)
        .map_err(|error| error.to_string())
}

impl Bench {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let forge = start(ForgeOptions::new(
            folder.path().join("forge"),
            ([127, 0, 0, 1], 0).into(),
        ))
        .await
        .unwrap();
        let planted = forge.plant(Plant::RedTest).unwrap();
        let store = store(folder.path()).await;
        let organisation = OrganisationId::new(NOW, [3; 10]);
        store
            .ensure_organisation(&organisation, "example", NOW)
            .await
            .unwrap();
        Self {
            base: forge.url().parse().unwrap(),
            forge,
            planted,
            store,
            organisation,
            seal: CredentialSeal::new([9; 32]),
            _folder: folder,
        }
    }

    fn registration(&self) -> (String, SecretString) {
        let token = self.forge.token().to_owned().into();
        (self.planted.repository.url(), token)
    }

    async fn register(
        &self,
        bend: impl FnOnce(&mut Registration<'_>),
    ) -> Result<Registered, OnboardError> {
        let (url, token) = self.registration();
        let mut registration = Registration {
            url: &url,
            token,
            watch: WatchMode::Ci,
            health: &[],
            schedule: None,
            rules: RULES.as_bytes(),
            rules_file: "rules.yaml",
            intent: "Keep it correct.\n",
            owner: "mailto:owner@example.org".parse().unwrap(),
        };
        bend(&mut registration);
        let base = self.base.as_str();
        let connect = |full_name: &str, token| connector(base, full_name, token);
        let office = Office {
            store: &self.store,
            organisation: &self.organisation,
            web_url: &self.base,
            connect: &connect,
            seal: &self.seal,
        };
        let mut entropy = [0; 10];
        system_randomness(&mut entropy).unwrap();
        let id = ProjectId::new(NOW, entropy);
        register(&office, &registration, id, &mut system_randomness, NOW).await
    }

    async fn refused(&self, bend: impl FnOnce(&mut Registration<'_>)) -> String {
        let error = self.register(bend).await.unwrap_err().to_string();
        assert!(!error.contains(self.forge.token()), "{error}");
        let projects = self.store.within(&self.organisation).projects().await;
        assert_eq!(projects.unwrap(), [], "{error}");
        error
    }

    async fn confirm(&self, id: &ProjectId) -> Result<Project, OnboardError> {
        confirm(&self.store, &self.organisation, id, None, NOW).await
    }
}

/// Somebody confirms, with keys that nobody uses otherwise.
async fn confirm(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
    shown: Option<&Sha256Digest>,
    now: Millis,
) -> Result<Project, OnboardError> {
    let keys = Keyring::in_memory(Some(organisation.clone()), now, &mut system_randomness);
    confirm_under(&keys.unwrap(), store, id, shown, now).await
}

async fn confirm_under(
    keys: &Keyring,
    store: &Store,
    id: &ProjectId,
    shown: Option<&Sha256Digest>,
    now: Millis,
) -> Result<Project, OnboardError> {
    let confirmation = Confirmation {
        shown,
        by: &"local:ada".parse().unwrap(),
        signer: keys.signer(Role::Policy),
        trust: keys.history(),
        random: system_randomness,
    };
    onboard::confirm(store, keys.organisation(), id, &confirmation, now).await
}

async fn store(folder: &Path) -> Store {
    let url = format!("sqlite://{}", folder.join("caretaker.db").display());
    Store::open(&url).await.unwrap()
}

/// The warnings that are not about the token.
fn about_rules(registered: &Registered) -> Vec<&str> {
    let warnings = registered.warnings.iter().map(String::as_str);
    warnings
        .filter(|warning| !warning.contains("token"))
        .collect()
}

/// One connector for every project.
struct Fixed(Arc<dyn Connector>);

#[async_trait]
impl Connectors for Fixed {
    async fn of(&self, _: &Project) -> Result<Arc<dyn Connector>, String> {
        Ok(Arc::clone(&self.0))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registered_repository_is_a_draft_with_a_sealed_token() {
    let bench = Bench::new().await;
    let registered = bench.register(|_| {}).await.unwrap();
    assert_eq!(about_rules(&registered), Vec::<&str>::new());
    let project = registered.project;
    assert_eq!(project.url, bench.planted.repository.url());
    assert_eq!(project.full_name, "acme/percent");
    assert_eq!(
        project.repository_id,
        bench.planted.repository.id().to_string()
    );
    assert_eq!(project.state, ProjectState::Draft);
    assert_eq!(project.draft_digest, draft_digest(&project));
    let sealed = bench.store.credential(&project.id).await.unwrap().unwrap();
    let token = bench.forge.token().as_bytes();
    assert!(!sealed.windows(token.len()).any(|piece| piece == token));
    let draft = draft_digest(&project);
    let opened = bench.seal.open(&project.id, &draft, &sealed).unwrap();
    assert_eq!(opened.expose_secret(), bench.forge.token());
}

/// What a person confirmed is what the credential is for. The line to break is named in `signer::credential`.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_changed_in_the_database_has_no_credential() {
    let bench = Bench::new().await;
    let project = bench.register(|_| {}).await.unwrap().project;
    let sealed = bench.store.credential(&project.id).await.unwrap().unwrap();
    let bends: [fn(&mut caretaker::store::Project); 4] = [
        |project| project.rules.push_str("\nsecond_opinion: off\n"),
        |project| project.owner = "mailto:mallory@example.org".parse().unwrap(),
        |project| project.full_name = "acme/other".to_owned(),
        |project| project.intent.push('!'),
    ];
    for bend in bends {
        let mut changed = project.clone();
        bend(&mut changed);
        let draft = draft_digest(&changed);
        assert!(bench.seal.open(&project.id, &draft, &sealed).is_err());
    }
}

fn watch_of(store: Store, connectors: Arc<dyn Connectors>) -> Watch {
    let poll = Poll::default();
    Watch::new(
        store,
        connectors,
        system_randomness,
        poll,
        "test".to_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_watched_before_a_person_confirms_and_everything_after() {
    let bench = Bench::new().await;
    let project = bench.register(|_| {}).await.unwrap().project;
    let connectors =
        Fixed(connector(bench.base.as_str(), "acme/percent", bench.registration().1).unwrap());
    let mut watch = watch_of(bench.store.clone(), Arc::new(connectors));
    // Break it: let `TAKE_LOOKS` in the store take drafts too.
    assert_eq!(watch.round().await.unwrap(), []);
    assert!(
        bench
            .forge
            .requests()
            .iter()
            .all(|request| !request.path.contains("/actions/"))
    );

    let confirmed = bench.confirm(&project.id).await.unwrap();
    assert_eq!(confirmed.state, ProjectState::Confirmed);
    let reports = watch.round().await.unwrap();
    assert_eq!(reports[0].1.opened.len(), 1);
    let incidents = bench
        .store
        .within(&bench.organisation)
        .incidents()
        .await
        .unwrap();
    assert_eq!(incidents[0].failure.run_id, bench.planted.run);

    // Neither a second look nor another process raises it again.
    let connectors =
        Fixed(connector(bench.base.as_str(), "acme/percent", bench.registration().1).unwrap());
    let mut restarted = watch_of(bench.store.clone(), Arc::new(connectors));
    for watch in [&mut watch, &mut restarted] {
        assert_eq!(watch.round().await.unwrap()[0].1.opened, []);
    }
    pause(&bench.store, &bench.organisation, &project.id)
        .await
        .unwrap();
    assert_eq!(watch.round().await.unwrap(), []);
    resume(&bench.store, &bench.organisation, &project.id)
        .await
        .unwrap();
    assert_eq!(watch.round().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_does_not_end_the_watch() {
    let bench = Bench::new().await;
    let project = bench.register(|_| {}).await.unwrap().project;
    bench.confirm(&project.id).await.unwrap();
    let wrong = connector(
        bench.base.as_str(),
        "acme/percent",
        "wrong".to_owned().into(),
    );
    let mut failing = watch_of(bench.store.clone(), Arc::new(Fixed(wrong.unwrap())));
    assert_eq!(failing.round().await.unwrap(), []);
    let right = connector(bench.base.as_str(), "acme/percent", bench.registration().1);
    let mut watch = watch_of(bench.store.clone(), Arc::new(Fixed(right.unwrap())));
    assert_eq!(watch.round().await.unwrap()[0].1.opened.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watch_looks_at_once_and_stops_in_the_middle_of_a_look_without_losing_anything() {
    let bench = Bench::new().await;
    let project = bench.register(|_| {}).await.unwrap().project;
    bench.confirm(&project.id).await.unwrap();
    let right = connector(bench.base.as_str(), "acme/percent", bench.registration().1);
    let connectors: Arc<dyn Connectors> = Arc::new(Fixed(right.unwrap()));
    let stop = CancellationToken::new();
    let told = stop.clone();
    bench
        .forge
        .on("GET", "/actions/runs", 1, Moment::After, move || {
            told.cancel();
            Ok(())
        });
    // Once a year: without the look at the start it would never end.
    let poll = Poll {
        schedule: Some("0 0 0 1 1 *".parse().unwrap()),
        ..Poll::default()
    };
    let watch = Watch::new(
        bench.store.clone(),
        Arc::clone(&connectors),
        system_randomness,
        poll,
        "first".to_owned(),
    );
    run(watch, stop).await;
    let mut watch = watch_of(bench.store.clone(), connectors);
    assert_eq!(watch.round().await.unwrap()[0].1.opened.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_refused_with_the_mend_and_leaves_nothing() {
    let bench = Bench::new().await;
    let wrong_token = bench.refused(|it| it.token = "ghs_wrong".to_owned().into());
    assert!(wrong_token.await.contains("does not accept the credential"));
    let empty_token = bench.refused(|it| it.token = String::new().into());
    assert!(empty_token.await.contains("token is empty"));
    let absent = format!("{}/acme/nothing", bench.base);
    let absent = bench.refused(|it| it.url = absent.as_str().to_owned().leak());
    assert!(absent.await.contains("does not exist"));
    let elsewhere = bench
        .refused(|it| it.url = "https://github.com/acme/percent")
        .await;
    assert!(
        elsewhere.contains("https://github.com") && elsewhere.contains("github.web_url"),
        "{elsewhere}"
    );
    let health = bench.refused(|it| it.watch = WatchMode::Health);
    assert!(health.await.contains("at least one check"));
    let text = r#"[{"name": "site", "url": "https://site.example/"}]"#;
    let checks = health_checks(text.as_bytes(), "checks").unwrap();
    let stray = bench.refused(|it| it.health = Vec::leak(checks));
    assert!(stray.await.contains("add --watch health"));
    let base = bench
        .refused(|it| it.rules = b"denied: []\nbase: trunk\n")
        .await;
    assert!(
        base.contains("base: trunk") && base.contains("main"),
        "{base}"
    );
    let intent = "x".repeat(70_000);
    let intent = bench.refused(|it| it.intent = intent.leak());
    assert!(intent.await.contains("65536"));
    bench.planted.repository.set_archived(true).unwrap();
    assert!(bench.refused(|_| {}).await.contains("archived"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_rules_are_refused_with_line_and_column() {
    let bench = Bench::new().await;
    for (rules, expected) in [
        ("denied: []\ndenyed: ['x']\n", "rules.yaml:2:1"),
        ("denied: ['src/auth/**'\n", "rules.yaml:"),
        ("", "the rules file is empty"),
        ("denied: ['[']\n", "denied[0]"),
        ("denied: []\nbase: refs/heads/main\n", "full reference"),
    ] {
        let error = bench.refused(|it| it.rules = rules.as_bytes()).await;
        assert!(error.contains(expected), "{error}");
    }
    let warned = bench.register(|it| {
        it.rules = b"denied: []\n";
        it.intent = "";
    });
    assert_eq!(about_rules(&warned.await.unwrap()).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_confirms_exactly_the_draft_they_saw() {
    let bench = Bench::new().await;
    let first = bench.register(|_| {}).await.unwrap().project;
    let other = bench
        .register(|it| it.intent = "Else.")
        .await
        .unwrap()
        .project;
    assert_ne!(first.draft_digest, other.draft_digest);
    let (store, organisation) = (&bench.store, &bench.organisation);
    let wrong = Some(&other.draft_digest);
    let error = confirm(store, organisation, &first.id, wrong, NOW)
        .await
        .unwrap_err();
    assert!(matches!(error, OnboardError::OtherDraft { .. }), "{error}");
    let right = Some(&first.draft_digest);
    confirm(store, organisation, &first.id, right, NOW)
        .await
        .unwrap();
    // The repository is watched by one project, and a draft is confirmed once.
    let error = bench.confirm(&other.id).await.unwrap_err().to_string();
    assert!(error.contains("watched by"), "{error}");
    let error = bench.confirm(&first.id).await.unwrap_err().to_string();
    assert!(error.contains("no draft any more"), "{error}");
    let error = pause(store, organisation, &other.id)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("confirm"), "{error}");
    let nobody = ProjectId::new(NOW, [8; 10]);
    let error = bench.confirm(&nobody).await.unwrap_err();
    assert!(matches!(error, OnboardError::Absent(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_that_was_changed_in_the_database_is_not_confirmed() {
    let bench = Bench::new().await;
    let project = bench.register(|_| {}).await.unwrap().project;
    let laxer = Project {
        id: ProjectId::new(NOW, [8; 10]),
        rules: "denied: []\n".to_owned(),
        ..project
    };
    bench.store.insert_project(&laxer, b"sealed").await.unwrap();
    let error = bench.confirm(&laxer.id).await.unwrap_err();
    assert!(matches!(error, OnboardError::Changed { .. }), "{error}");
}

#[test]
fn addresses_name_a_repository_of_the_configured_provider_or_nothing() {
    let read = |base: &str, text: &str| {
        Repository::parse(text, &base.parse().unwrap()).map(|found| found.full_name())
    };
    let github = "https://github.com";
    for text in [
        "https://github.com/acme/widget",
        "https://GitHub.com:443/acme/widget/",
        "https://github.com/acme/widget.git",
    ] {
        assert_eq!(read(github, text).unwrap(), "acme/widget", "{text}");
    }
    let below = "https://example.com/git";
    assert_eq!(read(below, "https://example.com/git/a/b").unwrap(), "a/b");
    for (base, text) in [
        (github, "acme/widget"),
        (github, ""),
        (github, "http://github.com/acme/widget"),
        (github, "https://github.com.example.org/acme/widget"),
        (github, "https://github.com:8443/acme/widget"),
        (github, "https://user:hunter2@github.com/acme/widget"),
        (github, "https://github.com/acme"),
        (github, "https://github.com/acme/"),
        (github, "https://github.com/acme/widget/tree/main"),
        (github, "https://github.com/acme/widget?tab=readme"),
        (github, "https://github.com/acme/widget#x"),
        (github, "https://github.com/acme/..%2fwidget"),
        (github, "https://github.com/a%20b/widget"),
        (github, "https://github.com//widget"),
        (github, "git@github.com:acme/widget.git"),
        (github, "file:///acme/widget"),
        (below, "https://example.com/acme/widget"),
        (below, "https://example.com/github/acme/widget"),
    ] {
        let error = read(base, text).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        assert!(error.contains(base), "{error}");
    }
}

/// The forge's own tokens, of both kinds, as `doctor` and registration see them.
#[tokio::test(flavor = "multi_thread")]
async fn the_forges_tokens_are_told_apart_by_what_they_may_do() {
    use caretaker::forge::{NewToken, TokenKind};
    let bench = Bench::new().await;
    let said = |kind| {
        let token = bench.forge.issue_token(NewToken {
            kind,
            repositories: None,
            expires_at: None,
        });
        let made = connector(bench.base.as_str(), "acme/percent", token.into());
        async move { made.unwrap().access().await.unwrap() }
    };
    let scopes = |words: &[&str]| TokenKind::Classic {
        scopes: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let classic = said(scopes(&["repo", "workflow"])).await;
    assert_eq!(
        (classic.missing.len(), classic.unneeded),
        (0, vec!["workflow".to_owned()])
    );
    assert_eq!(said(scopes(&["repo:status"])).await.missing, ["repo"]);
    let permissions = |words: &[(&str, &str)]| TokenKind::FineGrained {
        permissions: words
            .iter()
            .map(|(name, level)| ((*name).to_owned(), (*level).to_owned()))
            .collect(),
    };
    let all = [
        ("contents", "write"),
        ("pull_requests", "write"),
        ("actions", "write"),
        ("checks", "read"),
        ("statuses", "read"),
    ];
    let fine_grained = said(permissions(&all)).await;
    assert_eq!(fine_grained.missing, Vec::<String>::new());
    assert!(!fine_grained.untold.is_empty());
    let less = said(permissions(&all[..2])).await;
    assert_eq!(
        less.missing,
        ["actions:write", "checks:read", "statuses:read"]
    );
}

/// The versions of rules that the log has, oldest first, each signed by policy.
async fn versions(keys: &Keyring, store: &Store) -> Vec<PolicyVersion> {
    let scoped = store.within(keys.organisation());
    let statements = scoped.logged_statements().await.unwrap();
    let version = |entry: &Vec<u8>| {
        let envelope = Envelope::parse(entry).unwrap();
        let attested = authenticate(keys.history(), &envelope).unwrap();
        match attested.into_statement().into_predicate() {
            Predicate::Organisation(OrganisationEvent::PolicyVersion(version)) => *version,
            other => panic!("{other:?}"),
        }
    };
    statements.iter().rev().map(version).collect()
}

/// Break it: leave the leaf out of `Store::confirm_project`.
#[tokio::test(flavor = "multi_thread")]
async fn the_rules_that_come_into_force_are_signed_and_logged() {
    let bench = Bench::new().await;
    let (store, organisation) = (&bench.store, &bench.organisation);
    let keys = Keyring::in_memory(Some(organisation.clone()), NOW, &mut system_randomness);
    let keys = keys.unwrap();
    let by = "local:ada".parse().unwrap();
    for (rules, number) in [(RULES, 1), (RULES, 1), ("denied: []\n", 2), (RULES, 3)] {
        let registered = bench.register(|it| it.rules = rules.as_bytes()).await;
        let project = registered.unwrap().project;
        // Without a signature nothing comes into force.
        let confirmation = Confirmation {
            shown: None,
            by: &by,
            signer: keys.signer(Role::Executor),
            trust: keys.history(),
            random: system_randomness,
        };
        let id = &project.id;
        let refused = onboard::confirm(store, organisation, id, &confirmation, NOW).await;
        let changed = versions(&keys, store)
            .await
            .last()
            .is_none_or(|newest| newest.version < number);
        if changed {
            let error = refused.unwrap_err();
            assert!(matches!(error, OnboardError::Unsigned { .. }), "{error}");
            let found = onboard::find(store, organisation, id).await.unwrap();
            assert_eq!(found.state, ProjectState::Draft);
            let confirmed = confirm_under(&keys, store, id, None, NOW).await;
            assert_eq!(confirmed.unwrap().state, ProjectState::Confirmed);
        } else {
            // The same rules are in force already: nothing is to be signed.
            assert_eq!(refused.unwrap().state, ProjectState::Confirmed);
        }
        let logged = versions(&keys, store).await;
        let newest = logged.last().unwrap();
        assert_eq!((logged.len() as u64, newest.version), (number, number));
        assert_eq!(newest.policy.sha256, Sha256Digest::of(rules.as_bytes()));
        let before = logged.iter().rev().nth(1).map(|before| before.policy);
        assert_eq!(newest.previous, before);
        assert_eq!(newest.changed_by.as_str(), "local:ada");
        let project = onboard::find(store, organisation, id).await.unwrap();
        onboard::remove(store, &project, &by, NOW).await.unwrap();
    }
}
