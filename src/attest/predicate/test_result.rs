//! in-toto's `test-result` v0.1, with its own member names. Evidence, named by the proposal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::text::{List, Text};

/// How a test run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum TestOutcome {
    /// Green.
    Passed,
    /// Green with warnings.
    Warned,
    /// Red.
    Failed,
}

/// A test run, signed by the proposer. A longer list of tests goes by digest into `configuration`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestResult {
    /// How it ended.
    pub result: TestOutcome,
    /// What it was run with: command, toolchain, whole output, each by digest.
    pub configuration: List<ResourceDescriptor>,
    /// Where it can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// Tests that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_tests: Option<List<Text>>,
    /// Tests that warned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned_tests: Option<List<Text>>,
    /// Tests that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_tests: Option<List<Text>>,
}

/// in-toto's `ResourceDescriptor`, as far as it is used here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceDescriptor {
    /// A name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// An address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Text>,
    /// Digests by algorithm, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<BTreeMap<String, String>>,
    /// Media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<Text>,
}
