//! Whether a token is a valid narrowing of another.

use thiserror::Error;

use super::Claims;
use crate::receipts::constraints::WiderConstraint;
use crate::receipts::intent::WiderIntent;
use crate::receipts::name::{AgentId, ToolName};

/// What of a child is wider than its parent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WiderToken {
    /// Another tool.
    #[error("the child is for the tool {child} and the parent for {parent}")]
    Tool {
        /// The child's.
        child: ToolName,
        /// The parent's.
        parent: ToolName,
    },
    /// Another agent.
    #[error("the child is for {child}, which is not {parent} or below it")]
    Agent {
        /// The child's.
        child: AgentId,
        /// The parent's.
        parent: AgentId,
    },
    /// A later end.
    #[error("the child outlives its parent")]
    Outlives,
    /// An earlier beginning.
    #[error("the child is valid before its parent is")]
    Precedes,
    /// A constraint.
    #[error(transparent)]
    Constraint(#[from] WiderConstraint),
    /// The intent.
    #[error("the child's intent is wider: {0}")]
    Intent(#[from] WiderIntent),
}

impl Claims {
    /// Whether these claims are at least as narrow as the parent's, in every respect.
    pub fn narrows(&self, parent: &Self) -> Result<(), WiderToken> {
        if self.tool != parent.tool {
            return Err(WiderToken::Tool {
                child: self.tool.clone(),
                parent: parent.tool.clone(),
            });
        }
        if !self.agent.is_within(&parent.agent) {
            return Err(WiderToken::Agent {
                child: self.agent.clone(),
                parent: parent.agent.clone(),
            });
        }
        if self.expires_at > parent.expires_at {
            return Err(WiderToken::Outlives);
        }
        if self.not_before < parent.not_before {
            return Err(WiderToken::Precedes);
        }
        self.constraints.narrows(&parent.constraints)?;
        if let Some(theirs) = &parent.intent {
            // Break it: let a child drop the intent; `receipts::attenuation::a_child_never_drops_an_intent` fails.
            let own = self.intent.as_ref().ok_or(WiderIntent::Dropped)?;
            own.narrows(theirs)?;
        }
        Ok(())
    }
}
