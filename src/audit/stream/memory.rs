//! What is remembered of each incident of a log. There may be millions of them, so that each costs as little as it can.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Policies;
use crate::change::Sha256Digest;
use crate::id::IncidentId;

/// What a verifier remembers of a log that it has verified up to a size, so that the next time only what is new is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogMemory {
    /// Leaves.
    pub size: u64,
    /// The root over them.
    pub root: Sha256Digest,
    /// Where the events of each incident are.
    pub incidents: BTreeMap<IncidentKey, Places>,
    /// The last sign of life, in milliseconds since 1970.
    pub alive_at: Option<i64>,
    /// The rules in force.
    #[serde(default, skip_serializing_if = "Policies::is_empty")]
    pub policies: Policies,
}

/// The first half of the SHA-256 of an incident's id; in files 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IncidentKey([u8; 16]);

impl IncidentKey {
    pub(super) fn of(incident: &IncidentId) -> Self {
        let digest = Sha256Digest::of(incident.as_str().as_bytes());
        Self(*digest.as_bytes().first_chunk().unwrap_or(&[0; 16]))
    }
}

impl Serialize for IncidentKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", u128::from_be_bytes(self.0)))
    }
}

impl<'de> Deserialize<'de> for IncidentKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut key = [0; 16];
        hex::decode_to_slice(text, &mut key).map_err(D::Error::custom)?;
        Ok(Self(key))
    }
}

/// Ascending places in a log, each as its distance from the one before, seven bits a byte: an incident's are close together. In
/// files a list of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(Box<[u8]>);

impl Places {
    /// Adds one that is not before the last.
    pub(super) fn push(&mut self, place: u64) {
        let mut distance = place.saturating_sub(self.last().unwrap_or(0));
        let mut bytes = std::mem::take(&mut self.0).into_vec();
        while distance >= 0x80 {
            bytes.push(0x80 | u8::try_from(distance & 0x7f).unwrap_or(0x7f));
            distance >>= 7;
        }
        bytes.push(u8::try_from(distance).unwrap_or(0x7f));
        self.0 = bytes.into_boxed_slice();
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.iter().last()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let numbers = self.0.split_inclusive(|byte| byte & 0x80 == 0);
        numbers.scan(0u64, |place, bytes| {
            let distance = bytes.iter().rev().fold(0u64, |distance, byte| {
                distance << 7 | u64::from(byte & 0x7f)
            });
            *place = place.saturating_add(distance);
            Some(*place)
        })
    }
}

impl Serialize for Places {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Vec::<u64>::deserialize(deserializer)?;
        if !list.is_sorted() {
            return Err(D::Error::custom(
                "the places of an incident's events are not in order",
            ));
        }
        let mut places = Self::default();
        for place in list {
            places.push(place);
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::{LogMemory, Places};

    #[test]
    fn places_come_out_as_they_went_in() {
        for list in [
            vec![],
            vec![0],
            vec![0, 0, 1, 127, 128, 129, 1 << 20, u64::MAX],
            vec![u64::MAX],
            (0..1_000).map(|number| number * 511).collect(),
        ] {
            let mut places = Places::default();
            for place in &list {
                places.push(*place);
            }
            assert_eq!(places.iter().collect::<Vec<_>>(), list);
            let text = serde_json::to_string(&places).unwrap();
            assert_eq!(text, serde_json::to_string(&list).unwrap());
            assert_eq!(serde_json::from_str::<Places>(&text).unwrap(), places);
        }
        assert!(serde_json::from_str::<Places>("[2,1]").is_err());
    }

    #[test]
    fn a_memory_is_read_as_it_was_written() {
        let text = r#"{"size":3,"root":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","incidents":{"000102030405060708090a0b0c0d0e0f":[0,2]},"alive_at":null}"#;
        let memory: LogMemory = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&memory).unwrap(), text);
        let other = text.replace("0e0f", "0e");
        assert!(serde_json::from_str::<LogMemory>(&other).is_err());
    }
}
