//! Where an answer says which commit is deployed.

use http::HeaderName;
use serde::{Deserialize, Serialize, de};

use super::JsonPath;

/// A place in the answer that holds a complete object id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitSource {
    /// A header.
    Header(CommitHeader),
    /// A place in the JSON body.
    Json(JsonPath),
}

/// The name of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHeader(HeaderName);

impl CommitHeader {
    /// The name, in lower case.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl Serialize for CommitHeader {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for CommitHeader {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse()
            .map(Self)
            .map_err(|_| de::Error::custom("this is no name of a header"))
    }
}
