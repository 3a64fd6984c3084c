//! From runs at the provider to observations in the store.

mod classification;
mod polling;
mod provider;
