//! What is asked of the provider when an App is made.

use caretaker::connector::github::app::{needed, of_app, welcome};
use caretaker::onboard::app::Plan;
use serde_json::Value;

use super::*;

pub(super) fn plan(web_url: &str) -> Plan {
    Plan {
        name: "caretaker-octo".to_owned(),
        organisation: None,
        web_url: web_url.parse().unwrap(),
        homepage: web_url.to_owned(),
        webhook: None,
        reruns: true,
    }
}

#[test]
fn the_app_asks_for_what_is_used_and_for_nothing_else() {
    let manifest = plan("https://github.com")
        .manifest("http://127.0.0.1:1/created")
        .unwrap();
    let asked = manifest["default_permissions"].as_object().unwrap();
    let mut used = Permissions::default();
    for task in Use::ALL {
        used = used.with(&needed(task)).with(&welcome(task));
    }
    let used = serde_json::to_value(&used).unwrap();
    assert_eq!(Value::Object(asked.clone()), used);
    for never in [
        "workflows",
        "administration",
        "secrets",
        "members",
        "organization_administration",
    ] {
        assert!(!asked.contains_key(never));
    }
    // The file that people read says the same as the table that tokens follow.
    let file: Value =
        serde_json::from_str(include_str!("../../../onboarding/github-app/manifest.json")).unwrap();
    assert_eq!(file["default_permissions"], used);
    let read_me = include_str!("../../../onboarding/github-app/README.md");
    for (name, access) in of_app(true).iter() {
        assert!(
            read_me.contains(&format!("| {name} | {} |", access.word())),
            "{name}"
        );
    }
}

#[test]
fn every_use_is_served_by_what_the_app_asks_for() {
    for reruns in [true, false] {
        for task in Use::ALL {
            assert!(needed(task).beyond(&of_app(reruns)).is_empty());
        }
    }
    assert_eq!(of_app(false).get("actions"), Some(Level::Read));
}

#[test]
fn the_manifest_is_complete_with_and_without_a_webhook() {
    let quiet = plan("https://github.com");
    let told = Plan {
        webhook: Some("https://care.example/webhooks/github".to_owned()),
        homepage: "https://care.example".to_owned(),
        reruns: false,
        ..quiet.clone()
    };
    let shown = [quiet, told].map(|plan| {
        let manifest = plan.manifest("http://127.0.0.1:1/created").unwrap();
        serde_json::to_string_pretty(&manifest).unwrap()
    });
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn an_enterprise_server_has_the_page_under_its_own_address() {
    let own = plan("https://ghe.example.com/");
    assert_eq!(
        own.action("s"),
        "https://ghe.example.com/settings/apps/new?state=s"
    );
    let organisations = Plan {
        organisation: Some("octo".to_owned()),
        ..own.clone()
    };
    assert_eq!(
        organisations.action("s"),
        "https://ghe.example.com/organizations/octo/settings/apps/new?state=s"
    );
    let page = Some("https://ghe.example.com/github-apps/caretaker");
    assert_eq!(
        own.install_url(page, "caretaker"),
        "https://ghe.example.com/github-apps/caretaker/installations/new"
    );
    // An address elsewhere is nothing to send a person to.
    assert_eq!(
        own.install_url(Some("https://evil.example/apps/caretaker"), "caretaker"),
        "https://ghe.example.com/apps/caretaker/installations/new"
    );
}

#[test]
fn names_that_cannot_be_are_refused_before_anything_is_served() {
    let sound = plan("https://github.com");
    sound.check().unwrap();
    let with_name = |name: &str| Plan {
        name: name.to_owned(),
        ..sound.clone()
    };
    let of = |organisation: &str| Plan {
        organisation: Some(organisation.to_owned()),
        ..sound.clone()
    };
    for odd in [
        with_name(""),
        with_name(" "),
        with_name(&"x".repeat(35)),
        with_name("a\nb"),
    ] {
        assert!(odd.check().is_err(), "{:?}", odd.name);
    }
    for odd in ["", "a/b", "octo?x=y", "..", "a b", &"x".repeat(40)] {
        assert!(of(odd).check().is_err(), "{odd}");
    }
    insta::assert_snapshot!(
        format!("{}\n{}", with_name(&"x".repeat(35)).check().unwrap_err(), of("a/b").check().unwrap_err()),
        @r#"
    planning the App: its name "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" must have 1 to 34 characters; choose another with --name
    planning the App: "a/b" is no organisation's name; give it as in its address, letters, digits and `-` only
    "#
    );
}
