//! Verifies a ledger and reconstructs an incident's history.
