//! What must hold an approval before the merge.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Anchors that an approval must reach before the merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Anchors {
    /// All of these.
    pub required: Vec<AnchorDemand>,
}

/// One thing that must hold the approval: `checkpoint`, `branch`, `timestamp`, `witness`, `timestamp:NAME` or `witness:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AnchorDemand {
    /// A checkpoint of the log.
    Checkpoint,
    /// The branch with checkpoints.
    Branch,
    /// A timestamp authority by its name in the configuration, or every one that is configured.
    Timestamp(Option<String>),
    /// A witness by its name in the configuration, or every one that is configured.
    Witness(Option<String>),
}

impl FromStr for AnchorDemand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = match text.split_once(':') {
            Some((kind, name)) => (kind, Some(name)),
            None => (text, None),
        };
        let named = name.map(str::to_owned);
        match (kind, name) {
            (_, Some("")) => Err(format!("{text:?} names no anchor after the colon")),
            ("checkpoint", None) => Ok(Self::Checkpoint),
            ("branch", None) => Ok(Self::Branch),
            ("timestamp", _) => Ok(Self::Timestamp(named)),
            ("witness", _) => Ok(Self::Witness(named)),
            _ => Err(format!(
                "{:?} is none of checkpoint, branch, timestamp, witness, timestamp:NAME, witness:NAME",
                text.chars().take(120).collect::<String>()
            )),
        }
    }
}

impl TryFrom<String> for AnchorDemand {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AnchorDemand> for String {
    fn from(demand: AnchorDemand) -> Self {
        demand.to_string()
    }
}

impl fmt::Display for AnchorDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Checkpoint => ("checkpoint", None),
            Self::Branch => ("branch", None),
            Self::Timestamp(name) => ("timestamp", name.as_ref()),
            Self::Witness(name) => ("witness", name.as_ref()),
        };
        match name {
            Some(name) => write!(f, "{kind}:{name}"),
            None => f.write_str(kind),
        }
    }
}
