//! `caretaker intent score`.

use std::path::Path;
use std::str::FromStr;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::super::arguments::Format;
use super::super::installation::Installation;
use super::super::runtime::block_on;
use super::super::{Verdict, print};
use crate::alignment;
use crate::config::Configuration;
use crate::embedder::MOST_DIMENSIONS;
use crate::intent::{
    Decision, Embedding, PromptPlace, Reason, Score, Thresholds, decide, embedded_part, similarity,
};

/// What is compared, and with which floors.
#[derive(Debug, Args)]
pub(in super::super) struct ScoreArguments {
    /// What was asked for. The configured embedder embeds it.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "action",
        required_unless_present = "intent_vector"
    )]
    intent: Option<String>,
    /// The action, as its description and arguments.
    #[arg(long, value_name = "TEXT", requires = "intent")]
    action: Option<String>,
    /// What was asked for as a JSON list of numbers; nobody is asked then.
    #[arg(long, value_name = "JSON", requires = "action_vector", conflicts_with_all = ["intent", "action"], allow_hyphen_values = true)]
    intent_vector: Option<Vector>,
    /// The action as a JSON list of numbers.
    #[arg(
        long,
        value_name = "JSON",
        requires = "intent_vector",
        allow_hyphen_values = true
    )]
    action_vector: Option<Vector>,
    /// Warn below this; else as configured, else 0.5.
    #[arg(long, value_name = "COSINE", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Deny below this; else as configured, else 0.3.
    #[arg(long, value_name = "COSINE", allow_negative_numbers = true)]
    hard_threshold: Option<f64>,
    #[command(flatten)]
    format: Format,
}

/// Numbers as they are written. What JSON has no words for (`NaN`, `Infinity`) and what it has (`null`) is taken as well, so that it is
/// denied like everything that is not finite.
#[derive(Debug, Clone)]
struct Vector(Vec<f32>);

impl FromStr for Vector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let list = text.trim().strip_prefix('[');
        let list = list.and_then(|rest| rest.strip_suffix(']'));
        let list = list.ok_or("this is no JSON list of numbers; write one such as [0.6, 0.8]")?;
        if list.trim().is_empty() {
            return Ok(Self(Vec::new()));
        }
        let number = |word: &str| match word.trim() {
            "null" => Ok(f32::NAN),
            word => word
                .parse::<f32>()
                .map_err(|_| "it holds something that is no number".to_owned()),
        };
        let numbers: Vec<f32> = list.split(',').map(number).collect::<Result<_, _>>()?;
        if numbers.len() > MOST_DIMENSIONS {
            return Err(format!("it has more than {MOST_DIMENSIONS} numbers"));
        }
        Ok(Self(numbers))
    }
}

pub(super) fn run(arguments: &ScoreArguments, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let installation = Installation::load(config)?;
    let thresholds = thresholds(arguments, &installation.configuration)?;
    let scored = match (&arguments.intent_vector, &arguments.action_vector) {
        (Some(intent), Some(action)) => of_vectors(intent.0.clone(), action.0.clone()),
        _ => of_texts(
            &installation,
            arguments.intent.as_deref().unwrap_or_default(),
            arguments.action.as_deref().unwrap_or_default(),
        )?,
    };
    let verdict = decide(scored, thresholds);
    let decision = verdict.decision.as_str();
    let reason = verdict.reason.to_string();
    print(&if arguments.format.json {
        json!({
            "score_micro": verdict.score.map(Score::micro),
            "decision": decision,
            "reason": reason,
            "code": verdict.reason.code(),
        })
        .to_string()
    } else {
        format!("{decision}: {reason}")
    })?;
    Ok(match verdict.decision {
        Decision::Deny => Verdict::Refused,
        Decision::Allow | Decision::Warn => Verdict::Done,
    })
}

/// The floors that are asked for; a floor that is not gives way to one that is.
fn thresholds(
    arguments: &ScoreArguments,
    configuration: &Configuration,
) -> anyhow::Result<Thresholds> {
    let configured = configuration.intent_alignment.as_ref();
    let (soft, hard) = configured.map_or(Thresholds::DEFAULT, |alignment| {
        let thresholds = alignment.thresholds;
        (thresholds.soft().cosine(), thresholds.hard().cosine())
    });
    let given = (arguments.threshold, arguments.hard_threshold);
    let thresholds = match given {
        (None, None) => Thresholds::new(soft, hard),
        (Some(soft), Some(hard)) => Thresholds::new(soft, hard),
        (Some(soft), None) => Thresholds::new(soft, hard.min(soft)),
        (None, Some(hard)) => Thresholds::new(soft.max(hard), hard),
    };
    thresholds.context("reading the thresholds")
}

fn of_vectors(intent: Vec<f32>, action: Vec<f32>) -> Result<Score, Reason> {
    let intent = Embedding::new(intent).map_err(Reason::Vector)?;
    let action = Embedding::new(action).map_err(Reason::Vector)?;
    similarity(&intent, &action).map_err(Reason::Vector)
}

/// As the engine does it: what no text may say is looked for first.
fn of_texts(
    installation: &Installation,
    intent: &str,
    action: &str,
) -> anyhow::Result<Result<Score, Reason>> {
    let Installation {
        configuration,
        environment,
    } = installation;
    let places = [(PromptPlace::Intent, intent), (PromptPlace::Action, action)];
    for (place, text) in places {
        if let Some(pattern) = configuration.deny_prompts.matching(text) {
            return Ok(Err(Reason::DenyPrompt { place, pattern }));
        }
    }
    let alignment = configuration.intent_alignment.as_ref().context(
        "scoring texts: security.intent_alignment is off, so there is no embedder; configure one, or give --intent-vector and --action-vector",
    )?;
    let embedder = alignment::embedder(&alignment.embedder, environment)?;
    let texts = [embedded_part(intent), embedded_part(action)];
    let embedded = block_on(async { Ok(embedder.embed(&texts).await) })?;
    Ok(match embedded.map(<[Vec<f32>; 2]>::try_from) {
        Ok(Ok([intent, action])) => of_vectors(intent, action),
        Ok(Err(_)) => Err(Reason::Unavailable(crate::intent::Outage::Count)),
        Err(error) => {
            super::super::complain(&error.to_string());
            Err(Reason::Unavailable(error.outage))
        }
    })
}
