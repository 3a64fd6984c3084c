//! Another deployment key in the place of the present one, whatever is interrupted.

use std::ops::ControlFlow;

use caretaker::approve::Principal;
use caretaker::change::Sha256Digest;
use caretaker::id::{ApprovalId, OrganisationId, ProjectId};
use caretaker::onboard::{
    RotateError, Rotated, RotationPoint, draft_digest, rotate_deployment_key,
};
use caretaker::signer::{CredentialSeal, Rotation, RotationError, system_randomness};
use caretaker::store::{Project, ProjectState, Store, WatchMode};
use secrecy::ExposeSecret as _;

use super::{Home, NOW, mode};

/// Keys, and a database with projects whose tokens are sealed under them.
struct Installation {
    home: Home,
    store: Store,
    organisation: OrganisationId,
}

fn project(organisation: &OrganisationId, number: u8) -> Project {
    let mut project = Project {
        id: ProjectId::new(NOW, [number; 10]),
        organisation: organisation.clone(),
        url: format!("https://github.example/octo/widget-{number}"),
        repository_id: number.to_string(),
        full_name: format!("octo/widget-{number}"),
        host: "github.example".to_owned(),
        rules: "denied: []\n".to_owned(),
        rules_digest: Sha256Digest::of(b"denied: []\n"),
        intent: String::new(),
        owner: principal(),
        state: ProjectState::Draft,
        frozen: None,
        draft_digest: Sha256Digest::of(&[]),
        created_at: NOW,
        confirmed_at: None,
        watch: WatchMode::Ci,
        health: "[]".to_owned(),
        schedule: None,
        removed_at: None,
    };
    project.draft_digest = draft_digest(&project);
    project
}

fn principal() -> Principal {
    "local:ada".parse().unwrap()
}

impl Installation {
    async fn new(story: &'static str) -> Self {
        let home = Home::made(story);
        let file = home.folder.path().join("home/caretaker.db");
        let store = Store::open(&format!("sqlite://{}", file.display())).await;
        let store = store.unwrap();
        let organisation = home.open().unwrap().organisation().clone();
        let ensured = store.ensure_organisation(&organisation, "example", NOW);
        ensured.await.unwrap();
        let installation = Self {
            home,
            store,
            organisation,
        };
        for number in 1..=3 {
            installation.register(number).await;
        }
        installation
    }

    async fn register(&self, number: u8) {
        let project = project(&self.organisation, number);
        let token = format!("ghp_token-{number}").into();
        let draft = &project.draft_digest;
        let sealed = self
            .seal()
            .seal(&project.id, draft, &token, &mut system_randomness);
        let sealed = sealed.unwrap();
        let inserted = self.store.insert_project(&project, &sealed);
        inserted.await.unwrap();
    }

    fn seal(&self) -> CredentialSeal {
        CredentialSeal::read(&self.home.configuration()).unwrap()
    }

    async fn rotate(&self, stop: Option<RotationPoint>) -> Result<Rotated, RotateError> {
        let passed = move |point| {
            if stop == Some(point) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        rotate_deployment_key(
            &self.home.configuration(),
            &self.store,
            &self.organisation,
            &principal(),
            &mut system_randomness,
            NOW,
            &passed,
        )
        .await
    }

    /// Whether a seal opens every credential.
    async fn opens(&self, seal: &CredentialSeal) -> bool {
        let sealed = self.store.sealed_credentials().await.unwrap();
        sealed.iter().all(|(project, sealed)| {
            let opened = seal.open(&project.id, &project.draft_digest, sealed);
            opened.is_ok_and(|token| {
                *token.expose_secret() == *format!("ghp_token-{}", project.repository_id)
            })
        })
    }

    fn keys(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.home.keys()).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("credential") || name.starts_with('.'))
            .collect();
        names.sort();
        names
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_credential_is_sealed_under_another_key_and_the_old_one_opens_none() {
    let installation = Installation::new("rotated").await;
    let old = installation.home.read("credential.key");
    let rotated = installation.rotate(None).await.unwrap();
    assert_eq!((rotated.credentials, rotated.resumed), (3, false));
    let new = installation.home.read("credential.key");
    assert_ne!(old, new);
    assert_eq!(installation.keys(), ["credential.key"]);
    assert_eq!(mode(&installation.home.file("credential.key")), 0o600);
    assert!(installation.opens(&installation.seal()).await);
    let old = CredentialSeal::new(old.try_into().unwrap());
    let sealed = installation.store.sealed_credentials().await.unwrap();
    assert!(sealed.iter().all(|(project, sealed)| {
        old.open(&project.id, &project.draft_digest, sealed)
            .is_err()
    }));
    let scoped = installation.store.within(&installation.organisation);
    let events = scoped.project_events(&sealed[0].0.id, 9).await.unwrap();
    assert_eq!(events[0].kind, "deployment-key-rotated");
    assert!(events[0].detail.starts_with("by local:ada"), "{events:?}");
}

/// Stopped at a point, as `kill -9` would: everything opens, new things can be sealed, and the next rotation ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_that_is_cut_off_anywhere_leaves_everything_open() {
    for point in [
        RotationPoint::KeyWritten,
        RotationPoint::Resealed,
        RotationPoint::KeyInPlace,
    ] {
        let installation = Installation::new("cut off").await;
        let running = installation.seal();
        let error = installation.rotate(Some(point)).await.unwrap_err();
        assert!(
            matches!(error, RotateError::Stopped(at) if at == point),
            "{error}"
        );
        assert!(installation.opens(&running).await, "{point:?}");
        assert!(installation.opens(&installation.seal()).await, "{point:?}");
        installation.register(4).await;
        assert!(installation.opens(&running).await, "{point:?}");

        let rotated = installation.rotate(None).await.unwrap();
        assert_eq!(rotated.resumed, point != RotationPoint::KeyInPlace);
        assert_eq!(installation.keys(), ["credential.key"], "{point:?}");
        assert!(installation.opens(&installation.seal()).await, "{point:?}");
        assert!(installation.opens(&running).await, "{point:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_runs_for_long_goes_on_after_a_rotation() {
    let installation = Installation::new("running").await;
    let running = installation.home.open().unwrap();
    for _ in 0..2 {
        installation.rotate(None).await.unwrap();
        assert!(installation.opens(running.credentials()).await);
    }
    // And still when the folder of keys cannot be read any more.
    std::fs::remove_file(installation.home.file("credential.key")).unwrap();
    assert!(installation.opens(running.credentials()).await);
}

/// While a rotation is under way, links of either key count; after it, those of the new key alone.
#[tokio::test(flavor = "multi_thread")]
async fn links_follow_from_the_newest_key() {
    let installation = Installation::new("links").await;
    let running = installation.seal();
    let approval = ApprovalId::new(NOW, [1; 10]);
    let request = Sha256Digest::of(b"request");
    let made = |seal: &CredentialSeal| seal.link(&approval, &request, &principal()).hash();
    let counted = |seal: &CredentialSeal| -> Vec<_> {
        let links = seal.links(&approval, &request, &principal());
        links
            .iter()
            .map(caretaker::approve::ApprovalToken::hash)
            .collect()
    };
    let old = made(&running);
    let stopped = installation.rotate(Some(RotationPoint::Resealed)).await;
    stopped.unwrap_err();
    let new = made(&running);
    assert_ne!(old, new);
    assert_eq!(counted(&running), [new, old]);
    installation.rotate(None).await.unwrap();
    assert_eq!(made(&running), new);
    assert_eq!(counted(&running), [new]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_rotations_at_once_are_one() {
    let installation = Installation::new("twice").await;
    let configuration = installation.home.configuration();
    let first = Rotation::begin(&configuration, &mut system_randomness).unwrap();
    let second = Rotation::begin(&configuration, &mut system_randomness);
    assert!(matches!(second, Err(RotationError::Busy { .. })));
    let error = installation.rotate(None).await.unwrap_err().to_string();
    assert!(error.contains("another command is at it"), "{error}");
    drop(first);
    assert!(installation.rotate(None).await.unwrap().resumed);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_rotated_that_would_lose_a_credential() {
    let installation = Installation::new("lost").await;
    let good = installation.home.read("credential.key");
    installation.home.put("credential.key", [7; 32]);
    let error = installation.rotate(None).await.unwrap_err().to_string();
    assert!(error.contains("Nothing was changed"), "{error}");
    assert_eq!(installation.keys(), ["credential.key"]);
    installation.home.put("credential.key", good);
    assert!(installation.opens(&installation.seal()).await);

    // The wrong database.
    let file = installation.home.folder.path().join("home/other.db");
    let other = Store::open(&format!("sqlite://{}", file.display())).await;
    let installation = Installation {
        store: other.unwrap(),
        ..installation
    };
    let error = installation.rotate(None).await.unwrap_err();
    assert!(
        matches!(error, RotateError::NothingSealed { .. }),
        "{error}"
    );
}
