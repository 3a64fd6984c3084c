//! Money in whole millionths of a currency's unit: what models cost, never in fractions that round.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Millionths in one unit.
const WHOLE: u64 = 1_000_000;
/// The largest amount that can be written: a thousand million units.
const MOST: u64 = 1_000_000_000 * WHOLE;

/// A text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no amount; write it in quotes, with digits and at most six behind a point, as in \"2.50\""
)]
pub struct AmountError(String);

/// An amount in millionths. Written as decimal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Amount(u64);

impl Amount {
    /// Of so many millionths.
    pub const fn from_micro(micro: u64) -> Self {
        Self(micro)
    }

    /// In millionths.
    pub const fn micro(self) -> u64 {
        self.0
    }
}

impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let refused = || AmountError(text.chars().take(40).collect());
        let (whole, behind) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
        if !digits(whole) || !digits(behind) || behind.len() > 6 {
            return Err(refused());
        }
        let whole: u64 = whole.parse().map_err(|_| refused())?;
        let behind: u64 = format!("{behind:0<6}").parse().map_err(|_| refused())?;
        whole
            .checked_mul(WHOLE)
            .and_then(|whole| whole.checked_add(behind))
            .filter(|micro| *micro <= MOST)
            .map(Self)
            .ok_or_else(refused)
    }
}

impl TryFrom<String> for Amount {
    type Error = AmountError;

    fn try_from(text: String) -> Result<Self, AmountError> {
        text.parse()
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.to_string()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let behind = format!("{:06}", self.0 % WHOLE);
        let needed = behind.trim_end_matches('0').len().max(2);
        let behind = behind.get(..needed).unwrap_or_default();
        write!(f, "{}.{behind}", self.0 / WHOLE)
    }
}

/// A text that is no currency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no currency; write its three capital letters, as in USD")]
pub struct CurrencyError(String);

/// A currency by its three letters; it is a label, nothing is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

impl TryFrom<String> for Currency {
    type Error = CurrencyError;

    fn try_from(text: String) -> Result<Self, CurrencyError> {
        match *text.as_bytes() {
            [a, b, c] if [a, b, c].iter().all(u8::is_ascii_uppercase) => Ok(Self([a, b, c])),
            _ => Err(CurrencyError(text.chars().take(40).collect())),
        }
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.to_string()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Money {
    /// In millionths of the currency's unit.
    pub micro: u64,
    /// The currency.
    pub currency: Currency,
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Amount(self.micro), self.currency)
    }
}

/// What a model costs, per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Sent.
    pub input: Amount,
    /// Received.
    pub output: Amount,
    /// In which currency.
    pub currency: Currency,
}

impl Prices {
    /// What so many tokens cost, rounded up to a whole millionth; beyond all numbers it is the largest.
    pub fn cost(&self, input: u64, output: u64) -> Money {
        let of = |tokens: u64, price: Amount| u128::from(tokens) * u128::from(price.0);
        let sum = of(input, self.input).saturating_add(of(output, self.output));
        Money {
            micro: u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX),
            currency: self.currency,
        }
    }
}

/// How much money one task may spend, and what its tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyBudget {
    /// What tokens cost.
    pub prices: Prices,
    /// How much may be spent; without one it is only counted.
    pub most: Option<Amount>,
}

impl MoneyBudget {
    /// What tokens cost, and why they are too many, if they are.
    ///
    /// # Errors
    /// The budget, in the words that name it.
    pub fn allows(&self, input: u64, output: u64) -> Result<(), String> {
        match self.most {
            // Break it: allow it; `agent::builtin_budget::a_request_that_could_cost_too_much_is_not_made` fails.
            Some(most) if self.prices.cost(input, output).micro > most.micro() => {
                Err(format!("money ({most} {})", self.prices.currency))
            }
            _ => Ok(()),
        }
    }
}
