//! The connector for repositories hosted on GitHub.
