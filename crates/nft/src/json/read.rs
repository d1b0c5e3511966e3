//! Reads what `nft -j list ruleset` of 0.9.8 to 1.1 prints. A list may be its only element; a statement that is
//! not known is kept as it is.

use std::collections::HashMap;

use super::expr::element;
use super::{Cx, Json, Types, integer};
use crate::expr::Element;
use crate::model::{
    Attached, Body, Chain, Family, Flowtable, KeyType, Object, Position, Rule, Ruleset, SET_FLAGS,
    Set, Table,
};
use crate::stmt::{Limit, Quota, Synproxy};
use crate::types::{self, Ty};

/// Says what a table's sets hold.
fn types_in(sets: &[Set]) -> impl Fn(&str) -> Option<Types> {
    |name| {
        let set = sets.iter().find(|set| *set.name == *name)?;
        Some((set.key.types(), set.data.as_ref().map(KeyType::types)))
    }
}

/// Reads a ruleset.
pub fn ruleset(text: &str) -> Result<Ruleset, String> {
    let json = Json::parse(text)?;
    let Some(Json::List(list)) = json.get("nftables") else {
        return Err(
            "expected an object with a list \"nftables\", as nft -j list ruleset prints it"
                .to_owned(),
        );
    };
    let mut ruleset = Ruleset::default();
    let mut rules = Vec::new();
    for item in list {
        let Some((kind, body)) = item.one() else {
            return Err("expected objects with one member each".to_owned());
        };
        match kind {
            "metainfo" => {}
            "rule" => rules.push(body),
            "add" | "create" | "insert" | "replace" | "delete" | "destroy" | "flush" | "reset"
            | "list" | "rename" => {
                return Err(format!(
                    "expected what nft -j list ruleset prints instead of the command {kind}"
                ));
            }
            "table" => ruleset.tables.push(table(body)?),
            _ => top(&mut ruleset, kind, body, item)?,
        }
    }
    // Tables have tens of thousands of chains.
    let mut chains = HashMap::new();
    for (table, of) in ruleset.tables.iter().enumerate() {
        let names = of.chains.iter().enumerate();
        chains.extend(names.map(|(at, chain)| ((table, chain.name.clone()), at)));
    }
    for body in rules {
        rule(&mut ruleset, body, &chains)?;
    }
    Ok(ruleset)
}

fn wanted(what: &str, body: &Json) -> String {
    let mut text = body.to_text();
    if let Some((at, _)) = text.char_indices().nth(100) {
        text.truncate(at);
    }
    format!("expected {what} in {text}")
}

fn text<'a>(body: &'a Json, name: &str) -> Result<&'a str, String> {
    body.get(name).and_then(Json::as_text).ok_or_else(|| wanted(name, body))
}

fn handle(body: &Json) -> Option<u64> {
    body.get("handle").and_then(integer)
}

fn comment(body: &Json) -> Option<Box<str>> {
    body.get("comment").and_then(Json::as_text).map(Into::into)
}

fn words(body: &Json, name: &str) -> Vec<Box<str>> {
    let items = body.get(name).map_or(&[][..], Json::items);
    items.iter().filter_map(Json::as_text).map(Into::into).collect()
}

fn table(body: &Json) -> Result<Table, String> {
    let family = Family::find(text(body, "family")?).ok_or_else(|| wanted("a family", body))?;
    let mut table = Table::new(family, text(body, "name")?);
    table.handle = handle(body);
    table.comment = comment(body);
    table.flags = words(body, "flags");
    Ok(table)
}

/// Where the chains of each table stand.
type Chains = HashMap<(usize, Box<str>), usize>;

fn owner(ruleset: &Ruleset, body: &Json) -> Result<usize, String> {
    let family = Family::find(text(body, "family")?).ok_or_else(|| wanted("a family", body))?;
    let at = ruleset.table(family, text(body, "table")?);
    at.ok_or_else(|| wanted("a table that was listed", body))
}

fn top(ruleset: &mut Ruleset, kind: &str, body: &Json, item: &Json) -> Result<(), String> {
    if !body.is_object() || body.get("table").is_none() {
        ruleset.unknown.push(item.clone());
        return Ok(());
    }
    let at = owner(ruleset, body)?;
    let table = &mut ruleset.tables[at];
    match kind {
        "chain" => {
            let read = chain(body)?;
            table.chains.push(read);
        }
        "set" | "map" => {
            let read = set(body, &Cx { family: table.family, sets: &types_in(&table.sets) });
            match read {
                Some(set) => table.sets.push(set),
                None => return Err(wanted(&format!("a {kind} of known types and elements"), body)),
            }
        }
        "flowtable" => table.flowtables.push(flowtable(body)?),
        "element" => {
            let name = text(body, "name")?;
            let Some(at) = table.sets.iter().position(|set| *set.name == *name) else {
                return Err(wanted("a set that was listed", body));
            };
            let of = &table.sets[at];
            let more = {
                let known = types_in(&table.sets);
                elements(
                    body,
                    &of.key,
                    of.data.as_ref(),
                    &Cx { family: table.family, sets: &known },
                )
            };
            let more = more.ok_or_else(|| wanted("elements of the set's type", body))?;
            table.sets[at].elements.extend(more);
        }
        _ => match object(kind, body) {
            Some(read) => {
                let object = Object {
                    name: text(body, "name")?.into(),
                    handle: handle(body),
                    comment: comment(body),
                    body: read,
                };
                table.objects.push(object);
            }
            None => ruleset.unknown.push(item.clone()),
        },
    }
    Ok(())
}

fn chain(body: &Json) -> Result<Chain, String> {
    let attached = match body.get("hook") {
        None => None,
        Some(_) => Some(Attached {
            kind: text(body, "type")?.into(),
            hook: text(body, "hook")?.into(),
            priority: body.get("prio").and_then(integer).ok_or_else(|| wanted("prio", body))?,
            drop: body.get("policy").and_then(Json::as_text) == Some("drop"),
            devices: words(body, "dev"),
        }),
    };
    let name = text(body, "name")?.into();
    Ok(Chain { name, handle: handle(body), comment: comment(body), attached, rules: Vec::new() })
}

fn rule(ruleset: &mut Ruleset, body: &Json, chains: &Chains) -> Result<(), String> {
    let at = owner(ruleset, body)?;
    let table = &mut ruleset.tables[at];
    let known = types_in(&table.sets);
    let cx = Cx { family: table.family, sets: &known };
    let stmts = body
        .get("expr")
        .map_or(&[][..], Json::items)
        .iter()
        .map(|stmt| stmt.statement(&cx))
        .collect();
    let mut rule =
        Rule { handle: handle(body), comment: comment(body), stmts, position: Position::default() };
    crate::normal::rule(&mut rule, table.family);
    let chain = chains.get(&(at, text(body, "chain")?.into()));
    let chain = chain.ok_or_else(|| wanted("a chain that was listed", body))?;
    table.chains[*chain].rules.push(rule);
    Ok(())
}

fn key_type(json: &Json) -> Option<KeyType> {
    if let Some(of) = json.get("typeof") {
        return of.left().map(KeyType::Of);
    }
    // Releases before 1.1 write the types of what a map gives in one string.
    let names = json.items().iter().flat_map(|ty| ty.as_text().unwrap_or("").split(" . "));
    let types: Option<Vec<Ty>> = names.map(types::find).collect();
    types.map(KeyType::Types)
}

fn set(body: &Json, cx: &Cx) -> Option<Set> {
    let key = key_type(body.get("type")?)?;
    let data = match body.get("map") {
        Some(data) => Some(key_type(data)?),
        None => None,
    };
    let mut flags = 0;
    for flag in words(body, "flags") {
        flags |= 1 << SET_FLAGS.iter().position(|name| *name == &*flag)?;
    }
    let seconds = |name| {
        body.get(name)
            .and_then(Json::as_number)
            .map(|seconds| seconds.unsigned_abs().saturating_mul(1000))
    };
    let stmts = body
        .get("stmt")
        .map_or(&[][..], Json::items)
        .iter()
        .map(|stmt| stmt.statement(cx))
        .collect();
    let elements = elements(body, &key, data.as_ref(), cx)?;
    let mut set = Set {
        name: body.get("name")?.as_text()?.into(),
        handle: handle(body),
        comment: comment(body),
        key,
        data,
        flags,
        timeout: seconds("timeout"),
        gc_interval: seconds("gc-interval"),
        size: body.get("size").and_then(integer),
        memory: body.get("policy").and_then(Json::as_text) == Some("memory"),
        auto_merge: body.is_true("auto-merge"),
        stmts,
        elements,
    };
    crate::normal::set(&mut set);
    Some(set)
}

fn elements(body: &Json, key: &KeyType, data: Option<&KeyType>, cx: &Cx) -> Option<Vec<Element>> {
    let Some(items) = body.get("elem") else { return Some(Vec::new()) };
    let (key, data) = (key.types(), data.map(KeyType::types));
    items.items().iter().map(|item| element(item, &key, data.as_deref(), Some(cx))).collect()
}

fn flowtable(body: &Json) -> Result<Flowtable, String> {
    let flags = words(body, "flags");
    let has = |name: &str| flags.iter().any(|flag| **flag == *name);
    Ok(Flowtable {
        name: text(body, "name")?.into(),
        handle: handle(body),
        hook: text(body, "hook")?.into(),
        priority: body.get("prio").and_then(integer).ok_or_else(|| wanted("prio", body))?,
        devices: words(body, "dev"),
        offload: has("offload"),
        counter: has("counter"),
    })
}

fn object(kind: &str, body: &Json) -> Option<Body> {
    let word = |name| body.get(name).and_then(Json::as_text).map(Box::<str>::from);
    let number = |name| body.get(name).and_then(integer::<u64>);
    let small = |name| body.get(name).and_then(integer::<u32>);
    Some(match kind {
        "counter" => Body::Counter(number("packets").zip(number("bytes"))),
        "quota" => Body::Quota(Quota::read_object(body)?),
        "limit" => Body::Limit(Limit::read(body)?),
        "ct helper" => Body::Helper(word("type")?, word("protocol")?, word("l3proto")?),
        "ct timeout" => {
            let mut states = Vec::new();
            if let Json::Object(members) = body.get("policy")? {
                for (state, value) in members {
                    states.push((state.clone(), integer(value)?));
                }
            }
            Body::Timeout(word("protocol")?, word("l3proto")?, states)
        }
        "ct expectation" => Body::Expectation(
            word("protocol")?,
            small("dport")?,
            number("timeout")?,
            small("size")?,
            word("l3proto")?,
        ),
        "synproxy" => Body::Synproxy(Synproxy::read(body)?),
        "secmark" => Body::Secmark(word("context")?),
        _ => return None,
    })
}
