//! Who may do what: tokens and Apps, as their owners set them up.

use std::collections::{BTreeMap, BTreeSet};

use super::Forge;
use super::state::{AppFromManifest, Installation, Limits, NewApp, NewToken, TokenForm};

impl Forge {
    /// A person issues a token; its text, which GitHub shows once.
    pub fn issue_token(&self, token: NewToken) -> String {
        self.shared.tokens.issue(token)
    }

    /// A person revokes a token: it is worth nothing from now on, as the forge's own token may be.
    pub fn revoke_token(&self, text: &str) {
        self.shared.tokens.revoke(text);
    }

    /// A person makes an App; its number.
    pub fn create_app(&self, app: NewApp) -> u64 {
        let id = self.shared.ids.next();
        self.shared.apps.create(id, app, (self.shared.now)()).id
    }

    /// An owner installs an App on repositories given by number, or on all (`None`); the installation's number. An App that
    /// does not exist is installed nowhere, and the number leads to nothing.
    pub fn install_app(
        &self,
        app: u64,
        owner: &str,
        permissions: BTreeMap<String, String>,
        repositories: Option<Vec<u64>>,
    ) -> u64 {
        let id = self.shared.ids.next();
        if let Some(app) = self.shared.apps.app(app) {
            let installation = Installation {
                id,
                app,
                owner: owner.to_owned(),
                owner_id: self.shared.owner_id(owner),
                permissions,
                repositories: repositories.map(BTreeSet::from_iter),
                created_at: (self.shared.now)(),
                suspended_at: None,
            };
            self.shared.apps.install(installation.clone());
            self.shared.tell_installation(&installation, "created");
        }
        id
    }

    /// Which form installation tokens have from now on, where a request does not wish for one.
    pub fn token_form(&self, form: TokenForm) {
        self.shared.apps.set_form(form);
    }

    /// An owner suspends an installation: its tokens are refused until [`Forge::unsuspend_installation`].
    pub fn suspend_installation(&self, id: u64) {
        if let Some(installation) = self.shared.apps.suspend(id, Some((self.shared.now)())) {
            self.shared.tell_installation(&installation, "suspend");
        }
    }

    /// An owner takes a suspension back.
    pub fn unsuspend_installation(&self, id: u64) {
        if let Some(installation) = self.shared.apps.suspend(id, None) {
            self.shared.tell_installation(&installation, "unsuspend");
        }
    }

    /// An owner removes an installation; its tokens end.
    pub fn remove_installation(&self, id: u64) {
        self.shared.tokens.revoke_installation(id);
        if let Some(installation) = self.shared.apps.remove(id) {
            self.shared.tell_installation(&installation, "deleted");
        }
    }

    /// What every credential may ask for from now on; what was asked before counts no more.
    pub fn limit(&self, limits: Limits) {
        self.shared.meter.set(limits);
    }

    /// What the next manifest that somebody submits becomes, and the code that is exchanged for it. The code works even
    /// where no form was sent.
    pub fn plan_manifest(&self, code: &str, app: AppFromManifest) {
        self.shared.apps.plan(code, app);
    }
}
