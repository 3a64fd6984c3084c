//! Registering a project.
