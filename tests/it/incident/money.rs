//! Money: exact in text and in sums, and never less than it is.

use caretaker::incident::{Amount, Currency, MoneyBudget, Prices};
use proptest::prelude::*;

fn prices(input: u64, output: u64) -> Prices {
    Prices {
        input: Amount::from_micro(input),
        output: Amount::from_micro(output),
        currency: Currency::try_from("EUR".to_owned()).unwrap(),
    }
}

#[test]
fn costs_beyond_all_numbers_are_the_largest() {
    let cost = prices(u64::MAX, u64::MAX).cost(u64::MAX, u64::MAX);
    assert_eq!(cost.micro, u64::MAX);
}

proptest! {
    #[test]
    fn an_amount_is_what_it_is_written_as(micro in 0..=1_000_000_000_000_000_u64) {
        let amount = Amount::from_micro(micro);
        prop_assert_eq!(amount.to_string().parse(), Ok(amount));
    }

    #[test]
    fn no_text_is_read_in_two_ways_or_panics(text in "[0-9.eE+ -]{0,24}") {
        if let Ok(amount) = text.parse::<Amount>() {
            let again: Amount = amount.to_string().parse().unwrap();
            prop_assert_eq!(again, amount);
        }
    }

    #[test]
    fn more_tokens_never_cost_less_and_never_escape_the_budget(
        price in (0..50_000_000_u64, 0..50_000_000_u64),
        tokens in (0..u64::MAX / 2, 0..u64::MAX / 2),
        more in 0..1_000_000_u64,
        most in 0..1_000_000_000_u64,
    ) {
        let prices = prices(price.0, price.1);
        let (less, cost) = (prices.cost(tokens.0, tokens.1), prices.cost(tokens.0 + more, tokens.1));
        prop_assert!(less.micro <= cost.micro);
        let exact = u128::from(tokens.0) * u128::from(price.0) + u128::from(tokens.1) * u128::from(price.1);
        prop_assert!(less.micro == u64::MAX || u128::from(less.micro) * 1_000_000 >= exact);
        let budget = MoneyBudget { prices, most: Some(Amount::from_micro(most)) };
        prop_assert_eq!(budget.allows(tokens.0, tokens.1).is_ok(), less.micro <= most);
    }
}
