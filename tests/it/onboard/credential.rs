//! Another token in the place of a project's.

use caretaker::onboard::{OnboardError, draft_digest, pause};
use caretaker::signer::CredentialSeal;
use caretaker::store::ProjectState;

use super::confirm;
use super::stand_in::{FIRST, Place, SECOND, TOMORROW};

#[tokio::test(flavor = "multi_thread")]
async fn another_token_takes_the_place_of_a_projects_whatever_state_it_is_in() {
    let place = Place::new().await;
    let id = place.register(1).await.unwrap().project.id;
    for (state, token) in [
        (ProjectState::Draft, SECOND),
        (ProjectState::Confirmed, FIRST),
        (ProjectState::Paused, SECOND),
    ] {
        match state {
            ProjectState::Draft => {}
            ProjectState::Confirmed => {
                let confirmed = confirm(&place.store, &place.organisation, &id, None, super::NOW);
                confirmed.await.unwrap();
            }
            ProjectState::Paused => {
                pause(&place.store, &place.organisation, &id).await.unwrap();
            }
        }
        let old = place.sealed(&id).await;
        let replaced = place.replace(&id, token).await.unwrap();
        assert_eq!(replaced.project.state, state);
        assert_eq!(replaced.notes, Vec::<String>::new());
        assert_eq!(place.token(&id).await.as_deref(), Some(token));
        let (kind, detail) = place.event(&id).await;
        assert_eq!(kind, "credential-replaced");
        let before = replaced.before.unwrap();
        assert_eq!((before.len(), replaced.after.len()), (8, 8));
        assert_ne!(before, replaced.after);
        assert_eq!(
            detail,
            format!(
                "by local:ada: the token {before}… was replaced by {}…",
                replaced.after
            )
        );
        // The one before is not even left where the database keeps what it deleted.
        assert!(!place.stored(&old) && !place.stored(token.as_bytes()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_lacks_something_is_refused_and_the_old_one_stays() {
    let place = Place::new().await;
    let project = place.confirmed(1).await;
    place.say(|said| said.scopes = "gist");
    let error = place
        .replace(&project.id, SECOND)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("lacks repo") && error.contains("give that one"),
        "{error}"
    );
    assert!(!error.contains(SECOND), "{error}");
    assert_eq!(place.token(&project.id).await.as_deref(), Some(FIRST));
    let error = place.register(2).await.unwrap_err().to_string();
    assert!(
        error.contains("lacks repo") && error.contains("register with that one"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_more_than_needed_is_told_and_taken() {
    let place = Place::new().await;
    place.say(|said| said.scopes = "repo, workflow, delete_repo");
    let registered = place.register(1).await.unwrap();
    let warning = registered.warnings.join("\n");
    assert!(
        warning.contains("more than is needed: workflow, delete_repo"),
        "{warning}"
    );
    let id = &registered.project.id;
    let notes = place.replace(id, SECOND).await.unwrap().notes;
    assert_eq!(notes, registered.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_ends_soon_is_said_to() {
    let place = Place::new().await;
    place.say(|said| said.ends = Some(TOMORROW));
    let registered = place.register(1).await.unwrap();
    assert!(
        registered.warnings[0].contains("ends in 1 day"),
        "{:?}",
        registered.warnings
    );
    place.say(|said| said.ends = Some("2027-09-22 14:13:20 UTC"));
    let replaced = place.replace(&registered.project.id, SECOND).await.unwrap();
    assert_eq!(replaced.notes, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_another_repository_is_not_taken() {
    let place = Place::new().await;
    let project = place.confirmed(1).await;
    // Another repository has the name by now; the registered one is reached by its number.
    place.say(|said| said.named = 43);
    let replaced = place.replace(&project.id, SECOND).await.unwrap();
    assert_eq!(replaced.project.repository_id, "42");
    place.say(|said| said.numbered = 43);
    let error = place.replace(&project.id, FIRST).await.unwrap_err();
    assert!(
        matches!(error, OnboardError::OtherRepository { .. }),
        "{error}"
    );
    assert_eq!(place.token(&project.id).await.as_deref(), Some(SECOND));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_shown_to_be_confirmed_is_confirmed_again() {
    let mut place = Place::new().await;
    let project = place.confirmed(1).await;
    place.seal = CredentialSeal::new([8; 32]);
    assert_eq!(place.token(&project.id).await, None);
    let replaced = place.replace(&project.id, SECOND).await.unwrap();
    assert_eq!(
        (replaced.before, replaced.project.state),
        (None, ProjectState::Draft)
    );
    assert_eq!(place.token(&project.id).await.as_deref(), Some(SECOND));
    let confirmed = confirm(
        &place.store,
        &place.organisation,
        &project.id,
        None,
        super::NOW,
    );
    assert_eq!(confirmed.await.unwrap().state, ProjectState::Confirmed);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_were_exchanged_in_the_database_are_not_sealed_as_if_seen() {
    let place = Place::new().await;
    let project = place.confirmed(1).await;
    place
        .by_hand("UPDATE project SET rules = 'denied: []'")
        .await;
    let error = place.replace(&project.id, SECOND).await.unwrap_err();
    assert!(matches!(error, OnboardError::Changed { .. }), "{error}");
    // With a digest that fits, too, it only becomes a draft that shows the exchanged rules.
    let digest = draft_digest(&place.project(&project.id).await).to_string();
    let statement = format!("UPDATE project SET draft_digest = '{digest}'");
    place.by_hand(statement.leak()).await;
    let replaced = place.replace(&project.id, SECOND).await.unwrap();
    assert_eq!(replaced.project.state, ProjectState::Draft);
    // What is stored as the digest of the rules is still another one.
    let confirmed = confirm(
        &place.store,
        &place.organisation,
        &project.id,
        None,
        super::NOW,
    );
    let error = confirmed.await.unwrap_err();
    assert!(matches!(error, OnboardError::Changed { .. }), "{error}");
}
