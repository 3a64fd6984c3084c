//! The main job when caretaker acts as an App: every token is of one repository and one use, the one that merged ends with the
//! merge, and none is written down.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::approve::HumanDecision;
use caretaker::clock::{Clock as _, SystemClock};
use caretaker::connector::github::app::{
    AppInterface, AppKey, AppOptions, AppTokens, StoredCredential, Target, of_app, token_source,
};
use caretaker::connector::github::credential::TokenSource;
use caretaker::forge::{Fault, FaultAction, Forge, NewApp, Planted, Sources, TokenForm};
use caretaker::incident::Stage;
use caretaker::onboard::app::{Recorder, token_recorder};
use secrecy::SecretString;

use super::world::{Setting, World};

/// The private key of the forge's App. It is for tests and opens nothing.
pub(crate) const KEY: &str = include_str!("../app/keys/pkcs1.pem");
const PUBLIC: &[u8] = include_bytes!("../app/keys/public.der");

/// A forge that acts with an App needs the time that the App's assertions are dated with.
pub(crate) fn sources(app: Option<TokenForm>) -> Sources {
    let sources = Sources::default();
    match app {
        Some(_) => Sources {
            now: Arc::new(|| SystemClock.now().0.unsigned_abs() / 1000),
            ..sources
        },
        None => sources,
    }
}

/// An App of the forge that is installed on one repository: its number, and the installation's.
pub(crate) fn install(forge: &Forge, planted: &Planted, form: TokenForm) -> (u64, u64) {
    let app = forge.create_app(NewApp {
        name: "Caretaker".to_owned(),
        slug: "caretaker".to_owned(),
        public_key_pem: format!(
            "-----BEGIN RSA PUBLIC KEY-----\n{}\n-----END RSA PUBLIC KEY-----\n",
            STANDARD.encode(PUBLIC)
        ),
    });
    forge.token_form(form);
    let full_name = planted.repository.full_name();
    let (owner, _) = full_name.split_once('/').unwrap();
    let permissions = of_app(true)
        .iter()
        .map(|(name, access)| (name.to_owned(), access.word().to_owned()))
        .collect();
    let repositories = Some(vec![planted.repository.id()]);
    (
        app,
        forge.install_app(app, owner, permissions, repositories),
    )
}

/// The tokens of such an App, by the credential that is sealed.
pub(crate) fn installed(
    forge: &Forge,
    planted: &Planted,
    form: TokenForm,
) -> (Arc<dyn TokenSource>, Recorder) {
    let (app, installation) = install(forge, planted, form);
    let interface = AppInterface::new(AppOptions {
        api_url: forge.url().to_owned(),
        app,
        key: AppKey::from_pem(&SecretString::from(KEY)).unwrap(),
        deadline: Duration::from_secs(10),
        clock: Arc::new(SystemClock),
    });
    let (tell, recorder) = token_recorder(100);
    let tokens = AppTokens::new(Arc::new(interface.unwrap()), Arc::new(SystemClock), tell);
    let credential = StoredCredential::Installation(installation);
    let repository = Target::Number(planted.repository.id());
    let source = token_source(credential, Some(&tokens), repository);
    (source.unwrap(), recorder)
}

/// Whether a file below a folder, but not below `forge`, has these bytes in it.
pub(crate) fn written_down(folder: &Path, bytes: &[u8]) -> Option<String> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("forge") {
                folders.push(path);
            } else if path.is_file() {
                let content = std::fs::read(&path).unwrap();
                if content.windows(bytes.len()).any(|window| window == bytes) {
                    return Some(path.display().to_string());
                }
            }
        }
    }
    None
}

impl World {
    /// What happened to tokens, oldest first: the kind and the words of each.
    async fn token_history(&mut self) -> Vec<(String, String)> {
        let (store, organisation) = (&self.engine.store, &self.project.organisation);
        let recorder = self.recorder.as_mut().unwrap();
        recorder.flush(store, organisation).await;
        let scoped = store.within(organisation);
        let mut events = scoped.project_events(&self.project.id, 100).await.unwrap();
        events.reverse();
        let tokens = events
            .into_iter()
            .filter(|event| event.kind.starts_with("token-"));
        tokens.map(|event| (event.kind, event.detail)).collect()
    }

    /// How many requests with this method and end of the path were answered with this status.
    fn answered(&self, method: &str, path: &str, status: u16) -> usize {
        let requests = self.forge.requests();
        let matching = requests.iter().filter(|record| {
            record.method == method && record.path.ends_with(path) && record.status == Some(status)
        });
        matching.count()
    }
}

async fn story(form: TokenForm) {
    let mut world = World::new(Setting {
        app: Some(form),
        ..Setting::sums()
    })
    .await;
    let stage = world.settle().await;
    let facts = world.snapshot().await.facts;
    assert_eq!(stage, Stage::AwaitingApproval, "{facts:#?}");
    world.answer(HumanDecision::Approve).await;
    let stage = world.settle().await;
    let facts = world.snapshot().await.facts;
    assert_eq!(stage, Stage::Resolved, "{facts:#?}");
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    assert_eq!(world.answered("PUT", "/merge", 200), 1);
    assert_eq!(world.answered("DELETE", "/installation/token", 204), 1);

    let history = world.token_history().await;
    for role in ["poller", "proposer", "executor"] {
        let issued = history.iter().filter(|(kind, detail)| {
            kind == "token-issued" && detail.contains(&format!("for the {role} issued"))
        });
        assert_eq!(issued.count(), 1, "{role}: {history:#?}");
    }
    let revoked: Vec<_> = history
        .iter()
        .filter(|(kind, _)| kind == "token-revoked")
        .collect();
    assert_eq!(revoked.len(), 1, "{history:#?}");
    let detail = &revoked[0].1;
    assert!(
        detail.contains("for the executor revoked after its task"),
        "{detail}"
    );
    assert_eq!(written_down(world.home(), b"ghs_"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fix_is_merged_by_the_app_and_the_token_that_merged_it_ends() {
    story(TokenForm::Short).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_the_long_form_do_as_well() {
    story(TokenForm::Long).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_server_that_does_not_know_the_long_form_gets_the_short_one() {
    let mut world = World::new(Setting {
        app: Some(TokenForm::Long),
        ..Setting::sums()
    })
    .await;
    // git asks without a credential first; the second request has the long token.
    world.forge.fault(Fault {
        method: "GET".to_owned(),
        path: ".git/info/refs".to_owned(),
        nth: 2,
        action: FaultAction::Status {
            code: 404,
            body: "Repository not found.".to_owned(),
            headers: Vec::new(),
        },
    });
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    assert_eq!(world.answered("GET", ".git/info/refs", 404), 1);
    let history = world.token_history().await;
    let issued = history.iter().filter(|(kind, detail)| {
        kind == "token-issued" && detail.contains("for the poller issued")
    });
    assert_eq!(issued.count(), 2, "one of each form: {history:#?}");
}
