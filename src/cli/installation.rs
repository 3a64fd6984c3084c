//! What most commands work on: the configuration of this installation and the environment it came with.

use std::path::Path;

use crate::config::{Configuration, Environment};

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
}
