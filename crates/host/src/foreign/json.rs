//! `nft -j list ruleset`, of any release: every list may be a scalar, and a statement that is not known may do anything.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::chain::{ForeignChain, ForeignFamily, ForeignHook, ForeignProgram};
use super::effects::{Effects, of_meta, of_statement};
use super::listing::{Body, Listing};
use crate::text::TextError;

#[derive(Deserialize)]
struct Document {
    nftables: Vec<Object>,
}

/// An object of a listing; other kinds of objects are ignored.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Object {
    table: Option<Table>,
    chain: Option<Chain>,
    rule: Option<Rule>,
    map: Option<Map>,
}

#[derive(Deserialize)]
struct Table {
    family: String,
    name: String,
    #[serde(default)]
    flags: Value,
}

#[derive(Deserialize)]
struct Chain {
    family: String,
    table: String,
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    hook: Option<String>,
    #[serde(default)]
    prio: Value,
    policy: Option<String>,
    #[serde(default)]
    dev: Value,
    #[serde(default)]
    devices: Value,
}

#[derive(Deserialize)]
struct Rule {
    family: String,
    table: String,
    chain: String,
    #[serde(default)]
    expr: Statements,
}

#[derive(Deserialize)]
struct Map {
    family: String,
    table: String,
    name: String,
    #[serde(default)]
    elem: Value,
}

/// The statements of a rule, told as they are read: rulesets have them by the hundred thousand.
#[derive(Default)]
struct Statements(Body);

impl<'de> Deserialize<'de> for Statements {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Statements;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of statements")
    }

    fn visit_unit<E>(self) -> Result<Statements, E> {
        Ok(Statements::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Statements, A::Error> {
        let mut body = Body::default();
        while let Some(Statements(one)) = seq.next_element()? {
            body.effects.add(one.effects);
            body.chains.extend(one.chains);
            body.maps.extend(one.maps);
        }
        Ok(Statements(body))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Statements, A::Error> {
        let mut body = Body::default();
        while let Some(name) = map.next_key::<String>()? {
            match &*name {
                "jump" | "goto" | "vmap" => {
                    let value: Value = map.next_value()?;
                    if value.get("key").is_some_and(|key| key.to_string().contains("\"ct\"")) {
                        body.effects.add(Effects::TRACKS);
                    }
                    verdicts(&name, &value, &mut body);
                }
                "mangle" => {
                    let value: Value = map.next_value()?;
                    if value.to_string().contains("\"ct\"") {
                        body.effects.add(Effects::TRACKS);
                    }
                    body.effects.add(of_mangle(&value));
                }
                _ => {
                    let asked: &RawValue = map.next_value()?;
                    if name.starts_with("ct ") || asked.get().contains("\"ct\"") {
                        body.effects.add(Effects::TRACKS);
                    }
                    body.effects.add(of_statement(&name).unwrap_or(Effects::ALL));
                }
            }
        }
        Ok(Statements(body))
    }

    fn visit_str<E>(self, name: &str) -> Result<Statements, E> {
        let effects = of_statement(name).unwrap_or(Effects::ALL);
        Ok(Statements(Body { effects, ..Body::default() }))
    }
}

/// Verdicts wherever they stand in what a statement of this name, or a map, is given.
fn verdicts(name: &str, value: &Value, body: &mut Body) {
    match (name, value) {
        ("jump" | "goto", _) => {
            let target = value.get("target").or(Some(value)).and_then(Value::as_str);
            match target {
                Some(target) => body.chains.push(target.into()),
                None => body.effects.add(Effects::ALL),
            }
        }
        ("drop", _) => body.effects.add(Effects::DROPS),
        ("queue", _) => body.effects.add(Effects::ALL),
        (_, Value::Array(all)) => all.iter().for_each(|one| verdicts("", one, body)),
        (_, Value::Object(all)) => all.iter().for_each(|(name, one)| verdicts(name, one, body)),
        (_, Value::String(map)) if map.starts_with('@') => body.maps.push(map[1..].into()),
        _ => {}
    }
}

/// What is set, if a packet only carries it.
fn of_mangle(value: &Value) -> Effects {
    let Some(Value::Object(key)) = value.get("key") else { return Effects::ALL };
    let field = |of: &str| key.get(of).and_then(|of| of.get("key")).and_then(Value::as_str);
    match (field("meta"), field("ct")) {
        (Some(name), None) => of_meta("meta", name),
        (None, Some(name)) => of_meta("ct", name),
        _ if key.contains_key("tcp option") || key.contains_key("tcpoption") => Effects::OPTIONS,
        _ => Effects::ALL,
    }
}

/// The words of a value that is one or a list of them.
fn words(value: &Value) -> Vec<Box<str>> {
    match value {
        Value::String(word) => vec![(**word).into()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).map(Into::into).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn read(text: &str, listing: &mut Listing) -> Result<(), TextError> {
    let document: Document = serde_json::from_str(text).map_err(|error| TextError {
        line: error.line() as u32,
        column: error.column() as u32,
        expected: "JSON as nft -j list ruleset prints it",
        found: error.to_string(),
    })?;
    for object in document.nftables {
        if let Some(Table { family, name, flags }) = object.table
            && let Some(family) = ForeignFamily::named(&family)
            && words(&flags).iter().any(|flag| &**flag == "dormant")
        {
            listing.dormant.insert((family, name.into()));
        }
        if let Some(chain) = object.chain {
            take_chain(&chain, listing);
        }
        if let Some(Rule { family, table, chain, expr: Statements(read) }) = object.rule
            && let Some(family) = ForeignFamily::named(&family)
        {
            let body = listing.chain(family, &table, &chain);
            body.effects.add(read.effects);
            body.chains.extend(read.chains);
            body.maps.extend(read.maps);
        }
        if let Some(Map { family, table, name, elem }) = object.map
            && let Some(family) = ForeignFamily::named(&family)
        {
            verdicts("", &elem, listing.map(family, &table, &name));
        }
    }
    Ok(())
}

fn take_chain(chain: &Chain, listing: &mut Listing) {
    let Some(family) = ForeignFamily::named(&chain.family) else { return };
    listing.chain(family, &chain.table, &chain.name);
    let Some(hook) = chain.hook.as_deref().and_then(ForeignHook::named) else { return };
    let mut devices = words(&chain.dev);
    devices.extend(words(&chain.devices));
    let mut effects = Effects::default();
    if chain.policy.as_deref() == Some("drop") {
        effects.add(Effects::DROPS);
    }
    listing.bases.push(ForeignChain {
        program: ForeignProgram::Nft,
        family,
        table: (*chain.table).into(),
        name: (*chain.name).into(),
        hook,
        priority: chain.prio.as_i64().and_then(|prio| i32::try_from(prio).ok()).unwrap_or(0),
        is_nat: chain.kind.as_deref() == Some("nat"),
        reroutes: chain.kind.as_deref() == Some("route"),
        devices,
        effects,
    });
}
