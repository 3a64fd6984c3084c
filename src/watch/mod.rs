//! Turns failed runs into incidents.
