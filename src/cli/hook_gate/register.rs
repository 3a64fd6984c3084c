//! `hook-gate register`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::audit_stream::open_plain;
use crate::cli::installation::Installation;
use crate::cli::{Verdict, print};
use crate::clock::{Clock as _, SystemClock};
use crate::hook_gate::{BLOCKS, Home, NewSession, SessionId, register};
use crate::tool_gate::MAXIMUM_POLICY_BYTES;

/// What is registered.
#[derive(Debug, Args)]
pub(in crate::cli) struct RegisterArguments {
    /// The session: 1 to 128 letters, digits, - and _.
    #[arg(long, value_name = "ID")]
    session: String,
    /// The policy, as JSON.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The worktree.
    #[arg(long, value_name = "DIR")]
    workdir: PathBuf,
    /// What the session is for.
    #[arg(long, value_name = "TEXT")]
    intent: Option<String>,
    /// The session runs in a sandbox that keeps it in its worktree: what cannot be classified is then allowed.
    #[arg(long)]
    sandboxed: bool,
    /// The session's permission profile, one of approvals.profiles; without it the one called default counts.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// How often the end of a turn is refused before it may end without its evidence.
    #[arg(long, value_name = "N", default_value_t = BLOCKS)]
    blocks: u32,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &RegisterArguments, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let session = SessionId::parse(&arguments.session)?;
    let reading = || format!("reading the policy {}", arguments.policy.display());
    let mut policy = Vec::new();
    open_plain(&arguments.policy)
        .with_context(reading)?
        .take(MAXIMUM_POLICY_BYTES as u64 + 1)
        .read_to_end(&mut policy)
        .with_context(reading)?;
    let configuration = Installation::load(config)?.configuration;
    if let Some(profile) = &arguments.profile {
        let known = &configuration.approvals.profiles;
        // The gate would refuse every call of such a session; whoever mistyped should hear it now.
        anyhow::ensure!(
            known.contains_key(profile),
            "registering the session: the profile {profile:?} is not in approvals.profiles; there are {}",
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.keys().cloned().collect::<Vec<_>>().join(", ")
            }
        );
    }
    let home = Home::new(&configuration.home);
    let registered = register(
        &home,
        &NewSession {
            session: &session,
            policy: &policy,
            worktree: &arguments.workdir,
            intent: arguments.intent.as_deref(),
            sandboxed: arguments.sandboxed,
            posture: configuration.failure_posture,
            blocks: arguments.blocks,
            tokens: None,
            profile: arguments.profile.as_deref(),
            now: SystemClock.now(),
        },
    )?;
    if arguments.json {
        let document = serde_json::json!({
            "session": registered.session,
            "worktree": registered.worktree,
            "policy": format!("sha256:{}", registered.policy.digest()),
            "advisory": !registered.sandboxed,
        });
        print(&document.to_string())?;
    } else {
        print(&format!(
            "registered {} on {} (policy sha256:{}){}",
            registered.session,
            registered.worktree.display(),
            registered.policy.digest(),
            if registered.sandboxed {
                ""
            } else {
                "; advisory: nothing keeps an agent outside of a sandbox from going around its hooks"
            }
        ))?;
    }
    Ok(Verdict::Done)
}
