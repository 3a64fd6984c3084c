//! Vectors, and how alike two of them are.

use super::score::Score;

/// Why a vector, or a pair of them, has no score. Each is a denial of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VectorFault {
    /// No numbers.
    #[error("the embedding is empty")]
    Empty,
    /// Nothing but zeros, which point nowhere.
    #[error("the embedding is zero")]
    Zero,
    /// NaN, or infinite.
    #[error("the embedding is not finite")]
    NonFinite,
    /// Two vectors of different lengths.
    #[error("the embeddings differ in length, {intent} and {action}")]
    Length {
        /// Numbers in the intent's.
        intent: usize,
        /// Numbers in the action's.
        action: usize,
    },
}

impl VectorFault {
    /// A short name that does not change.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Empty => "vector-empty",
            Self::Zero => "vector-zero",
            Self::NonFinite => "vector-non-finite",
            Self::Length { .. } => "vector-length",
        }
    }
}

/// A vector that has a direction: not empty, all finite, not zero. Its length is kept beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    values: Box<[f32]>,
    norm: f64,
}

impl Embedding {
    /// Takes a vector.
    ///
    /// # Errors
    /// It has no direction.
    pub fn new(values: Vec<f32>) -> Result<Self, VectorFault> {
        if values.is_empty() {
            return Err(VectorFault::Empty);
        }
        // Break it: leave the question out; the norm then is NaN, and so is every cosine
        // (`intent::similarity::each_fault_of_a_vector_is_a_denial_with_its_own_code`).
        if !values.iter().all(|value| value.is_finite()) {
            return Err(VectorFault::NonFinite);
        }
        // Squares of f32 neither overflow nor vanish in f64.
        let norm = dot(&values, &values).sqrt();
        if norm == 0.0 {
            return Err(VectorFault::Zero);
        }
        Ok(Self {
            values: values.into_boxed_slice(),
            norm,
        })
    }

    /// How many numbers it has.
    pub fn dimension(&self) -> usize {
        self.values.len()
    }
}

/// The cosine of the angle between two vectors, computed in f64.
///
/// # Errors
/// They differ in length.
pub fn similarity(intent: &Embedding, action: &Embedding) -> Result<Score, VectorFault> {
    // Break it: compare as many as both have; a provider that shortens its vectors then decides what is looked at
    // (`intent::similarity::each_fault_of_a_vector_is_a_denial_with_its_own_code`).
    if intent.dimension() != action.dimension() {
        return Err(VectorFault::Length {
            intent: intent.dimension(),
            action: action.dimension(),
        });
    }
    let cosine = dot(&intent.values, &action.values) / (intent.norm * action.norm);
    Score::from_cosine(cosine).ok_or(VectorFault::NonFinite)
}

/// Lanes that are summed apart, so that the processor need not wait for one sum.
const LANES: usize = 16;

fn dot(left: &[f32], right: &[f32]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left.iter().zip(right) {
        for ((sum, a), b) in sums.iter_mut().zip(left).zip(right) {
            *sum += f64::from(*a) * f64::from(*b);
        }
    }
    let rest = left_rest.iter().zip(right_rest);
    let rest: f64 = rest.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    sums.iter().sum::<f64>() + rest
}
