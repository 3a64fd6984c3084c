//! A repository that is called otherwise than it was.

use caretaker::onboard::{OnboardError, pause};
use caretaker::store::ProjectState;

use super::stand_in::{FIRST, Place};
use super::{NOW, confirm};

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_repository_is_a_draft_with_its_new_name_and_the_same_token() {
    let place = Place::new().await;
    let project = place.confirmed(1).await;
    let error = place.rename(&project.id).await.unwrap_err();
    assert!(matches!(error, OnboardError::NotRenamed { .. }), "{error}");

    place.say(|said| said.full_name = "octo/gadget");
    let renamed = place.rename(&project.id).await.unwrap();
    let after = &renamed.after;
    assert_eq!(renamed.before.full_name, "octo/widget");
    assert_eq!(
        (after.full_name.as_str(), after.state),
        ("octo/gadget", ProjectState::Draft)
    );
    assert!(after.url.ends_with("/octo/gadget") && after.confirmed_at.is_none());
    assert_ne!(after.draft_digest, project.draft_digest);
    assert_eq!(after.repository_id, project.repository_id);
    assert_eq!(place.token(&project.id).await.as_deref(), Some(FIRST));
    let (kind, detail) = place.event(&project.id).await;
    assert_eq!(kind, "project-renamed");
    assert!(
        detail.contains("octo/widget is octo/gadget by now"),
        "{detail}"
    );

    // Nothing is watched before a person has confirmed it again.
    let due = place.store.take_looks("watch", NOW, 9).await.unwrap();
    assert_eq!(due.len(), 0);
    let error = pause(&place.store, &place.organisation, &project.id).await;
    assert!(error.unwrap_err().to_string().contains("confirm"));
    let shown = Some(&after.draft_digest);
    let confirmed = confirm(&place.store, &place.organisation, &project.id, shown, NOW);
    assert_eq!(confirmed.await.unwrap().full_name, "octo/gadget");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_given_to_another_repository_is_not_followed() {
    let place = Place::new().await;
    let project = place.confirmed(1).await;
    // Transferred, and somebody made a new repository under the old name.
    place.say(|said| {
        said.named = 43;
        said.full_name = "other/widget";
    });
    let renamed = place.rename(&project.id).await.unwrap();
    assert_eq!(renamed.after.full_name, "other/widget");
    assert_eq!(renamed.after.repository_id, "42");
}
