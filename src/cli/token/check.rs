//! `caretaker token check`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::super::{Verdict, complain, explain, print};
use super::{
    MAX_LIST, OwnKey, moment, read_file, read_token, read_trusted_keys, record, revocation_list,
};
use crate::attest::{Label, Text};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::receipts::{
    AgentId, Call, Checked, Decision, Denial, Door, Gate, GivenArguments, Head, Outcome, PemKey,
    ReceiptChain, ReceiptLine, Revocations, Session, Stage, Token, TrustedKeys, public_pem,
};

/// The gate's name in its receipts.
const GATE: &str = "agent:caretaker.gate";

/// Which call, under which token.
#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArguments {
    /// The token.
    #[arg(long, value_name = "FILE")]
    token: PathBuf,
    /// The tokens it was narrowed from, in any order.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    chain: Vec<PathBuf>,
    /// A public key (PEM) whose tokens count; of a private one the public half is taken.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    trusted_key: Vec<PathBuf>,
    /// The tool that is called.
    #[arg(long)]
    tool: String,
    /// Who calls.
    #[arg(long)]
    agent: Option<String>,
    /// The call's arguments: a JSON object.
    #[arg(long, value_name = "JSON")]
    args: String,
    /// The time to go by, in seconds since the Unix epoch, instead of the clock's.
    #[arg(long, value_name = "UNIX", allow_negative_numbers = true)]
    now: Option<i64>,
    /// The file of receipts to append to; it is made. Without it the receipt is only printed.
    #[arg(long, value_name = "FILE")]
    receipts: Option<PathBuf>,
    /// The private key (PEM) that signs receipts, else this installation's: receipts/gate.pem in `CARETAKER_HOME`.
    #[arg(long, value_name = "FILE")]
    receipt_key: Option<PathBuf>,
    /// The list of revoked tokens, else receipts/revoked-tokens in `CARETAKER_HOME`.
    #[arg(long, value_name = "FILE")]
    revocations: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// A decision with its record.
struct Decided {
    outcome: Outcome,
    receipt: Option<ReceiptLine>,
    /// Of a chain that this call began and that stands in no file.
    root: Option<ReceiptLine>,
    head: Option<Head>,
}

pub(super) fn run(arguments: &CheckArguments) -> anyhow::Result<Verdict> {
    let keys = read_trusted_keys(&arguments.trusted_key)?;
    let now = moment(arguments.now);
    let outcome = decide(arguments, keys, now);
    let (decided, key) = match OwnKey::open(arguments.receipt_key.as_deref()) {
        Ok(key) => {
            let key = Arc::new(key);
            (recorded(arguments, outcome, &key, now), Some(key))
        }
        Err(error) => (unrecorded(outcome, &error), None),
    };
    let denied = decided.outcome.decision == Decision::Deny;
    print(&if arguments.json {
        document(&decided, key.as_deref())
    } else {
        words(&decided)
    })?;
    Ok(if denied {
        Verdict::Refused
    } else {
        Verdict::Done
    })
}

/// What is decided. Whatever cannot be read denies.
fn decide(arguments: &CheckArguments, keys: TrustedKeys, now: Millis) -> Outcome {
    let given = GivenArguments::read(arguments.args.as_bytes());
    let call = Call {
        tool: &arguments.tool,
        agent: arguments.agent.as_deref(),
        arguments: &given.judged,
        now,
    };
    let token =
        read_token(&arguments.token).map_err(|error| Denial::new(Stage::Token, explain(&error)));
    let checked = token.and_then(|token| {
        let chain = arguments.chain.iter().map(|path| read_token(path));
        let chain = chain
            .collect::<anyhow::Result<Vec<Token>>>()
            .map_err(|error| Denial::new(Stage::Chain, explain(&error)))?;
        let revoked = revocations(arguments)
            .map_err(|error| Denial::new(Stage::RevocationList, explain(&error)))?;
        Ok(Gate::new(keys, revoked).check(&token, &chain, &call))
    });
    match checked {
        Ok(checked) => checked.outcome(&call, given.digest),
        Err(denial) => {
            let ruleset = Sha256Digest::of(b"no token");
            Checked::without_token(denial, ruleset).outcome(&call, given.digest)
        }
    }
}

/// The list of revoked tokens: one that is named must be there, this installation's need not.
fn revocations(arguments: &CheckArguments) -> anyhow::Result<Revocations> {
    let path = revocation_list(arguments.revocations.as_deref())?;
    if arguments.revocations.is_none() && !path.exists() {
        return Ok(Revocations::default());
    }
    let bytes = read_file("the list of revoked tokens", &path, MAX_LIST)?;
    let text = String::from_utf8(bytes)?;
    Ok(Revocations::parse(&text)?)
}

/// Writes the receipt. What is allowed and cannot be recorded is denied.
fn recorded(
    arguments: &CheckArguments,
    outcome: Outcome,
    key: &Arc<PemKey>,
    now: Millis,
) -> Decided {
    let session = match session(&outcome) {
        Ok(session) => session,
        Err(error) => return unrecorded(outcome, &error),
    };
    let written = match &arguments.receipts {
        Some(path) => record::append_receipt(path, key, session, &outcome, now)
            .map(|(line, head)| (line, None, head)),
        None => alone(key, session, &outcome, now),
    };
    match written {
        Ok((line, root, head)) => Decided {
            outcome,
            receipt: Some(line),
            root,
            head: Some(head),
        },
        // Break it: let the decision stand; `receipts::commands::what_cannot_be_recorded_is_not_allowed` fails.
        Err(error) => unrecorded(outcome, &error),
    }
}

fn unrecorded(mut outcome: Outcome, error: &anyhow::Error) -> Decided {
    let reason = format!("the receipt cannot be written: {}", explain(error));
    if outcome.decision == Decision::Allow {
        outcome.decision = Decision::Deny;
        outcome.stage = Some(Label::fixed(Stage::Receipt.word()));
        outcome.reason = Text::clipped(&reason);
    } else {
        complain(&reason);
    }
    Decided {
        outcome,
        receipt: None,
        root: None,
        head: None,
    }
}

/// A chain of two that stands in no file.
fn alone(
    key: &Arc<PemKey>,
    session: Session,
    outcome: &Outcome,
    now: Millis,
) -> anyhow::Result<(ReceiptLine, Option<ReceiptLine>, Head)> {
    let (mut chain, root) = ReceiptChain::begin(session, key.clone(), now)?;
    let line = chain.append(outcome, now)?;
    Ok((line, Some(root), chain.head()))
}

/// The session of a file, which is named after the token of its first call.
fn session(outcome: &Outcome) -> anyhow::Result<Session> {
    let name = outcome
        .token
        .as_ref()
        .map_or("no-token", |token| token.as_str());
    Ok(Session {
        id: Label::new(name)?,
        gate: AgentId::parse(GATE)?,
        input: outcome.ruleset,
        door: Door::TokenCheck,
        advisory: false,
        policy: None,
    })
}

fn document(decided: &Decided, key: Option<&PemKey>) -> String {
    let Decided {
        outcome,
        receipt,
        root,
        head,
    } = decided;
    let mut document = json!({
        "decision": outcome.decision.word(),
        "stage": outcome.stage.as_ref().map(Label::as_str),
        "reason": outcome.reason.as_str(),
        "token": outcome.token.as_ref().map(ToString::to_string),
        "receipt": receipt.as_ref().map(ReceiptLine::jws),
        "receipt_hash": receipt.as_ref().map(|receipt| receipt.hash().to_string()),
        "head": head.map(|head| json!({"count": head.count, "hash": head.hash.to_string()})),
        "receipt_key": key.map(|key| json!({"key_id": key.id().as_str(), "public_key_pem": public_pem(&key.public())})),
    });
    if let Some(root) = root {
        document["root"] = root.jws().into();
    }
    document.to_string()
}

fn words(decided: &Decided) -> String {
    let outcome = &decided.outcome;
    let decision = match &outcome.stage {
        Some(stage) => format!("{} at {stage}: {}", outcome.decision, outcome.reason),
        None => outcome.decision.to_string(),
    };
    match (&decided.receipt, &decided.root) {
        (Some(receipt), None) => format!("{decision}\nreceipt {}", receipt.hash()),
        _ => decision,
    }
}
