//! A project that is removed.

use caretaker::onboard::{OnboardError, find_present, pause, remove};
use caretaker::store::ProjectState;

use super::confirm;
use super::stand_in::{BEGINNING, Place, SECOND};

async fn removed(place: &Place, project: &caretaker::store::Project) -> bool {
    let by = "local:ada".parse().unwrap();
    let done = remove(&place.store, project, &by, BEGINNING).await.unwrap();
    done.1
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_the_credential_is_left_in_the_files() {
    let place = Place::new().await;
    let project = place.confirmed(1).await;
    let first = place.sealed(&project.id).await;
    assert!(place.stored(&first));
    place.replace(&project.id, SECOND).await.unwrap();
    let second = place.sealed(&project.id).await;
    assert!(place.stored(&second));

    assert!(removed(&place, &project).await);
    assert_eq!(place.sealed(&project.id).await, Vec::<u8>::new());
    // The middle of it, too: a part of a freed page would do.
    for sealed in [&first, &second] {
        assert!(!place.stored(sealed) && !place.stored(&sealed[10..40]));
    }
    let (kind, detail) = place.event(&project.id).await;
    assert_eq!(kind, "project-removed");
    assert!(detail.starts_with("by local:ada"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_project_is_gone_but_for_its_history_and_can_be_registered_again() {
    let place = Place::new().await;
    let project = place.confirmed(1).await;
    removed(&place, &project).await;
    let (store, organisation) = (&place.store, &place.organisation);
    assert_eq!(store.within(organisation).projects().await.unwrap(), []);
    let kept = place.project(&project.id).await;
    assert_eq!(kept.removed_at, Some(BEGINNING));

    let gone =
        |error: OnboardError| assert!(matches!(error, OnboardError::Removed { .. }), "{error}");
    let id = &project.id;
    gone(find_present(store, organisation, id).await.unwrap_err());
    gone(
        confirm(store, organisation, id, None, BEGINNING)
            .await
            .unwrap_err(),
    );
    gone(pause(store, organisation, id).await.unwrap_err());
    gone(place.replace(id, SECOND).await.unwrap_err());
    gone(place.rename(id).await.unwrap_err());
    let by = "local:ada".parse().unwrap();
    let again = remove(store, &project, &by, BEGINNING).await;
    assert!(again.unwrap_err().to_string().contains("removed already"));

    let other = place.confirmed(2).await;
    assert_eq!(
        (other.state, &other.repository_id),
        (ProjectState::Confirmed, &project.repository_id)
    );
}
