//! What a token is for: a statement in words, and what of it can be enforced without a model.

use std::borrow::Cow;
use std::collections::BTreeMap;

use thiserror::Error;

use super::canonical::{text, to_canonical, utf16_order};
use super::constraints::{ConstraintError, Constraints, WiderConstraint};
use super::name::{NameError, ToolName};
use crate::attest::json::Json;
use crate::attest::text::shown;

/// The longest statement, in bytes.
pub const MAX_STATEMENT: usize = 4 * 1024;
/// The longest intent as it is signed, in bytes: it travels whole in every receipt.
pub const MAX_INTENT: usize = 12 * 1024;

/// Why a document is no intent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IntentError {
    /// Not an object with a statement.
    #[error(
        "an intent is an object with a statement, as in {{\"statement\": \"Read today's calendar\"}}"
    )]
    Object,
    /// A member that is not known, and would therefore not be enforced.
    #[error("an intent has the members statement, tools and constraints, and not `{found}`")]
    Unknown {
        /// The name found, made printable.
        found: String,
    },
    /// An empty statement.
    #[error("the intent's statement is empty; say in words what is approved")]
    NoStatement,
    /// A NUL in the statement.
    #[error("the intent's statement contains a NUL")]
    Nul,
    /// Too long.
    #[error("the intent's {what} has {length} bytes, at most {limit} are signed")]
    TooLong {
        /// Of what.
        what: &'static str,
        /// Length found.
        length: usize,
        /// Length allowed.
        limit: usize,
    },
    /// No list of tools.
    #[error(
        "the intent's tools are a list of names with at least one; leave it out where any tool may be used"
    )]
    Tools,
    /// The same tool twice.
    #[error("the intent names the tool {tool} twice")]
    SameTool {
        /// The tool.
        tool: ToolName,
    },
    /// Not a tool.
    #[error("the intent's tools: {0}")]
    Tool(#[from] NameError),
    /// Not constraints.
    #[error("the intent's constraints: {0}")]
    Constraints(#[from] ConstraintError),
}

/// An intent that is wider than the parent's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WiderIntent {
    /// The child has none.
    #[error("the parent has an intent and the child has none")]
    Dropped,
    /// The child's tools are open.
    #[error("the parent's intent names its tools and the child's does not")]
    AnyTool,
    /// A tool that the parent's does not name.
    #[error("the tool {tool} is not in the parent's intent")]
    Tool {
        /// The tool.
        tool: ToolName,
    },
    /// A constraint.
    #[error("the intent's {0}")]
    Constraint(#[from] WiderConstraint),
}

/// What was approved, in words and in terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    statement: String,
    tools: Option<Vec<ToolName>>,
    constraints: Option<Constraints>,
}

impl Intent {
    /// Takes an intent and brings it into normal form: tools and lists sorted, the statement as it is.
    pub fn from_json(json: &Json<'_>) -> Result<Self, IntentError> {
        let Json::Members(members) = json else {
            return Err(IntentError::Object);
        };
        let known = ["statement", "tools", "constraints"];
        if let Some(found) = members.keys().find(|name| !known.contains(&name.as_ref())) {
            return Err(IntentError::Unknown {
                found: shown(found),
            });
        }
        let Some(Json::Text(statement)) = members.get("statement") else {
            return Err(IntentError::Object);
        };
        let tools = members.get("tools").map(tools).transpose()?;
        let constraints = members.get("constraints");
        let constraints = constraints.map(Constraints::from_json).transpose()?;
        let intent = Self {
            statement: sound(statement)?,
            tools,
            constraints,
        };
        let length = to_canonical(&intent.to_json()).len();
        within("document", length, MAX_INTENT)?;
        Ok(intent)
    }

    /// The document that is signed.
    pub fn to_json(&self) -> Json<'_> {
        let mut out = BTreeMap::new();
        out.insert(Cow::Borrowed("statement"), text(&self.statement));
        if let Some(tools) = &self.tools {
            let tools = tools.iter().map(|tool| text(tool.as_str()));
            out.insert(Cow::Borrowed("tools"), Json::List(tools.collect()));
        }
        if let Some(constraints) = &self.constraints {
            out.insert(Cow::Borrowed("constraints"), constraints.to_json());
        }
        Json::Members(out)
    }

    /// The purpose in words.
    pub fn statement(&self) -> &str {
        &self.statement
    }

    /// The approved tools; none named means any.
    pub fn tools(&self) -> Option<&[ToolName]> {
        self.tools.as_deref()
    }

    /// What arguments must be like.
    pub const fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    /// Whether calls of this tool are inside the intent's scope.
    pub fn covers(&self, tool: &str) -> bool {
        // Break it: take no tools for none named; `receipts::fixtures::calendar_versus_archive` fails.
        self.tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|approved| approved.as_str() == tool))
    }

    /// Whether this is at least as narrow as `parent` (the statement is free: what was said is recorded in either token).
    pub fn narrows(&self, parent: &Self) -> Result<(), WiderIntent> {
        if let Some(approved) = &parent.tools {
            let own = self.tools.as_ref().ok_or(WiderIntent::AnyTool)?;
            let wider = own.iter().find(|tool| !approved.contains(tool));
            if let Some(tool) = wider {
                return Err(WiderIntent::Tool { tool: tool.clone() });
            }
        }
        if let Some(theirs) = &parent.constraints {
            let nothing = Constraints::default();
            let own = self.constraints.as_ref().unwrap_or(&nothing);
            own.narrows(theirs)?;
        }
        Ok(())
    }
}

fn within(what: &'static str, length: usize, limit: usize) -> Result<(), IntentError> {
    if length > limit {
        return Err(IntentError::TooLong {
            what,
            length,
            limit,
        });
    }
    Ok(())
}

fn sound(statement: &str) -> Result<String, IntentError> {
    within("statement", statement.len(), MAX_STATEMENT)?;
    if statement.trim().is_empty() {
        return Err(IntentError::NoStatement);
    }
    if statement.contains('\0') {
        return Err(IntentError::Nul);
    }
    Ok(statement.to_owned())
}

fn tools(json: &Json<'_>) -> Result<Vec<ToolName>, IntentError> {
    let Json::List(items) = json else {
        return Err(IntentError::Tools);
    };
    let names = items.iter().map(|item| match item {
        Json::Text(name) => Ok(ToolName::parse(name)?),
        _ => Err(IntentError::Tools),
    });
    let mut names = names.collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() {
        return Err(IntentError::Tools);
    }
    names.sort_by(|left, right| utf16_order(left.as_str(), right.as_str()));
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(IntentError::SameTool {
            tool: pair[0].clone(),
        }),
        None => Ok(names),
    }
}
