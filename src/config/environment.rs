//! The environment of the process as a value, so that tests can state it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why the environment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// No place for state.
    #[error(
        "finding the place for state: neither CARETAKER_HOME nor XDG_STATE_HOME nor HOME is set; set CARETAKER_HOME to a folder of its own"
    )]
    NoHome,
    /// An override whose name is no key.
    #[error("environment variable {variable}: {problem}")]
    Override {
        /// The variable.
        variable: String,
        /// What is wrong and the mend.
        problem: String,
    },
}

/// Environment variables and the current folder.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    folder: PathBuf,
}

/// Names only: values may be secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("folder", &self.folder)
            .finish()
    }
}

impl Environment {
    /// States an environment; relative paths resolve against `folder`.
    pub fn new<N: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (N, V)>,
        folder: &Path,
    ) -> Self {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self {
            variables: variables.collect(),
            folder: folder.to_path_buf(),
        }
    }

    /// The environment of this process.
    ///
    /// # Errors
    /// A variable of ours that is not UTF-8; others are left out.
    pub fn of_process() -> Result<Self, EnvironmentError> {
        let mut variables = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else {
                continue;
            };
            match value.into_string() {
                Ok(value) => {
                    variables.insert(name, value);
                }
                Err(_) if name.starts_with("CARETAKER_") => {
                    let problem = "its value is not UTF-8; set it to text".to_owned();
                    return Err(EnvironmentError::Override {
                        variable: name,
                        problem,
                    });
                }
                Err(_) => {}
            }
        }
        let folder = std::env::current_dir().unwrap_or_default();
        Ok(Self { variables, folder })
    }

    /// A variable's value; an empty one counts as not set.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Every variable, for overrides.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A path made absolute against the current folder.
    pub(super) fn absolute(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// The file that `CARETAKER_CONFIG` names.
    pub(super) fn configuration_file(&self) -> Option<PathBuf> {
        self.value("CARETAKER_CONFIG").map(PathBuf::from)
    }

    /// Where state lives: `CARETAKER_HOME`, else the `caretaker` folder of the XDG state directory.
    ///
    /// # Errors
    /// None of the variables that name it is set.
    pub fn home(&self) -> Result<PathBuf, EnvironmentError> {
        if let Some(home) = self.value("CARETAKER_HOME") {
            return Ok(self.absolute(Path::new(home)));
        }
        // The XDG specification has relative values ignored.
        let state = self
            .value("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let state = state.or_else(|| {
            let home = self
                .value("HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute());
            home.map(|home| home.join(".local/state"))
        });
        state
            .map(|state| state.join("caretaker"))
            .ok_or(EnvironmentError::NoHome)
    }
}
