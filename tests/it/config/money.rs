//! Prices and budgets in money: exact, and never one without the other.

use super::{Place, refusal};

const MODEL: &str = "provider: openai, name: m, api_key: env:K";

fn agent(price: &str, budget: &str) -> String {
    format!("agent: {{adapter: builtin, model: {{{MODEL}{price}}}, budget: {{{budget}}}}}")
}

const PRICE: &str = ", price: {input: \"3.00\", output: \"15.125\", currency: USD}";

#[test]
fn prices_are_read_exactly() {
    let loaded = Place::new().load(agent(PRICE, "money: \"2.5\"")).unwrap();
    let price = loaded.agent.model.unwrap().price.unwrap();
    assert_eq!(price.cost(1_000_000, 0).micro, 3_000_000);
    assert_eq!(price.cost(0, 8).micro, 121);
    assert_eq!(price.cost(1, 1).to_string(), "0.000019 USD");
    assert_eq!(loaded.agent.budget.money.unwrap().micro(), 2_500_000);
    // The reader of YAML keeps the text of a number, so that quotes are for other readers.
    let unquoted = Place::new().load(agent(PRICE, "money: 2.5")).unwrap();
    assert_eq!(unquoted.agent.budget.money, loaded.agent.budget.money);
    let unbounded = Place::new().load(agent(PRICE, "")).unwrap();
    assert_eq!(unbounded.agent.budget.money, None);
}

// The line to break is named in `config::agent`.
#[test]
fn a_budget_in_money_needs_prices() {
    let refused = refusal(agent("", "money: \"2.50\""));
    assert!(
        refused.contains("agent.budget.money: a budget in money needs the model's prices; write agent.model.price"),
        "{refused}"
    );
    let refused = refusal("agent: {adapter: command, command: [coder], budget: {money: \"2.50\"}}");
    assert!(refused.contains("agent.budget.money"), "{refused}");
}

#[test]
fn what_is_no_exact_amount_is_refused() {
    for money in [
        "\"0\"",
        "\"2,5\"",
        "\"-1\"",
        "\"1e3\"",
        "\"0.0000001\"",
        "\".5\"",
        "\"5.\"",
        "\"9999999999\"",
    ] {
        let refused = refusal(agent(PRICE, &format!("money: {money}")));
        let named = refused.contains("is no amount") || refused.contains("agent.budget.money");
        assert!(named, "{money}: {refused}");
    }
    for currency in ["usd", "EURO", "\"\""] {
        let price = PRICE.replace("USD", currency);
        let refused = refusal(agent(&price, "money: \"1\""));
        assert!(refused.contains("as in USD"), "{refused}");
    }
}
