//! `caretaker demo`: the whole main job on a local forge, with real git, real tests and real signatures.

mod installation;
mod person;
mod show;
mod story;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::Verdict;
use super::runtime::block_on;
use crate::config::Environment;

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// A failing test is fixed, approved, merged and proven.
    Fix,
    /// The right fix lies in a denied path: refused before anything exists.
    Denied,
    /// The pull request is changed after it was approved: nothing is merged.
    Tampered,
    /// A test fails by chance: it is run again, passes, and nothing is "fixed".
    Flaky,
}

impl Scenario {
    const fn name(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Denied => "denied",
            Self::Tampered => "tampered",
            Self::Flaky => "flaky",
        }
    }
}

/// The whole main job, from a failing CI run to a verified ledger, in a few seconds. Everything is local; the coder is
/// scripted and says so. Exit code 0 when the scenario ended as it should.
#[derive(Debug, Args)]
pub(super) struct DemoArguments {
    /// Print one JSON document at the end instead of the story.
    #[arg(long)]
    json: bool,
    /// What to show.
    #[arg(long, value_enum, default_value_t = Scenario::Fix)]
    scenario: Scenario,
    /// Keep the state in `CARETAKER_HOME`, which must be empty, so that other commands can look at it.
    #[arg(long)]
    keep: bool,
    /// Leave the pages up until interrupted.
    #[arg(long)]
    serve: bool,
}

pub(super) fn run(arguments: &DemoArguments) -> anyhow::Result<Verdict> {
    let place = Place::choose(arguments.keep)?;
    block_on(story::tell(arguments, place.path()))
}

/// Where the demo's state is.
enum Place {
    Kept(PathBuf),
    /// Removed when the demo ends.
    Temporary(tempfile::TempDir),
}

impl Place {
    fn choose(keep: bool) -> anyhow::Result<Self> {
        if !keep {
            let place = tempfile::Builder::new()
                .prefix("caretaker-demo-")
                .tempdir()
                .context("making a temporary folder for the demo")?;
            return Ok(Self::Temporary(place));
        }
        let environment = Environment::of_process()?;
        anyhow::ensure!(
            environment.value("CARETAKER_HOME").is_some(),
            "keeping the demo's state: set CARETAKER_HOME to an empty folder first, so that it does not become your real installation"
        );
        let home = environment.home()?;
        std::fs::create_dir_all(&home)
            .with_context(|| format!("making the folder {}", home.display()))?;
        let mut entries = std::fs::read_dir(&home)
            .with_context(|| format!("reading the folder {}", home.display()))?;
        anyhow::ensure!(
            entries.next().is_none(),
            "keeping the demo's state in {}: the folder is not empty; set CARETAKER_HOME to an empty one",
            home.display()
        );
        Ok(Self::Kept(home))
    }

    fn path(&self) -> &std::path::Path {
        match self {
            Self::Kept(home) => home,
            Self::Temporary(place) => place.path(),
        }
    }
}
