//! Approval of one exact change by one named person, once.
