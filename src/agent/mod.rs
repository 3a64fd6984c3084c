//! The port to whatever diagnoses and fixes.
