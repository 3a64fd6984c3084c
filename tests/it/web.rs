//! The pages: what they show, what they refuse, and that only an answer changes anything.

mod answers;
mod documents;
mod http;
mod ledgers;
mod look;
mod pages;
mod scene;
mod serving;
mod story;
mod text;
