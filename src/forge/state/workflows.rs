//! Workflows: the files that runs come from.

/// A workflow.
#[derive(Clone, Debug)]
pub(crate) struct Workflow {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Such as `.github/workflows/ci.yml`.
    pub(crate) path: String,
    /// `active`, `deleted`, `disabled_fork`, `disabled_inactivity` or `disabled_manually`.
    pub(crate) state: String,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
}

impl Workflow {
    /// Whether a path of the API names it: by its number or by its file's name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.id.to_string() == name || self.path.rsplit('/').next() == Some(name)
    }
}
