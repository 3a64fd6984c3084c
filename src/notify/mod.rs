//! Notifications to people.
