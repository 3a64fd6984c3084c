//! The document that receivers get.

use secrecy::{ExposeSecret as _, SecretString};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::change::ChangeDigest;
use crate::clock::Millis;
use crate::id::{IncidentId, ProjectId};
use crate::incident::NoticeEvent;

/// The link that asks a person. Whoever holds it can decide, so its address shows in the document alone.
#[derive(Debug, Clone)]
pub struct ApprovalLink {
    /// `PUBLIC_URL/a/TOKEN`.
    pub url: SecretString,
    /// Digest of the change that is asked about.
    pub digest: ChangeDigest,
    /// When the link ends.
    pub expires_at: Millis,
}

/// One message. Its JSON has `event`, `incident`, `project` and `text`; a request for approval also `approval_url`, `digest`
/// and `expires_at`.
#[derive(Debug, Clone)]
pub struct Notification {
    event: NoticeEvent,
    incident: Option<IncidentId>,
    project: Option<ProjectId>,
    text: String,
    link: Option<ApprovalLink>,
}

impl Notification {
    /// A message about an incident, a project, both or neither. It carries no link; a question to a person is made with
    /// [`Self::approval_requested`].
    pub fn new(
        event: NoticeEvent,
        incident: Option<IncidentId>,
        project: Option<ProjectId>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            event,
            incident,
            project,
            text: text.into(),
            link: None,
        }
    }

    /// A person is asked, by this link.
    pub fn approval_requested(
        incident: IncidentId,
        project: ProjectId,
        text: impl Into<String>,
        link: ApprovalLink,
    ) -> Self {
        Self {
            event: NoticeEvent::ApprovalRequested,
            incident: Some(incident),
            project: Some(project),
            text: text.into(),
            link: Some(link),
        }
    }
}

impl Serialize for Notification {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = serializer.serialize_struct("Notification", 7)?;
        document.serialize_field("event", &self.event)?;
        document.serialize_field("incident", &self.incident)?;
        document.serialize_field("project", &self.project)?;
        document.serialize_field("text", &self.text)?;
        if let Some(link) = &self.link {
            document.serialize_field("approval_url", link.url.expose_secret())?;
            document.serialize_field("digest", &link.digest)?;
            document.serialize_field("expires_at", &link.expires_at.to_string())?;
        }
        document.end()
    }
}
