//! The rules file of a project as it is written: path rules, limits and the project's settings.
//!
//! Unknown keys are errors everywhere: a misspelt `denied` must not become a project without denials.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::anchors::Anchors;

/// A rules file. Every key may be left out; left out means "no such rule" for lists and limits, and the default below for
/// settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RulesDocument {
    /// Paths that caretaker never changes.
    pub denied: Vec<PathRule>,
    /// Paths whose change is of class infrastructure.
    pub infrastructure: Vec<PathRule>,
    /// Paths whose change is of class data.
    pub data: Vec<PathRule>,
    /// Paths whose change needs approval whatever its class.
    pub sensitive: Vec<PathRule>,
    /// Sizes above which a change needs approval.
    pub limits: Limits,
    /// What happens to changes of dependencies, by size of the version step.
    pub dependencies: Dependencies,
    /// What happens to changes under `.github/workflows`; denied unless the rules say otherwise.
    pub workflows: Workflows,
    /// Whether a model's classification must agree before a change is free.
    pub second_opinion: SecondOpinionRule,
    /// Checks that must be green on the head commit before a merge.
    pub checks: Checks,
    /// How the pull request is merged.
    pub merge_method: MergeMethod,
    /// The branch that is watched and merged into.
    pub base: Base,
    /// The command that runs the project's tests, program first; empty means "detect it".
    pub test: Vec<String>,
    /// How often failing tests are run again before they are diagnosed.
    pub reruns: Reruns,
    /// Anchors that an approval must reach before the merge.
    pub anchors: Anchors,
}

/// A glob, alone or with the reason why it is listed. Written as `src/auth/**` or `{glob: src/auth/**, reason: …}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathRule {
    /// The glob.
    pub glob: String,
    /// Why, in words for the person who reads the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PathRule {
    /// A rule without a reason.
    pub fn new(glob: impl Into<String>) -> Self {
        Self {
            glob: glob.into(),
            reason: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename = "PathRule")]
struct PathRuleFields {
    glob: String,
    #[serde(default)]
    reason: Option<String>,
}

impl<'de> Deserialize<'de> for PathRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = PathRule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a glob (in quotes when it looks like a number or a word such as yes), or {glob, reason}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PathRule, E> {
                Ok(PathRule::new(text))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<PathRule, A::Error> {
                let fields =
                    PathRuleFields::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(PathRule {
                    glob: fields.glob,
                    reason: fields.reason,
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Sizes above which a change needs approval; a limit that is left out does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most changed paths.
    pub files: Option<u64>,
    /// Most added plus removed lines.
    pub lines: Option<u64>,
    /// Binary files: `false` or `0` for none, a number for that many, `true` for no limit.
    pub binary: Option<BinaryLimit>,
}

/// How many binary files may change without approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum BinaryLimit {
    /// Any number (`true`) or none (`false`).
    Any(bool),
    /// At most this many.
    Count(u64),
}

impl BinaryLimit {
    /// The greatest number allowed, or nothing when there is no limit.
    pub const fn most(self) -> Option<u64> {
        match self {
            Self::Any(true) => None,
            Self::Any(false) => Some(0),
            Self::Count(count) => Some(count),
        }
    }
}

impl<'de> Deserialize<'de> for BinaryLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = BinaryLimit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or the number of binary files that may change")
            }

            fn visit_bool<E: de::Error>(self, any: bool) -> Result<BinaryLimit, E> {
                Ok(BinaryLimit::Any(any))
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<BinaryLimit, E> {
                Ok(BinaryLimit::Count(count))
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<BinaryLimit, E> {
                u64::try_from(count)
                    .map(BinaryLimit::Count)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(count), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// What the rules say about something: refuse it, ask a person, or let it pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Handling {
    /// Refuse.
    Deny,
    /// A person decides.
    Approve,
    /// Not a matter by itself.
    Free,
}

/// What happens when a manifest or lockfile changes, by the greatest version step in it. A step that is not named, or that
/// nobody measured, needs approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dependencies {
    /// A new major version, a new dependency, or one without a comparable version.
    pub major: Option<Handling>,
    /// A new minor version.
    pub minor: Option<Handling>,
    /// A new patch version.
    pub patch: Option<Handling>,
}

/// What happens to changes under `.github/workflows`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workflows {
    /// Refused, as if `.github/workflows/**` stood under `denied`.
    #[default]
    Deny,
    /// Class infrastructure, so a person decides.
    Approve,
}

/// Whether a second opinion is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecondOpinionRule {
    /// A change is free only when a model agrees that it is functional.
    #[default]
    Required,
    /// Not needed; one that is given still counts when it is stricter.
    Off,
}

/// Checks that must be green before a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Checks {
    /// By name and app; both must fit.
    pub required: Vec<RequiredCheck>,
    /// Whether a commit without any check counts as green.
    pub allow_none: bool,
}

/// One check that must be green.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredCheck {
    /// The check's name as the hosting service shows it.
    pub name: String,
    /// The app that reports it: its short name, or its number as text. Without it anyone who may report a check could pass
    /// for it.
    #[serde(deserialize_with = "text_or_number")]
    pub app: String,
}

fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Visitor;
    impl de::Visitor<'_> for Visitor {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the app's short name (such as github-actions) or its number")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// How a pull request is merged. A fix branch has one commit, so squash and rebase land one commit too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeMethod {
    /// A merge commit.
    Merge,
    /// One new commit on the base.
    #[default]
    Squash,
    /// The commit moved onto the base.
    Rebase,
}

impl MergeMethod {
    /// The word that the hosting service's merge call takes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Squash => "squash",
            Self::Rebase => "rebase",
        }
    }
}

/// The name of the base branch, `main` when left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Base(pub String);

impl Default for Base {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

/// How often failing tests are run again at the same commit before they are diagnosed, once when left out. What passes then is
/// flaky: it is reported, not fixed. Of the provider one more attempt is asked for at most, whatever the number; 0 asks for none
/// and repeats nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub struct Reruns(u8);

impl Reruns {
    /// The greatest number; tests may run for minutes.
    const MOST: u8 = 10;

    /// How often.
    pub const fn count(self) -> u8 {
        self.0
    }
}

impl Default for Reruns {
    fn default() -> Self {
        Self(1)
    }
}

impl TryFrom<u64> for Reruns {
    type Error = String;

    fn try_from(count: u64) -> Result<Self, String> {
        match u8::try_from(count) {
            Ok(count) if count <= Self::MOST => Ok(Self(count)),
            _ => Err(format!(
                "tests are run again at most {} times, not {count}; 0 runs nothing again",
                Self::MOST
            )),
        }
    }
}
