//! Configuration of a caretaker process.
