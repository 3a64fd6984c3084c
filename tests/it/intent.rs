//! Intent alignment, the pure part: scores, thresholds, decisions, drift, calibration.

mod calibration;
mod decisions;
mod drift;
mod similarity;
mod thresholds;
