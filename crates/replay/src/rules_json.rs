//! Rules as a JSON document, schema `tamis.rules/1`, and back: docs/rules-json.md describes it.
//!
//! Contract: reading takes `family`, names, policies, counters and the `text` of rules; the parts that a rule is
//! taken apart into are for readers, and are not read back.

use rules::eval::tests_of_text;
use rules::model::{Action, Chain, Counters, FallThrough, Family, Rule, Ruleset, Table};
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
    json!({ "name": &*table.name, "chains": chains })
}

fn chain(family: Family, table: &Table, chain: &Chain) -> Value {
    let policy = match (chain.base, chain.fall_through) {
        (Some(base), _) => Some(base.policy),
        (None, FallThrough::Policy(policy)) => Some(policy),
        (None, FallThrough::Return) => None,
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
        text += &format!("*{}\n", name(table)?);
        let chains = list(table, "chains")?;
        for chain in chains {
            let (name, policy) = (name(chain)?, policy(chain, family)?);
            text += &format!(":{name} {policy} {}\n", counters(chain)?);
        }
        for chain in chains {
            for rule in list(chain, "rules")? {
                text += &format!("{} {}\n", counters(rule)?, rule_text(rule)?);
            }
        }
        text += "COMMIT\n";
    }
    Ok((family, text))
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v Vec<Value>, String> {
    value[name].as_array().ok_or_else(|| format!("expected a list \"{name}\""))
}

// What follows becomes text of lines and words, which no value may add to.

/// The name of a table or chain, which is one word.
fn name(value: &Value) -> Result<&str, String> {
    let odd = |c: char| c.is_whitespace() || c.is_control();
    let name = value["name"].as_str().filter(|name| !name.is_empty() && !name.contains(odd));
    name.ok_or_else(|| format!("expected a name of one word, found \"name\": {}", value["name"]))
}

/// The word for what a chain does at its end.
fn policy(chain: &Value, family: Family) -> Result<&str, String> {
    match &chain["policy"] {
        Value::Null if family == Family::Bridge => Ok("RETURN"),
        Value::Null => Ok("-"),
        Value::String(policy) if matches!(&**policy, "ACCEPT" | "DROP") => Ok(policy),
        other => Err(format!("expected ACCEPT, DROP or null, found \"policy\": {other}")),
    }
}

/// The text of a rule, on its line.
fn rule_text(rule: &Value) -> Result<&str, String> {
    let is_rule = |text: &&str| text.starts_with("-A ") && !text.contains(['\n', '\r']);
    let text = rule["text"].as_str().filter(is_rule);
    text.ok_or_else(|| format!("expected -A CHAIN … on one line, found \"text\": {}", rule["text"]))
}

fn counters(value: &Value) -> Result<Counters, String> {
    let number = |name: &str| match &value[name] {
        Value::Null => Ok(0),
        count => {
            let wrong = || format!("expected a number, found \"{name}\": {count}");
            count.as_u64().ok_or_else(wrong)
        }
    };
    Ok(Counters { packets: number("packets")?, bytes: number("bytes")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document of one chain with one rule, changed at a place.
    fn changed(pointer: &str, to: Value) -> String {
        let mut document = json!({ "schema": SCHEMA, "family": "ip", "tables": [{
            "name": "filter",
            "chains": [{ "name": "FORWARD", "policy": "DROP", "packets": 0, "bytes": 0,
                "rules": [{ "text": "-A FORWARD -j ACCEPT", "packets": 1, "bytes": 2 }] }],
        }] });
        *document.pointer_mut(pointer).unwrap() = to;
        document.to_string()
    }

    #[test]
    fn a_document_becomes_its_lines() {
        let (family, text) = read(&changed("/schema", SCHEMA.into())).unwrap();
        let lines = "*filter\n:FORWARD DROP [0:0]\n[1:2] -A FORWARD -j ACCEPT\nCOMMIT\n";
        assert_eq!((family, &*text), (Family::Ipv4, lines));
    }

    #[test]
    fn no_value_adds_a_line_or_a_word() {
        for (at, to) in [
            ("/tables/0/name", "filter\n:INPUT DROP"),
            ("/tables/0/chains/0/name", "FORWARD ACCEPT [0:0]\n-A INPUT"),
            ("/tables/0/chains/0/name", "FORWARD ACCEPT"),
            ("/tables/0/chains/0/name", ""),
            ("/tables/0/chains/0/policy", "DROP [0:0]\n:INPUT DROP"),
            ("/tables/0/chains/0/policy", "-"),
            ("/tables/0/chains/0/rules/0/text", "-A FORWARD -j DROP\nCOMMIT"),
            ("/tables/0/chains/0/rules/0/text", "COMMIT"),
            ("/tables/0/chains/0/rules/0/packets", "1"),
        ] {
            let refused = read(&changed(at, to.into())).unwrap_err();
            assert!(refused.starts_with("expected ") && !refused.contains('\n'), "{refused}");
        }
        assert!(read(&changed("/tables/0/chains/0/policy", Value::Bool(true))).is_err());
    }
}
