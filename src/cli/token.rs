//! `caretaker token`.

mod check;
mod own_key;
mod record;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{Verdict, complain, explain, print};
use crate::attest::json::read;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::receipts::{
    AgentId, Constraints, Grant, Intent, Issuer, MAX_TOKEN, Narrowing, PemKey, Revocations, Token,
    TokenId, ToolName, TrustedKeys, read_public_pem,
};

pub(super) use own_key::OwnKey;

/// The longest key file or list of revoked tokens that is read, in bytes.
const MAX_LIST: u64 = 16 * 1024 * 1024;
/// The longest intent or constraints on the command line, in bytes.
const MAX_INLINE: usize = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Sign a capability token and print it.
    Mint(MintArguments),
    /// Sign a narrower token from another one and print it. What would be wider is refused: exit code 1.
    Attenuate(AttenuateArguments),
    /// Decide about a call under a token, and record the decision as a signed receipt. Exit code 0 allowed, 1 denied.
    Check(check::CheckArguments),
    /// Make a token, and all that were narrowed from it, count no longer.
    Revoke(RevokeArguments),
}

/// Who signs.
#[derive(Debug, Args)]
struct Signing {
    /// The Ed25519 private key (PEM, PKCS #8, not encrypted) that signs the token.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Who issues it, in words of your own.
    #[arg(long, value_name = "NAME", default_value = "caretaker")]
    issuer: String,
    /// The time to go by, in seconds since the Unix epoch, instead of the clock's.
    #[arg(long, value_name = "UNIX")]
    now: Option<i64>,
    /// Print a refusal as one JSON document too. A token is one in any case.
    #[arg(long)]
    json: bool,
}

/// What the new token says.
#[derive(Debug, Args)]
pub(super) struct MintArguments {
    #[command(flatten)]
    signing: Signing,
    /// Who may call, as agent:fixer; also those below it, as agent:fixer.tests.
    #[arg(long)]
    agent: String,
    /// The one tool.
    #[arg(long)]
    tool: String,
    /// How long it is valid, in seconds.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    ttl: i64,
    /// What arguments must be like, as `{"starts_with": {"path": "src/"}}`.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    constraints: String,
    /// What it is for, as `{"statement": "Mend the parser", "tools": ["Edit"]}`.
    #[arg(long, value_name = "JSON")]
    intent: Option<String>,
}

/// From what, and how much narrower.
#[derive(Debug, Args)]
pub(super) struct AttenuateArguments {
    #[command(flatten)]
    signing: Signing,
    /// The token to narrow.
    #[arg(long, value_name = "FILE")]
    parent: PathBuf,
    /// The public key that signed the parent, where that is not the key that signs now.
    #[arg(long, value_name = "FILE")]
    trusted_key: Vec<PathBuf>,
    /// The parent's agent or one below it; the parent's if it is not given.
    #[arg(long)]
    agent: Option<String>,
    /// The parent's tool; there is no other.
    #[arg(long)]
    tool: Option<String>,
    /// How long it is valid, in seconds; as long as the parent if it is not given.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    ttl: Option<i64>,
    /// What arguments must be like besides what the parent says.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    constraints: String,
    /// The child's intent as a whole, as narrow as the parent's; the parent's if it is not given.
    #[arg(long, value_name = "JSON")]
    intent: Option<String>,
}

/// Which one.
#[derive(Debug, Args)]
pub(super) struct RevokeArguments {
    /// The token's name, as cap:0123456789abcdef01234567.
    #[arg(required_unless_present = "token", conflicts_with = "token")]
    id: Option<String>,
    /// The token itself.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
    /// The list of revoked tokens, else receipts/revoked-tokens in `CARETAKER_HOME`.
    #[arg(long, value_name = "FILE")]
    revocations: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &TokenCommand) -> anyhow::Result<Verdict> {
    match command {
        TokenCommand::Mint(arguments) => say(&arguments.signing, mint(arguments)),
        TokenCommand::Attenuate(arguments) => say(&arguments.signing, attenuate(arguments)),
        TokenCommand::Check(arguments) => check::run(arguments),
        TokenCommand::Revoke(arguments) => revoke(arguments),
    }
}

/// A token to standard output, or why there is none.
fn say(signing: &Signing, token: anyhow::Result<Token>) -> anyhow::Result<Verdict> {
    match token {
        Ok(token) => {
            print(&token.to_text())?;
            Ok(Verdict::Done)
        }
        Err(error) if signing.json => {
            print(&json!({"refused": explain(&error)}).to_string())?;
            complain(&explain(&error));
            Ok(Verdict::Refused)
        }
        Err(error) => Err(error),
    }
}

impl Signing {
    fn issuer(&self) -> anyhow::Result<Issuer> {
        let key = read_private_key(&self.key)?;
        Ok(Issuer::new(&self.issuer, Arc::new(key))?)
    }
}

fn mint(arguments: &MintArguments) -> anyhow::Result<Token> {
    let grant = Grant {
        agent: AgentId::parse(&arguments.agent)?,
        tool: ToolName::parse(&arguments.tool)?,
        constraints: constraints(&arguments.constraints)?,
        intent: arguments.intent.as_deref().map(intent).transpose()?,
        ttl_seconds: arguments.ttl,
    };
    let now = moment(arguments.signing.now);
    Ok(arguments.signing.issuer()?.mint(&grant, now)?)
}

fn attenuate(arguments: &AttenuateArguments) -> anyhow::Result<Token> {
    let parent = read_token(&arguments.parent)?;
    let own = &parent.claims().tool;
    if let Some(tool) = &arguments.tool {
        anyhow::ensure!(
            own.as_str() == tool,
            "attenuation only narrows: the parent is for the tool {own}, and a child is for the same"
        );
    }
    let narrowing = Narrowing {
        agent: arguments.agent.as_deref().map(AgentId::parse).transpose()?,
        constraints: constraints(&arguments.constraints)?,
        ttl_seconds: arguments.ttl,
        intent: arguments.intent.as_deref().map(intent).transpose()?,
    };
    let trusted = read_trusted_keys(&arguments.trusted_key)?;
    let issuer = arguments.signing.issuer()?;
    let now = moment(arguments.signing.now);
    Ok(issuer.attenuate(&parent, &trusted, &narrowing, now)?)
}

fn revoke(arguments: &RevokeArguments) -> anyhow::Result<Verdict> {
    let id = match (&arguments.id, &arguments.token) {
        (Some(id), _) => TokenId::parse(id)?,
        (None, Some(file)) => read_token(file)?.id().clone(),
        (None, None) => anyhow::bail!("revoking a token: name it, or its file with --token"),
    };
    let path = revocation_list(arguments.revocations.as_deref())?;
    let added = record::append_line(&path, |listed| {
        let list =
            Revocations::parse(listed).with_context(|| format!("reading {}", path.display()))?;
        Ok((!list.contains(&id)).then(|| format!("{id}\n")))
    })
    .with_context(|| format!("revoking {id}"))?;
    print(&if arguments.json {
        json!({"revoked": id.as_str(), "list": path.display().to_string(), "new": added})
            .to_string()
    } else if added {
        format!("revoked {id} in {}", path.display())
    } else {
        format!("{id} was revoked before")
    })?;
    Ok(Verdict::Done)
}

/// Where the list of revoked tokens is.
fn revocation_list(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(path) => Ok(path.to_owned()),
        None => Ok(own_key::folder()?.join("revoked-tokens")),
    }
}

/// The moment to go by.
fn moment(now: Option<i64>) -> Millis {
    now.map_or_else(
        || SystemClock.now(),
        |now| Millis(now.saturating_mul(1_000)),
    )
}

fn constraints(text: &str) -> anyhow::Result<Constraints> {
    let json = read(text.as_bytes(), MAX_INLINE).context("reading --constraints")?;
    Constraints::from_json(&json).context("reading --constraints")
}

fn intent(text: &str) -> anyhow::Result<Intent> {
    let json = read(text.as_bytes(), MAX_INLINE).context("reading --intent")?;
    Intent::from_json(&json).context("reading --intent")
}

/// A file of at most `limit` bytes, or standard input for `-`.
pub(super) fn read_file(what: &str, path: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    let reading = || format!("reading {what} {}", path.display());
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        let mut input = std::io::stdin().lock().take(limit + 1);
        input.read_to_end(&mut bytes).with_context(reading)?;
    } else {
        let file = crate::audit_stream::open_plain(path).with_context(reading)?;
        file.take(limit + 1)
            .read_to_end(&mut bytes)
            .with_context(reading)?;
    }
    anyhow::ensure!(
        bytes.len() as u64 <= limit,
        "{}: it is longer than {limit} bytes",
        reading()
    );
    Ok(bytes)
}

pub(super) fn read_token(path: &Path) -> anyhow::Result<Token> {
    let bytes = read_file("the token", path, MAX_TOKEN as u64)?;
    Token::parse(&bytes).with_context(|| format!("reading {}", path.display()))
}

fn read_private_key(path: &Path) -> anyhow::Result<PemKey> {
    let bytes = zeroize::Zeroizing::new(read_file("the key", path, MAX_LIST)?);
    let text = str::from_utf8(&bytes).unwrap_or_default();
    PemKey::from_pem(text).with_context(|| format!("reading the key {}", path.display()))
}

pub(super) fn read_trusted_keys(paths: &[PathBuf]) -> anyhow::Result<TrustedKeys> {
    let keys = paths.iter().map(|path| {
        let bytes = read_file("the trusted key", path, MAX_LIST)?;
        let text = str::from_utf8(&bytes).unwrap_or_default();
        read_public_pem(text).with_context(|| format!("reading the key {}", path.display()))
    });
    Ok(TrustedKeys::new(keys.collect::<anyhow::Result<Vec<_>>>()?))
}

/// Writes a file that only its owner may read, unless there is one already.
fn create_secret(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error.error.into())
        }
        _ => Ok(()),
    }
}
