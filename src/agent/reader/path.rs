//! From the path a log prints to the path the repository tracks.

/// Longest path that is looked at, in bytes.
const LONGEST: usize = 1000;

/// The part of `printed` that is a tracked path: the whole of it without a leading `./`, or, for the absolute paths that Python
/// prints, its longest tracked end. Never a path with `..`, and never the end of a path into an interpreter or a package.
pub(super) fn tracked_part<'p>(
    printed: &'p str,
    tracked: &dyn Fn(&str) -> bool,
) -> Option<&'p str> {
    if printed.len() > LONGEST {
        return None;
    }
    let mut path = printed;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest;
    }
    let Some(absolute) = path.strip_prefix('/') else {
        return (is_plain(path) && tracked(path)).then_some(path);
    };
    if !is_plain(absolute) || is_installed(absolute) {
        return None;
    }
    let ends = std::iter::successors(Some(absolute), |end| {
        end.split_once('/').map(|(_, rest)| rest)
    });
    ends.into_iter().find(|end| tracked(end))
}

/// Whether a relative path has only ordinary components.
pub(super) fn is_plain(path: &str) -> bool {
    !path.contains('\\')
        && path
            .split('/')
            .all(|component| !matches!(component, "" | "." | ".."))
}

/// Whether an absolute path, given without its first slash, leads into what is installed rather than into a checkout; the end of
/// such a path may look like a tracked one by accident.
fn is_installed(path: &str) -> bool {
    let system = ["usr/", "opt/", "lib/", "lib64/", "nix/", "gnu/", "rustc/"];
    system.iter().any(|start| path.starts_with(start))
        || path.contains("lib/python")
        || path.split('/').any(|component| {
            matches!(
                component,
                "site-packages" | "dist-packages" | ".cargo" | ".rustup"
            )
        })
}
