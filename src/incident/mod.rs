//! One incident: its facts, and the one next step they call for.
