//! From runs at the provider to observations in the store.

mod classification;
mod conditions;
mod hooked;
mod leases;
mod odd_runs;
mod pace;
mod polling;
mod provider;
mod scene;
mod side_by_side;
mod silence;
mod truth_table;
