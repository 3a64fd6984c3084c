//! What scenario tests share.
