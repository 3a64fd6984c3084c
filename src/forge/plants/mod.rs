//! Repositories with a known defect, ready to be found: for the demo and for tests.
//!
//! One of them has none: its test fails when the machine is slow, and passes when the run is tried again.

use super::error::ForgeError;
use super::handle::{NewJob, NewRun, NewStep, RepositoryHandle};
use super::state::Ci;
use super::time::{START, rfc3339};
use super::{FileEdit, Forge};

/// What is planted. Each is a small Rust crate without dependencies whose tests compile offline; one of them fails
/// because of one wrong character on `main`, or failed by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// `acme/percent`: the defect is in `src/percent.rs`, where a fix may be made.
    RedTest,
    /// `acme/session`: the defect is in `src/auth/token.rs`, which a project would deny to programs.
    DeniedPath,
    /// `acme/courier`: nothing is wrong on `main`; a test in `src/lib.rs` does not wait long enough for a slow machine.
    FlakyTest,
}

impl Plant {
    /// Every plant, for messages that list them.
    pub const ALL: [Self; 3] = [Self::RedTest, Self::DeniedPath, Self::FlakyTest];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::RedTest => "red-test",
            Self::DeniedPath => "denied-path",
            Self::FlakyTest => "flaky-test",
        }
    }

    /// The plant of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plant| plant.name() == name)
    }
}

/// A planted repository.
#[derive(Clone, Debug)]
pub struct Planted {
    /// The repository; its continuous integration is [`Ci::Automatic`].
    pub repository: RepositoryHandle,
    /// The failed run of the workflow `CI` for the only commit on `main`.
    pub run: u64,
    /// The file with the defect.
    pub file: &'static str,
    /// The wrong piece of it, which occurs once.
    pub wrong: &'static str,
    /// What should stand there.
    pub right: &'static str,
}

/// The parts of a plant.
struct Seed {
    repository: &'static str,
    files: &'static [(&'static str, &'static str)],
    log: &'static str,
    file: &'static str,
    wrong: &'static str,
    right: &'static str,
}

const PERCENT: Seed = Seed {
    repository: "percent",
    files: &[
        ("Cargo.toml", include_str!("percent/manifest.toml")),
        ("Cargo.lock", include_str!("percent/lock.toml")),
        ("README.md", include_str!("percent/readme.md")),
        (".github/workflows/ci.yml", include_str!("percent/ci.yml")),
        (".gitignore", "/target\n"),
        ("src/lib.rs", include_str!("percent/lib.rs")),
        ("src/percent.rs", include_str!("percent/percent.rs")),
        ("src/query.rs", include_str!("percent/query.rs")),
    ],
    log: include_str!("percent/log.txt"),
    file: "src/percent.rs",
    wrong: "b'a'..=b'e'",
    right: "b'a'..=b'f'",
};

const SESSION: Seed = Seed {
    repository: "session",
    files: &[
        ("Cargo.toml", include_str!("session/manifest.toml")),
        ("Cargo.lock", include_str!("session/lock.toml")),
        ("README.md", include_str!("session/readme.md")),
        (".github/workflows/ci.yml", include_str!("session/ci.yml")),
        (".gitignore", "/target\n"),
        ("src/lib.rs", include_str!("session/lib.rs")),
        ("src/greeting.rs", include_str!("session/greeting.rs")),
        ("src/auth/mod.rs", include_str!("session/auth_mod.rs")),
        ("src/auth/token.rs", include_str!("session/token.rs")),
    ],
    log: include_str!("session/log.txt"),
    file: "src/auth/token.rs",
    wrong: "<= self.lifetime",
    right: "< self.lifetime",
};

const COURIER: Seed = Seed {
    repository: "courier",
    files: &[
        ("Cargo.toml", include_str!("courier/manifest.toml")),
        ("Cargo.lock", include_str!("courier/lock.toml")),
        ("README.md", include_str!("courier/readme.md")),
        (".github/workflows/ci.yml", include_str!("courier/ci.yml")),
        (".gitignore", "/target\n"),
        ("src/lib.rs", include_str!("courier/lib.rs")),
    ],
    log: include_str!("courier/log.txt"),
    file: "src/lib.rs",
    wrong: "from_secs(2)",
    right: "from_secs(60)",
};

/// Makes the repository and the run that failed.
pub(super) fn plant(forge: &Forge, plant: Plant) -> Result<Planted, ForgeError> {
    let seed = match plant {
        Plant::RedTest => PERCENT,
        Plant::DeniedPath => SESSION,
        Plant::FlakyTest => COURIER,
    };
    let files: Vec<(&str, FileEdit)> = seed
        .files
        .iter()
        .map(|(path, text)| (*path, FileEdit::file(*text)))
        .collect();
    let repository = forge.create_repository("acme", seed.repository, &files)?;
    repository.set_ci(Ci::Automatic)?;
    let step = |name: &str, conclusion: &str| NewStep {
        name: name.to_owned(),
        conclusion: Some(conclusion.to_owned()),
    };
    let job = NewJob {
        name: "test".to_owned(),
        conclusion: Some("failure".to_owned()),
        steps: vec![
            step("Set up job", "success"),
            step("Run actions/checkout@v4", "success"),
            step("Run cargo test --locked", "failure"),
            step("Complete job", "success"),
        ],
        log: Some(stamped(seed.log)),
    };
    let run = repository.add_run(NewRun {
        workflow: "CI".to_owned(),
        workflow_id: 501,
        workflow_path: ".github/workflows/ci.yml".to_owned(),
        event: "push".to_owned(),
        branch: Some("main".to_owned()),
        head_sha: repository.tip("main")?,
        status: "completed".to_owned(),
        conclusion: Some("failure".to_owned()),
        jobs: vec![job],
    })?;
    Ok(Planted {
        repository,
        run,
        file: seed.file,
        wrong: seed.wrong,
        right: seed.right,
    })
}

/// A log as GitHub stores it: a byte order mark, and before each line its time with seven digits after the second.
fn stamped(log: &str) -> Vec<u8> {
    let stamp = |(index, line): (u64, &str)| {
        // A line every 37.0421 milliseconds, from half a minute after the commit.
        let ticks = index * 370_421;
        let second = rfc3339(START + 30 + ticks / 10_000_000);
        format!(
            "{}.{:07}Z {line}\n",
            second.trim_end_matches('Z'),
            ticks % 10_000_000
        )
    };
    let lines: Vec<String> = (0_u64..).zip(log.lines()).map(stamp).collect();
    format!("\u{feff}{}", lines.concat()).into_bytes()
}
