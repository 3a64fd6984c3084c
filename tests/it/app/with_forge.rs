//! The same against the local forge, which checks signatures, permissions and ends by code of its own, and with a real git.

use std::path::PathBuf;

use caretaker::change::Oid;
use caretaker::connector::github::app::{AppInterface, AppKey, AppOptions, ManifestExchange};
use caretaker::forge::{
    AppFromManifest, FileEdit, Forge, ForgeOptions, NewApp, RepositoryHandle, Sources, TokenForm,
    start_with,
};
use caretaker::workspace::git_command::{GitCommand, Push, RefName, Refspec, Remote};
use reqwest::Method;
use serde_json::json;

use super::provider::{ALL, permissions};
use super::*;

/// A forge with one repository on which the App is installed, and the tokens for it.
struct Yard {
    clock: Arc<FixedClock>,
    forge: Forge,
    repository: RepositoryHandle,
    installation: u64,
    source: InstallationTokens,
    folder: tempfile::TempDir,
}

impl Yard {
    async fn new(granted: &str, form: TokenForm) -> Self {
        let clock = Arc::new(FixedClock::at(NOW));
        let folder = tempfile::tempdir().unwrap();
        let told = Arc::clone(&clock);
        let sources = Sources {
            now: Arc::new(move || u64::try_from(told.now().0 / 1000).unwrap()),
            ..Sources::default()
        };
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = ForgeOptions::new(folder.path().join("forge"), listen);
        let forge = start_with(options, sources).await.unwrap();
        let files = [("README.md", FileEdit::file("# widget\n"))];
        let repository = forge.create_repository("acme", "widget", &files).unwrap();
        forge.create_repository("acme", "gadget", &files).unwrap();
        let app = forge.create_app(NewApp {
            name: "Caretaker of Acme".to_owned(),
            slug: "caretaker-acme".to_owned(),
            public_key_pem: include_str!("keys/public.pem").to_owned(),
        });
        let repositories = Some(vec![repository.id()]);
        let installation = forge.install_app(app, "acme", permissions(granted), repositories);
        forge.token_form(form);
        let interface = AppInterface::new(AppOptions {
            api_url: forge.url().to_owned(),
            app,
            key: AppKey::from_pem(&SecretString::from(PKCS1)).unwrap(),
            deadline: Duration::from_secs(20),
            clock: Arc::clone(&clock) as Arc<_>,
        });
        let interface = Arc::new(interface.unwrap());
        let found = interface.installation_of("acme", "widget").await.unwrap();
        assert_eq!(found.id, installation);
        let (sink, _) = keeping();
        let tokens = AppTokens::new(interface, Arc::clone(&clock) as Arc<_>, sink);
        let source = tokens.of(installation, Target::Number(repository.id()));
        Self {
            clock,
            forge,
            repository,
            installation,
            source,
            folder,
        }
    }

    async fn token(&self, task: Use) -> IssuedToken {
        self.source.token(task, QUARTER).await.unwrap()
    }

    /// The status of a call with a token.
    async fn call(&self, token: &IssuedToken, method: Method, path: &str) -> u16 {
        let client = browser().user_agent("test").build().unwrap();
        let request = client
            .request(method, format!("{}{path}", self.forge.url()))
            .bearer_auth(token.secret.expose_secret())
            .body(json!({"ref": "refs/heads/x", "sha": "0".repeat(40)}).to_string());
        request.send().await.unwrap().status().as_u16()
    }

    /// Pushes the tip of `main` as a branch, with a real git that is given this token.
    async fn push(&self, token: &IssuedToken, branch: &str) -> bool {
        let repository: PathBuf = self.folder.path().join("ours.git");
        git(&[
            "init",
            "--quiet",
            "--bare",
            "--template=",
            &repository.display().to_string(),
        ]);
        let command = GitCommand::new(repository.clone(), env!("CARGO_BIN_EXE_caretaker")).unwrap();
        let command = command.with_deadline(Duration::from_secs(20));
        let remote = Remote::new(&self.repository.clone_url(), Some(token.secret.clone())).unwrap();
        let name = |text: &str| text.parse::<RefName>().unwrap();
        let main = Refspec::Ref {
            from: name("refs/heads/main"),
            to: name("refs/remote/main"),
        };
        if command.fetch(&remote, &[main]).await.is_err() {
            return false;
        }
        let place = repository.display().to_string();
        let tip = git(&["-C", &place, "rev-parse", "refs/remote/main"]);
        let push = Push {
            reference: name(&format!("refs/heads/{branch}")),
            commit: Some(tip.trim().parse::<Oid>().unwrap()),
            expected: None,
        };
        command.push(&remote, &push).await.is_ok()
    }
}

fn git(arguments: &[&str]) -> String {
    let ran = std::process::Command::new("git")
        .args(arguments)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_both_forms_open_one_repository_for_one_use() {
    for form in [TokenForm::Short, TokenForm::Long] {
        let yard = Yard::new(ALL, form).await;
        let read = yard.token(Use::Read).await;
        let propose = yard.token(Use::Propose).await;
        let length = read.secret.expose_secret().len();
        assert_eq!(length > 500, form == TokenForm::Long, "{length}");
        for token in [&read, &propose] {
            assert_eq!(
                yard.call(token, Method::GET, "/repos/acme/widget").await,
                200
            );
        }
        // Reading does not create a reference; proposing may, and only fails for want of the commit.
        let references = "/repos/acme/widget/git/refs";
        assert_eq!(yard.call(&read, Method::POST, references).await, 403);
        assert_ne!(yard.call(&propose, Method::POST, references).await, 403);
        let elsewhere = yard
            .call(&propose, Method::POST, "/repos/acme/gadget/git/refs")
            .await;
        assert!(matches!(elsewhere, 403 | 404), "{elsewhere}");
        assert!(!yard.push(&read, "reader").await);
        assert!(yard.push(&propose, "proposer").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_sixty_one_minutes_still_pushes() {
    let yard = Yard::new(ALL, TokenForm::Long).await;
    let before = yard.token(Use::Propose).await;
    assert!(yard.push(&before, "early").await);
    yard.clock.advance_millis(minutes(61));
    assert!(
        !yard.push(&before, "late").await,
        "the first token has ended"
    );
    let now = yard.token(Use::Propose).await;
    assert!(yard.push(&now, "late").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_or_released_is_worth_nothing_and_the_next_one_works() {
    let yard = Yard::new(ALL, TokenForm::Short).await;
    let read = yard.token(Use::Read).await;
    yard.forge.revoke_token(read.secret.expose_secret());
    assert_eq!(
        yard.call(&read, Method::GET, "/repos/acme/widget").await,
        401
    );
    assert!(yard.source.refused(&read).await);
    let next = yard.token(Use::Read).await;
    assert_eq!(
        yard.call(&next, Method::GET, "/repos/acme/widget").await,
        200
    );
    let execute = yard.token(Use::Execute).await;
    yard.source.release(&execute).await.unwrap();
    assert_eq!(
        yard.call(&execute, Method::GET, "/repos/acme/widget").await,
        401
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_owner_did_is_told_apart() {
    let yard = Yard::new(
        "actions: read, contents: read, metadata: read",
        TokenForm::Short,
    )
    .await;
    let lacking = yard.source.token(Use::Propose, NOTHING).await.unwrap_err();
    assert!(
        matches!(&lacking, TokenError::Ungranted { missing, .. }
        if missing.to_string() == "contents: write, pull_requests: write"),
        "{lacking}"
    );
    yard.forge.suspend_installation(yard.installation);
    let suspended = yard.source.token(Use::Read, NOTHING).await.unwrap_err();
    assert!(
        matches!(suspended, TokenError::Suspended { .. }),
        "{suspended}"
    );
    yard.forge.remove_installation(yard.installation);
    let removed = yard.source.token(Use::Read, NOTHING).await.unwrap_err();
    assert!(matches!(removed, TokenError::Absent { .. }), "{removed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_forges_code_becomes_an_app_that_the_forge_believes() {
    let yard = Yard::new(ALL, TokenForm::Short).await;
    let code = "a180b1a3d263c81bc6441d7b990bae27d4c10679";
    let app = AppFromManifest {
        app: NewApp {
            name: "Made".to_owned(),
            slug: "made".to_owned(),
            public_key_pem: include_str!("keys/public.pem").to_owned(),
        },
        private_key_pem: PKCS1.to_owned(),
        webhook_secret: "hook".to_owned(),
        client_secret: "client".to_owned(),
    };
    yard.forge.plan_manifest(code, app);
    let clock = Arc::clone(&yard.clock) as Arc<_>;
    let exchange = ManifestExchange::new(yard.forge.url(), Duration::from_secs(20), clock);
    let exchange = exchange.unwrap();
    let made = exchange.convert(code).await.unwrap();
    assert_eq!(made.app.slug, "made");
    assert!(
        exchange.convert(code).await.is_err(),
        "a code is good for one App"
    );
    let interface = AppInterface::new(AppOptions {
        api_url: yard.forge.url().to_owned(),
        app: made.app.id,
        key: AppKey::from_pem(&made.private_key).unwrap(),
        deadline: Duration::from_secs(20),
        clock: Arc::clone(&yard.clock) as Arc<_>,
    });
    assert_eq!(interface.unwrap().app().await.unwrap().id, made.app.id);
}
