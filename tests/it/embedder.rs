//! Embedders: what is asked, what is believed of the answer, and the model that runs in this process.

mod answers;
mod asking;
mod patience;
pub(crate) mod peers;
pub(crate) mod server;
mod weights;
mod wordpiece;
