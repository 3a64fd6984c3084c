//! The pages: what they show, what they refuse, and that only an answer changes anything.

mod answers;
mod calls;
mod documents;
mod flaky;
mod http;
mod ledgers;
mod look;
mod pages;
mod runs;
mod scene;
mod serving;
mod statements;
mod story;
mod text;
