//! A ruleset as `nft -j list ruleset` of 1.1 prints it.

use super::Json;
use crate::model::{
    Attached, Body, Chain, Flowtable, KeyType, Object, Ruleset, SET_FLAGS, Set, Table,
};
use crate::text::Printer;
use crate::types::VERDICT;

/// Writes a ruleset on one line.
pub fn ruleset(ruleset: &Ruleset, p: &mut Printer) -> String {
    let meta = Json::object(vec![
        ("version", Json::text("1.1.6")),
        ("release_name", Json::text("Commodore Bullmoose #7")),
        ("json_schema_version", Json::of(1)),
    ]);
    let mut list = vec![Json::object(vec![("metainfo", meta)])];
    for table in &ruleset.tables {
        p.family = table.family;
        list.extend(tables(table, p));
    }
    list.extend(ruleset.unknown.iter().cloned());
    Json::object(vec![("nftables", Json::List(list))]).to_text()
}

type Members = Vec<(&'static str, Json)>;

fn one(name: &str, members: Members) -> Json {
    Json::object(vec![(name, Json::object(members))])
}

fn texts(list: &[Box<str>]) -> Json {
    Json::few(list.iter().map(|text| Json::text(text)).collect())
}

fn tables(table: &Table, p: &Printer) -> Vec<Json> {
    let mut members: Members =
        vec![("family", Json::text(table.family.name())), ("name", Json::text(&table.name))];
    finish(&mut members, table.handle, table.comment.as_deref());
    if !table.flags.is_empty() {
        members.push(("flags", Json::each(&table.flags, |flag| Json::text(flag))));
    }
    let mut list = vec![one("table", members)];
    list.extend(table.chains.iter().map(|of| chain(of, table)));
    list.extend(table.objects.iter().map(|of| object(of, table)));
    list.extend(table.sets.iter().map(|of| set(of, table, p)));
    list.extend(table.flowtables.iter().map(|of| flowtable(of, table)));
    for chain in &table.chains {
        for rule in &chain.rules {
            let mut members: Members = vec![
                ("family", Json::text(table.family.name())),
                ("table", Json::text(&table.name)),
                ("chain", Json::text(&chain.name)),
            ];
            finish(&mut members, rule.handle, rule.comment.as_deref());
            members.push(("expr", Json::each(&rule.stmts, |stmt| stmt.json(p))));
            list.push(one("rule", members));
        }
    }
    list
}

fn finish(members: &mut Members, handle: Option<u64>, comment: Option<&str>) {
    members.extend(handle.map(|handle| ("handle", Json::of(handle))));
    members.extend(comment.map(|comment| ("comment", Json::text(comment))));
}

fn chain(chain: &Chain, table: &Table) -> Json {
    let mut members: Members = vec![
        ("family", Json::text(table.family.name())),
        ("table", Json::text(&table.name)),
        ("name", Json::text(&chain.name)),
    ];
    finish(&mut members, chain.handle, chain.comment.as_deref());
    if let Some(Attached { kind, hook, priority, drop, devices }) = &chain.attached {
        if !devices.is_empty() {
            members.push(("dev", texts(devices)));
        }
        members.extend([
            ("type", Json::text(kind)),
            ("hook", Json::text(hook)),
            ("prio", Json::of(*priority)),
            ("policy", Json::text(if *drop { "drop" } else { "accept" })),
        ]);
    }
    one("chain", members)
}

fn named(table: &Table, name: &str) -> Members {
    vec![
        ("family", Json::text(table.family.name())),
        ("name", Json::text(name)),
        ("table", Json::text(&table.name)),
    ]
}

fn key_type(key: &KeyType, p: &Printer) -> Json {
    match key {
        KeyType::Types(types) => Json::few(types.iter().map(|ty| Json::text(ty.name)).collect()),
        KeyType::Of(expr) => Json::object(vec![("typeof", expr.json(p))]),
    }
}

fn set(set: &Set, table: &Table, p: &Printer) -> Json {
    let mut members = named(table, &set.name);
    members.push(("type", key_type(&set.key, p)));
    finish(&mut members, set.handle, set.comment.as_deref());
    if let Some(data) = &set.data {
        let verdict = data.types() == [&VERDICT];
        members.push(("map", if verdict { Json::text("verdict") } else { key_type(data, p) }));
    }
    if set.memory {
        members.push(("policy", Json::text("memory")));
    }
    members.extend(set.size.map(|size| ("size", Json::of(size))));
    if set.flags != 0 {
        let names = SET_FLAGS.iter().enumerate().filter(|(at, _)| set.flags >> at & 1 == 1);
        members.push(("flags", Json::List(names.map(|(_, name)| Json::text(name)).collect())));
    }
    for (name, span) in [("timeout", set.timeout), ("gc-interval", set.gc_interval)] {
        members.extend(span.map(|ms| (name, Json::Number((ms / 1000).cast_signed()))));
    }
    if set.auto_merge {
        members.push(("auto-merge", Json::Bool(true)));
    }
    if !set.elements.is_empty() {
        members.push(("elem", Json::each(&set.elements, |element| element.json(p))));
    }
    if !set.stmts.is_empty() {
        members.push(("stmt", Json::each(&set.stmts, |stmt| stmt.json(p))));
    }
    one(if set.data.is_some() { "map" } else { "set" }, members)
}

fn flowtable(of: &Flowtable, table: &Table) -> Json {
    let mut members = named(table, &of.name);
    finish(&mut members, of.handle, None);
    members.extend([("hook", Json::text(&of.hook)), ("prio", Json::of(of.priority))]);
    if !of.devices.is_empty() {
        members.push(("dev", texts(&of.devices)));
    }
    let flags = [(of.offload, "offload"), (of.counter, "counter")];
    let flags: Vec<Json> =
        flags.into_iter().filter(|flag| flag.0).map(|flag| Json::text(flag.1)).collect();
    if !flags.is_empty() {
        members.push(("flags", Json::List(flags)));
    }
    one("flowtable", members)
}

fn object(object: &Object, table: &Table) -> Json {
    let mut members = named(table, &object.name);
    finish(&mut members, object.handle, object.comment.as_deref());
    match &object.body {
        Body::Counter(counter) => {
            let values = counter.iter().flat_map(|(packets, bytes)| {
                [("packets", Json::of(*packets)), ("bytes", Json::of(*bytes))]
            });
            members.extend(values);
        }
        Body::Quota(quota) => members.extend([
            ("bytes", Json::of(quota.bytes)),
            ("used", Json::of(quota.used)),
            ("inv", Json::Bool(quota.over)),
        ]),
        Body::Limit(limit) => members.extend(limit.json(true)),
        Body::Helper(helper, protocol, family) => members.extend([
            ("type", Json::text(helper)),
            ("protocol", Json::text(protocol)),
            ("l3proto", Json::text(family)),
        ]),
        Body::Timeout(protocol, family, states) => members.extend([
            ("protocol", Json::text(protocol)),
            ("l3proto", Json::text(family)),
            (
                "policy",
                Json::object(
                    states.iter().map(|(state, seconds)| (&**state, Json::of(*seconds))).collect(),
                ),
            ),
        ]),
        Body::Expectation(protocol, port, timeout, size, family) => members.extend([
            ("protocol", Json::text(protocol)),
            ("dport", Json::of(*port)),
            ("timeout", Json::of(*timeout)),
            ("size", Json::of(*size)),
            ("l3proto", Json::text(family)),
        ]),
        Body::Synproxy(synproxy) => members.extend(synproxy.json()),
        Body::Secmark(label) => members.push(("context", Json::text(label))),
        Body::Tunnel(json) => {
            let mut whole = Json::object(members);
            whole.merge(json.clone());
            return Json::object(vec![("tunnel", whole)]);
        }
    }
    one(object.body.kind(), members)
}
