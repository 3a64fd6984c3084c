//! The `caretaker` command.

fn main() {}
