//! What an agent may do, decided for one call of a tool.

mod approval;
