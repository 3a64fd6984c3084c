//! What a diagnosis was fed, by hash.
