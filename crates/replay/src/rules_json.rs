//! Rules as a JSON document, schema `tamis.rules/1`, and back: docs/rules-json.md describes it.
//!
//! Contract: reading takes `family`, names, policies, counters and the `text` of rules; the parts that a rule is
//! taken apart into are for readers, and are not read back.

use rules::eval::tests_of_text;
use rules::model::{Action, Chain, Counters, End, Family, Rule, Ruleset, Table};
use rules::save::print_rule;
use serde_json::{Value, json};

const SCHEMA: &str = "tamis.rules/1";

/// The document of a ruleset.
#[must_use]
pub fn write(ruleset: &Ruleset) -> Value {
    let tables: Vec<Value> = ruleset.tables.iter().map(|t| table(ruleset.family, t)).collect();
    json!({ "schema": SCHEMA, "family": ruleset.family.name(), "tables": tables })
}

fn table(family: Family, table: &Table) -> Value {
    let chains: Vec<Value> = table.chains.iter().map(|c| chain(family, table, c)).collect();
    json!({ "name": table.name, "chains": chains })
}

fn chain(family: Family, table: &Table, chain: &Chain) -> Value {
    let policy = match (chain.base, chain.end) {
        (Some(base), _) => Some(base.policy),
        (None, End::Policy(policy)) => Some(policy),
        (None, End::Return) => None,
    };
    let counters = chain.base.map(|base| base.counters).unwrap_or_default();
    let rules: Vec<Value> = chain.rules.iter().map(|r| rule(family, table, chain, r)).collect();
    json!({
        "name": &*chain.name,
        "builtin": chain.base.is_some(),
        "policy": policy.map(|policy| policy.to_string()),
        "packets": counters.packets,
        "bytes": counters.bytes,
        "rules": rules,
    })
}

fn rule(family: Family, table: &Table, chain: &Chain, rule: &Rule) -> Value {
    let to = |index: u32| table.chains.get(index as usize).map(|chain| &*chain.name);
    let action = match &rule.action {
        Action::None => json!({ "kind": "none" }),
        Action::Accept => json!({ "kind": "accept" }),
        Action::Drop => json!({ "kind": "drop" }),
        Action::Return => json!({ "kind": "return" }),
        Action::Jump(index) => json!({ "kind": "jump", "chain": to(*index) }),
        Action::Goto(index) => json!({ "kind": "goto", "chain": to(*index) }),
        Action::Target(used) => json!({ "kind": "target", "name": &*used.name }),
    };
    let Counters { packets, bytes } = rule.counters;
    json!({
        "line": rule.line,
        "text": print_rule(family, table, chain, rule),
        "tests": tests_of_text(family, rule),
        "action": action,
        "packets": packets,
        "bytes": bytes,
    })
}

/// The save text of a document; `Err` is what was expected, and where in the document.
pub fn read(document: &str) -> Result<(Family, String), String> {
    let document: Value = serde_json::from_str(document).map_err(|error| error.to_string())?;
    if document["schema"] != SCHEMA {
        return Err(format!("expected \"schema\": \"{SCHEMA}\""));
    }
    let family = document["family"].as_str().and_then(Family::from_name);
    let family = family.ok_or("expected \"family\": ip, ip6, arp or bridge")?;
    let mut text = String::new();
    for table in list(&document, "tables")? {
        let name = word(table, "name")?;
        text += &format!("*{name}\n");
        let chains = list(table, "chains")?;
        for chain in chains {
            let none = if family == Family::Bridge { "RETURN" } else { "-" };
            let policy = chain["policy"].as_str().unwrap_or(none);
            let (chain_name, counters) = (word(chain, "name")?, counters(chain));
            text += &format!(":{chain_name} {policy} {counters}\n");
        }
        for chain in chains {
            for rule in list(chain, "rules")? {
                text += &format!("{} {}\n", counters(rule), word(rule, "text")?);
            }
        }
        text += "COMMIT\n";
    }
    Ok((family, text))
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v Vec<Value>, String> {
    value[name].as_array().ok_or_else(|| format!("expected a list \"{name}\""))
}

/// A string that stays on its line.
fn word<'v>(value: &'v Value, name: &str) -> Result<&'v str, String> {
    let text = value[name].as_str().filter(|text| !text.contains(['\n', '\r']));
    text.ok_or_else(|| format!("expected a string \"{name}\" of one line"))
}

fn counters(value: &Value) -> Counters {
    let number = |name: &str| value[name].as_u64().unwrap_or(0);
    Counters { packets: number("packets"), bytes: number("bytes") }
}
