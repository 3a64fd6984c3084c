//! What a log becomes, what a diagnosis was fed, and the coders behind the port.

mod command;
mod provenance;
mod reader;
mod reader_properties;
mod scripted;
