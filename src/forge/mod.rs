//! A local GitHub-compatible server over real bare repositories.
