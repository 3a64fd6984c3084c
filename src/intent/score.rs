//! A cosine as a whole number, so that what is signed, compared and shown is one value.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A cosine in millionths, from -1,000,000 to 1,000,000. A cosine is rounded to the nearest, halves to the even one; what is
/// compared with a threshold is this number, so whoever reads it in a receipt comes to the same decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i32", into = "i32")]
pub struct Score(i32);

impl Score {
    /// Opposite directions.
    pub const LEAST: Self = Self(-1_000_000);
    /// The same direction.
    pub const MOST: Self = Self(1_000_000);

    /// A cosine as a score. What rounding errors put beyond -1 or 1 is brought back; what is not finite has no score.
    pub fn from_cosine(cosine: f64) -> Option<Self> {
        // Break it: leave the question out; NaN then is the score 0, which a threshold of 0 allows
        // (`intent::similarity::no_vector_that_is_not_finite_ever_has_a_score`).
        if !cosine.is_finite() {
            return None;
        }
        let millionths = (cosine.clamp(-1.0, 1.0) * 1e6).round_ties_even();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a whole number of at most seven digits"
        )]
        Some(Self(millionths as i32))
    }

    /// A number of millionths as a score; `None` when it is none.
    pub fn from_micro(micro: i32) -> Option<Self> {
        (Self::LEAST.0..=Self::MOST.0)
            .contains(&micro)
            .then_some(Self(micro))
    }

    /// Millionths.
    pub const fn micro(self) -> i32 {
        self.0
    }

    /// As a cosine, for JSON that shows numbers.
    pub fn cosine(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

/// With three decimals, rounded to the nearest, halves to the even one; never `-0.000`.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (whole, rest) = (magnitude / 1000, magnitude % 1000);
        let up = rest > 500 || rest == 500 && whole % 2 == 1;
        let thousandths = whole + u32::from(up);
        let sign = if self.0 < 0 && thousandths > 0 {
            "-"
        } else {
            ""
        };
        write!(f, "{sign}{}.{:03}", thousandths / 1000, thousandths % 1000)
    }
}

impl TryFrom<i32> for Score {
    type Error = &'static str;

    fn try_from(micro: i32) -> Result<Self, Self::Error> {
        Self::from_micro(micro).ok_or("a score is between -1000000 and 1000000 millionths")
    }
}

impl From<Score> for i32 {
    fn from(score: Score) -> Self {
        score.0
    }
}
