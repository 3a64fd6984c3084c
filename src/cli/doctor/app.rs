//! The configured App: its key, whether the provider knows it, and what it asks for.

use super::super::explain;
use super::super::hosting::app_interface;
use super::super::installation::Installation;
use super::Finding;
use crate::attest::text::shown;
use crate::connector::github::app::{AppView, of_app};

const CHECK: &str = "app";

/// Nothing, when no App is configured.
pub(super) async fn look(installation: &Installation, offline: bool) -> Vec<Finding> {
    let interface = match app_interface(installation) {
        Ok(None) => return Vec::new(),
        Ok(Some(interface)) => interface,
        Err(error) => return vec![Finding::failed(CHECK, explain(&error))],
    };
    if offline {
        let found = "its key can be used; what it may do was not asked (--offline)";
        return vec![Finding::ok(CHECK, found)];
    }
    match interface.app().await {
        Ok(view) => judged(&view),
        Err(error) if error.is_transient() => {
            vec![Finding::warning(CHECK, shown(&error.to_string()))]
        }
        Err(error) => vec![Finding::failed(CHECK, shown(&error.to_string()))],
    }
}

fn judged(view: &AppView) -> Vec<Finding> {
    let found = format!("{} is App number {}", shown(&view.name), view.id);
    let mut findings = vec![Finding::ok(CHECK, found)];
    let (missing, beyond) = (
        of_app(false).beyond(&view.permissions),
        view.permissions.beyond(&of_app(true)),
    );
    findings.push(if missing.is_empty() {
        Finding::ok("app missing", "nothing")
    } else {
        let found = format!(
            "the App lacks {}; add it on the App's page, then let each owner accept the change",
            shown(&missing.to_string())
        );
        Finding::failed("app missing", found)
    });
    findings.push(if beyond.is_empty() {
        Finding::ok("app unneeded", "nothing")
    } else {
        let found = format!(
            "the App may do more than is needed: {}; take it out on the App's page. Tokens are made without it in any case",
            shown(&beyond.to_string())
        );
        Finding::warning("app unneeded", found)
    });
    findings
}
