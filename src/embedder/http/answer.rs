//! An embedder's answer, read as what a stranger wrote: `{"data": [{"embedding": [numbers], "index": n}, …], …}`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

use crate::embedder::{MOST_DIMENSIONS, MOST_TEXTS};
use crate::intent::Outage;

/// Largest answer that is read, in bytes.
pub const MOST_BYTES: usize = 8 * 1024 * 1024;

/// Why an answer is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Not JSON of the form.
    #[error("its answer is not of the form of embeddings ({0})")]
    Malformed(&'static str),
    /// More or fewer vectors than texts.
    #[error("its answer does not have one embedding a text: {found} for {asked}")]
    Count {
        /// Texts.
        asked: usize,
        /// Vectors.
        found: usize,
    },
    /// `index` does not say which vector belongs to which text.
    #[error(
        "its answer does not say which embedding is whose: its `index` is not one of each from 0 to {0}"
    )]
    Index(usize),
    /// A vector without numbers.
    #[error("its answer has an embedding without numbers")]
    Empty,
    /// Vectors of different lengths, or of another than before.
    #[error("its answer has an embedding of {found} numbers where {expected} were expected")]
    Dimension {
        /// Expected.
        expected: usize,
        /// Found.
        found: usize,
    },
    /// NaN, infinite, null.
    #[error("its answer has an embedding with null, or with a number too large for one")]
    NonFinite,
}

impl AnswerError {
    /// The class.
    pub const fn outage(&self) -> Outage {
        match self {
            Self::Malformed(_) | Self::Empty => Outage::Malformed,
            Self::Count { .. } | Self::Index(_) => Outage::Count,
            Self::Dimension { .. } => Outage::Dimension,
            Self::NonFinite => Outage::NonFinite,
        }
    }
}

/// Reads the vectors for `asked` texts, in the order of the texts; `dimension` is what earlier answers had.
///
/// # Errors
/// Anything that leaves open which vector belongs to which text, or that is no vector.
pub fn read(
    bytes: &[u8],
    asked: usize,
    dimension: Option<usize>,
) -> Result<Vec<Vec<f32>>, AnswerError> {
    let answer: Answer = serde_json::from_slice(bytes).map_err(|error| {
        AnswerError::Malformed(if error.is_eof() {
            "it ends too early"
        } else if error.is_syntax() {
            "it is not JSON"
        } else {
            "members are missing, or of another kind"
        })
    })?;
    let items = answer.data.0;
    // Break it: take as many as are there; the vector of one text then stands for another
    // (`embedder::answers::another_number_of_vectors_is_refused`).
    if items.len() != asked {
        return Err(AnswerError::Count {
            asked,
            found: items.len(),
        });
    }
    let items = ordered(items)?;
    let expected = dimension.or_else(|| items.first().map(|vector| vector.0.len()));
    items
        .into_iter()
        .map(|vector| {
            let found = vector.0.len();
            match expected {
                // It would be the dimension of all that follow.
                _ if found == 0 => Err(AnswerError::Empty),
                Some(expected) if expected != found => {
                    Err(AnswerError::Dimension { expected, found })
                }
                // Break it: leave the question out; a number that JSON holds and f32 does not is infinite then
                // (`embedder::answers::null_and_numbers_beyond_f32_are_refused`).
                _ if !vector.0.iter().all(|number| number.is_finite()) => {
                    Err(AnswerError::NonFinite)
                }
                _ => Ok(vector.0),
            }
        })
        .collect()
}

/// Vectors in the order of `index`, which all of them have or none.
fn ordered(items: Vec<Item>) -> Result<Vec<Numbers>, AnswerError> {
    let count = items.len();
    let fault = AnswerError::Index(count.saturating_sub(1));
    if items.iter().all(|item| item.index.is_none()) {
        return Ok(items.into_iter().map(|item| item.embedding).collect());
    }
    let mut places: Vec<Option<Numbers>> = std::iter::repeat_with(|| None).take(count).collect();
    for item in items {
        let index = item.index.and_then(|index| usize::try_from(index).ok());
        // Break it: take them in the order in which they stand (`embedder::answers::vectors_are_whose_index_they_carry`).
        let place = index.and_then(|index| places.get_mut(index));
        match place {
            Some(place) if place.is_none() => *place = Some(item.embedding),
            _ => return Err(fault),
        }
    }
    places.into_iter().collect::<Option<_>>().ok_or(fault)
}

#[derive(serde::Deserialize)]
struct Answer {
    data: Items,
}

#[derive(serde::Deserialize)]
struct Item {
    embedding: Numbers,
    #[serde(default)]
    index: Option<u64>,
}

/// At most one more than could have been asked for.
struct Items(Vec<Item>);

/// At most one more than [`MOST_DIMENSIONS`]; null is NaN.
struct Numbers(Vec<f32>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_seq(Bounded(MOST_TEXTS, std::marker::PhantomData::<Item>))
            .map(Self)
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bounded = Bounded(MOST_DIMENSIONS, std::marker::PhantomData::<Number>);
        let numbers: Vec<Number> = deserializer.deserialize_seq(bounded)?;
        Ok(Self(numbers.into_iter().map(|number| number.0).collect()))
    }
}

/// A number, or null.
struct Number(f32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what f32 does not hold is infinite then, and refused"
        )]
        Ok(Self(number as f32))
    }
}

/// A list that is refused as soon as it is too long, whatever room its writer would have it take.
struct Bounded<T>(usize, std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {}", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == self.0 {
                return Err(serde::de::Error::invalid_length(self.0 + 1, &self));
            }
            items.push(item);
        }
        Ok(items)
    }
}
