//! Files that commands write for people.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Puts a file that everybody may read in the place of what is there, whole or not at all. `what` names it in errors.
pub(super) fn replace(what: &str, output: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let writing = || {
        format!(
            "writing {what} to {} (in a folder that is there and may be written)",
            output.display()
        )
    };
    // Renaming onto a device or a link would replace it.
    let replaceable = std::fs::symlink_metadata(output).map_or(true, |found| found.is_file());
    anyhow::ensure!(
        replaceable,
        "writing {what} to {}: there is something that is no ordinary file; name another file",
        output.display()
    );
    let folder = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .with_context(writing)?;
    file.write_all(bytes).with_context(writing)?;
    file.as_file().sync_all().with_context(writing)?;
    file.persist(output).with_context(writing)?;
    Ok(())
}
