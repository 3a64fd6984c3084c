//! Trusted repositories and scratch trees.
