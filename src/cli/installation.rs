//! What most commands work on: the configuration of this installation and the environment it came with.

use std::path::Path;

use anyhow::Context as _;

use crate::approve::Principal;
use crate::config::{Configuration, Environment};
use crate::id::OrganisationId;
use crate::store::Store;

/// The configuration, and the environment in which it names secrets.
pub(super) struct Installation {
    pub(super) configuration: Configuration,
    pub(super) environment: Environment,
}

impl Installation {
    /// Loads it; `config` is what `--config` says.
    pub(super) fn load(config: Option<&Path>) -> anyhow::Result<Self> {
        let environment = Environment::of_process()?;
        let configuration = Configuration::load(config, &environment)?;
        Ok(Self {
            configuration,
            environment,
        })
    }

    /// The database that is there, and its organisation.
    pub(super) async fn open_database(&self) -> anyhow::Result<(Store, OrganisationId)> {
        let store = Store::open_existing(self.configuration.database.secret()).await?;
        let organisation = store.organisation().await?.context(
            "the database does not hold exactly one organisation; run `caretaker keys init` and register a project, or set database.url to the right one",
        )?;
        Ok((store, organisation))
    }

    /// The user that runs this command, as the environment names them. It keeps people from acting under another's name by
    /// mistake; what keeps them from doing it on purpose is who may write the database.
    pub(super) fn current_user(&self) -> anyhow::Result<Principal> {
        let environment = &self.environment;
        let user = environment
            .value("USER")
            .or_else(|| environment.value("LOGNAME"))
            .map_or_else(
                || rustix::process::getuid().as_raw().to_string(),
                str::to_owned,
            );
        let principal = format!("local:{user}").parse();
        principal.context("naming the current user")
    }
}
