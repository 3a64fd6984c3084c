//! Decides whether a change is denied, free or needs approval.
