//! What is asked of the provider: the manifest, and the page that takes it.

use serde_json::{Value, json};
use url::Url;

use crate::config::ServiceUrl;
use crate::connector::github::app::{Permissions, of_app};

/// Everything that is the same for all.
const MANIFEST: &str = include_str!("../../../onboarding/github-app/manifest.json");
/// Longest name that the provider takes, in characters.
const LONGEST_NAME: usize = 34;
/// What a webhook tells of: hints to look now.
const EVENTS: [&str; 5] = [
    "check_suite",
    "pull_request",
    "pull_request_review",
    "push",
    "workflow_run",
];

/// The App that is wanted.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name, which the person may still change on the provider's page.
    pub name: String,
    /// The organisation that is to own it; without one, the person.
    pub organisation: Option<String>,
    /// Base of the provider's pages.
    pub web_url: ServiceUrl,
    /// The App's homepage, for people who see the App.
    pub homepage: String,
    /// Where webhooks go, if there are to be any.
    pub webhook: Option<String>,
    /// Whether it may run a failed job again.
    pub reruns: bool,
}

/// Why no App can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A name that the provider does not take.
    #[error(
        "planning the App: its name {name:?} must have 1 to {LONGEST_NAME} characters; choose another with --name"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// No organisation's name.
    #[error(
        "planning the App: {found:?} is no organisation's name; give it as in its address, letters, digits and `-` only"
    )]
    Organisation {
        /// What was given.
        found: String,
    },
    /// The manifest that comes with this program is broken.
    #[error(
        "planning the App: the manifest in this program cannot be read; this is a fault in caretaker"
    )]
    Manifest,
}

impl Plan {
    /// Checks what a person wrote.
    ///
    /// # Errors
    /// A name that cannot be one.
    pub fn check(&self) -> Result<(), PlanError> {
        let length = self.name.trim().chars().count();
        if !(1..=LONGEST_NAME).contains(&length) || self.name.chars().any(char::is_control) {
            let name = self.name.chars().take(60).collect();
            return Err(PlanError::Name { name });
        }
        let sound = |name: &String| {
            (1..=39).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        match &self.organisation {
            Some(found) if !sound(found) => {
                let found = found.chars().take(60).collect();
                Err(PlanError::Organisation { found })
            }
            _ => Ok(()),
        }
    }

    /// The permissions that are asked for.
    pub fn permissions(&self) -> Permissions {
        of_app(self.reruns)
    }

    /// The manifest, with the address to which the provider sends the person back.
    ///
    /// # Errors
    /// The manifest in this program is broken.
    pub fn manifest(&self, redirect_url: &str) -> Result<Value, PlanError> {
        let mut manifest: Value =
            serde_json::from_str(MANIFEST).map_err(|_| PlanError::Manifest)?;
        manifest["name"] = json!(self.name);
        manifest["url"] = json!(self.homepage);
        manifest["redirect_url"] = json!(redirect_url);
        manifest["default_permissions"] = json!(self.permissions());
        // The provider wants an address even for a webhook that is off.
        manifest["hook_attributes"] = match &self.webhook {
            Some(url) => json!({"url": url, "active": true}),
            None => json!({"url": self.homepage, "active": false}),
        };
        if self.webhook.is_some() {
            manifest["default_events"] = json!(EVENTS);
        }
        Ok(manifest)
    }

    /// The provider's page that takes the manifest. It gives `state` back with the code.
    pub fn action(&self, state: &str) -> String {
        let base = self.web_url.as_str();
        match &self.organisation {
            Some(name) => format!("{base}/organizations/{name}/settings/apps/new?state={state}"),
            None => format!("{base}/settings/apps/new?state={state}"),
        }
    }

    /// Where an App is installed. The address in the answer counts if it is the provider's own; else its usual place.
    pub fn install_url(&self, page: Option<&str>, slug: &str) -> String {
        let own = page.filter(|page| {
            Url::parse(page).is_ok_and(|page| page.origin() == self.web_url.url().origin())
        });
        match own {
            Some(page) => format!("{}/installations/new", page.trim_end_matches('/')),
            None => format!("{}/apps/{slug}/installations/new", self.web_url.as_str()),
        }
    }
}
