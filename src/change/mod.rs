//! The content of a proposed change and its digest.
