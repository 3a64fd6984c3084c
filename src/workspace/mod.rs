//! Trusted repositories and scratch trees.

pub mod git_command;
