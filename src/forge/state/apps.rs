//! GitHub Apps, where they are installed, and the apps that are about to be made out of a manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Repository, locked};

/// An App to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApp {
    /// The name that people see.
    pub name: String,
    /// The name in addresses.
    pub slug: String,
    /// The RSA key that its assertions are checked with, as `BEGIN PUBLIC KEY` or `BEGIN RSA PUBLIC KEY`. With anything
    /// else no assertion of the App is ever believed.
    pub public_key_pem: String,
}

/// What a manifest will be exchanged for: GitHub makes keys and secrets itself, here a test brings them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppFromManifest {
    /// The App.
    pub app: NewApp,
    /// The private key that is handed out once.
    pub private_key_pem: String,
    /// The secret of its webhooks.
    pub webhook_secret: String,
    /// The secret of its sign-in.
    pub client_secret: String,
}

/// The form of new installation tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenForm {
    /// `ghs_` and 36 characters.
    #[default]
    Short,
    /// `ghs_`, the App's number and something like a signed assertion: about 520 characters with dots.
    Long,
}

/// An App.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) id: u64,
    pub(crate) client_id: String,
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) public_key_pem: String,
    pub(crate) created_at: u64,
}

/// An App installed at an owner.
#[derive(Clone, Debug)]
pub(crate) struct Installation {
    pub(crate) id: u64,
    pub(crate) app: Arc<App>,
    pub(crate) owner: String,
    pub(crate) owner_id: u64,
    pub(crate) permissions: BTreeMap<String, String>,
    /// `None`: every repository of the owner.
    pub(crate) repositories: Option<BTreeSet<u64>>,
    pub(crate) created_at: u64,
    pub(crate) suspended_at: Option<u64>,
}

/// A manifest's future.
#[derive(Clone, Debug)]
pub(crate) struct PlannedManifest {
    pub(crate) code: String,
    pub(crate) app: AppFromManifest,
    /// What the form said, once it was sent.
    pub(crate) manifest: Option<Value>,
}

/// Every App of a forge.
#[derive(Default)]
pub(crate) struct Apps(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    apps: BTreeMap<u64, Arc<App>>,
    installations: BTreeMap<u64, Installation>,
    manifests: Vec<PlannedManifest>,
    form: TokenForm,
}

impl Installation {
    /// Whether it reaches a repository of this owner.
    pub(crate) fn reaches(&self, repository: u64, owner: &str) -> bool {
        self.owner.eq_ignore_ascii_case(owner)
            && self
                .repositories
                .as_ref()
                .is_none_or(|chosen| chosen.contains(&repository))
    }
}

impl Apps {
    pub(crate) fn create(&self, id: u64, new: NewApp, now: u64) -> Arc<App> {
        let app = Arc::new(App {
            id,
            client_id: format!("Iv23li{id:014}"),
            name: new.name,
            slug: new.slug,
            public_key_pem: new.public_key_pem,
            created_at: now,
        });
        locked(&self.0).apps.insert(id, Arc::clone(&app));
        app
    }

    /// The App of this number.
    pub(crate) fn app(&self, id: u64) -> Option<Arc<App>> {
        locked(&self.0).apps.get(&id).cloned()
    }

    /// The App whose number or client id this is.
    pub(crate) fn issuer(&self, name: &str) -> Option<Arc<App>> {
        let inner = locked(&self.0);
        let named = |app: &&Arc<App>| app.client_id == name || app.id.to_string() == name;
        inner.apps.values().find(named).cloned()
    }

    pub(crate) fn install(&self, installation: Installation) {
        locked(&self.0)
            .installations
            .insert(installation.id, installation);
    }

    pub(crate) fn installation(&self, id: u64) -> Option<Installation> {
        locked(&self.0).installations.get(&id).cloned()
    }

    /// Where an App reaches a repository.
    pub(crate) fn installation_at(
        &self,
        app: u64,
        repository: &Repository,
    ) -> Option<Installation> {
        let owner = repository.remembered().owner.clone();
        let inner = locked(&self.0);
        let reaches = |installation: &&Installation| {
            installation.app.id == app && installation.reaches(repository.id, &owner)
        };
        inner.installations.values().find(reaches).cloned()
    }

    /// The first installation that reaches a repository of this owner.
    pub(crate) fn reaching(&self, repository: u64, owner: &str) -> Option<u64> {
        locked(&self.0)
            .installations
            .values()
            .find(|installation| installation.reaches(repository, owner))
            .map(|installation| installation.id)
    }

    /// Suspends an installation, or takes that back (`None`); the installation as it is then.
    pub(crate) fn suspend(&self, id: u64, at: Option<u64>) -> Option<Installation> {
        let mut inner = locked(&self.0);
        let installation = inner.installations.get_mut(&id)?;
        installation.suspended_at = at;
        Some(installation.clone())
    }

    pub(crate) fn remove(&self, id: u64) -> Option<Installation> {
        locked(&self.0).installations.remove(&id)
    }

    pub(crate) fn set_form(&self, form: TokenForm) {
        locked(&self.0).form = form;
    }

    pub(crate) fn form(&self) -> TokenForm {
        locked(&self.0).form
    }

    pub(crate) fn plan(&self, code: &str, app: AppFromManifest) {
        locked(&self.0).manifests.push(PlannedManifest {
            code: code.to_owned(),
            app,
            manifest: None,
        });
    }

    /// A person sends the form: the code of the oldest plan that no form was sent for.
    pub(crate) fn submit(&self, manifest: Value) -> Option<String> {
        let mut inner = locked(&self.0);
        let plan = inner
            .manifests
            .iter_mut()
            .find(|plan| plan.manifest.is_none())?;
        plan.manifest = Some(manifest);
        Some(plan.code.clone())
    }

    /// Takes out the plan of a code, which works once.
    pub(crate) fn redeem(&self, code: &str) -> Option<PlannedManifest> {
        let mut inner = locked(&self.0);
        let index = inner.manifests.iter().position(|plan| plan.code == code)?;
        Some(inner.manifests.remove(index))
    }
}
