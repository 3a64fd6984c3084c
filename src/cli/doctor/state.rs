//! Where state lies: the configuration, the home, the database.

use std::os::unix::fs::PermissionsExt as _;

use super::Finding;
use crate::config::Configuration;

pub(super) fn configuration(configuration: &Configuration) -> Vec<Finding> {
    let read = configuration.file.as_ref().map_or_else(
        || "no file, everything is at its default".to_owned(),
        |file| file.display().to_string(),
    );
    vec![Finding::ok("configuration", read), home(configuration)]
}

fn home(configuration: &Configuration) -> Finding {
    const CHECK: &str = "home";
    let path = configuration.home.display();
    match std::fs::metadata(&configuration.home) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(CHECK, format!("{path}, not there yet"))
        }
        Err(error) => Finding::failed(
            CHECK,
            format!("{path}: {error}; set CARETAKER_HOME to a folder that this user may write"),
        ),
        Ok(metadata) if !metadata.is_dir() => Finding::failed(
            CHECK,
            format!("{path} is no folder; set CARETAKER_HOME to a folder of its own"),
        ),
        Ok(metadata) if metadata.permissions().mode() & 0o022 != 0 => Finding::warning(
            CHECK,
            format!("others may write into {path}; run: chmod go-w '{path}'"),
        ),
        Ok(_) => Finding::ok(CHECK, path.to_string()),
    }
}

/// Whether the database can be reached.
#[allow(clippy::unused_async, reason = "opening a database is asynchronous")]
pub(super) async fn database(configuration: &Configuration) -> Finding {
    Finding::warning(
        "database",
        format!(
            "{} was not looked at: this version keeps none",
            configuration.database
        ),
    )
}
