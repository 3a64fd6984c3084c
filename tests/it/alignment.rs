//! Intent alignment at work: tasks begin, calls are scored, decisions are recorded, tasks end.

mod bounds;
mod caching;
mod commands;
mod configured;
mod prompts;
mod recording;
mod restart;
pub(crate) mod scene;
mod story;
mod trend;
