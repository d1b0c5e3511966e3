//! Which field a test is of: one that fits what its rule is about already.

use super::field::{Field, Kind};
use super::{Drawing, TableFamily, is_untold, keys, link, options, payload};
use rules::model::Family;

/// Lists of fields.
const LISTS: [&[Field]; 9] = [
    payload::FIELDS,
    link::LINK,
    options::EXTHDR,
    options::IP_OPTIONS,
    options::TCP_OPTIONS,
    keys::META,
    keys::CT,
    keys::ROUTES,
    keys::NUMBERS,
];

/// How often an item is drawn: those more often that few packets have, or that lead to few others.
fn share(item: &str) -> u32 {
    match item {
        "ct helper" => 1,
        "meta skuid" | "meta skgid" | "payload vlan" => 4,
        // There are few hooks where it may be asked.
        "rt mtu" => 120,
        "meta sdif" => 60,
        "socket" | "ip option" => 32,
        item if is_untold(item) => 16,
        "payload ip" | "payload ip6" | "payload tcp" => 24,
        "payload udp" | "payload ether" | "payload raw" => 16,
        "ct state" | "ct status" | "ct address" => 12,
        "payload icmpv6" | "payload igmp" => 24,
        item if item.starts_with("payload") => 15,
        "exthdr presence" | "tcp option presence" => 10,
        item if item.starts_with("exthdr") || item.starts_with("tcp option") => 24,
        "fib type" | "fib oif" | "ct mark" | "ct bytes" | "ct zone" => 8,
        _ if item.starts_with("ct proto-") => 32,
        _ => 5,
    }
}

/// A field, if there is one that may be drawn.
pub(super) fn pick_field(drawing: &mut Drawing<'_>) -> Option<Field> {
    let sees = |family: Option<Family>| family.is_none_or(|family| drawing.family.sees(family));
    let about = drawing.about;
    let fits = |field: &Field| {
        let is_upper = is_upper(field.item);
        (!is_upper || about.upper.is_none_or(|upper| upper == field.item))
            && about.family.is_none_or(|family| field.family.is_none_or(|of| of == family))
    };
    // The kernel takes it where a packet has a route.
    let only = |known: &[&str]| drawing.hooks.iter().all(|hook| known.contains(hook));
    let asked = |name: &str| match (name.contains(" . iif"), name.contains(" . oif")) {
        _ if !name.starts_with("fib") => true,
        (true, _) => only(&["prerouting", "input", "forward"]),
        (_, true) => only(&["forward", "postrouting"]),
        _ => name.ends_with("type") || only(&["prerouting"]),
    };
    let routed = drawing.hooks.iter().all(|hook| matches!(*hook, "forward" | "postrouting"));
    let may = |field: &&Field| {
        sees(field.family)
            && fits(field)
            && drawing.may(field.item)
            && (routed || field.item != "rt mtu")
            && (field.item != "meta sdif" || only(&["input", "forward"]))
            && (field.item != "meta ipsec" || only(&["prerouting", "input", "forward"]))
            // It asks for an EtherType, of which nft 1.0.6 makes one test with what stands beside it.
            && (field.item != "payload vlan" || !drawing.about.plain)
            && (field.item != "socket" || only(&["prerouting", "input"]))
            && (field.item != "meta nfproto" || drawing.family == TableFamily::Inet)
            && asked(field.name)
            && (drawing.draw.ethernet() || !is_link(field.item))
    };
    let mut items: Vec<(u32, Vec<Field>)> = Vec::new();
    let mut last = "";
    for field in LISTS.into_iter().flatten().filter(may) {
        match items.last_mut().filter(|_| last == field.item) {
            Some((_, fields)) => fields.push(*field),
            None => items.push((share(field.item), vec![*field])),
        }
        last = field.item;
    }
    let mut place = match items.iter().map(|(share, _)| share).sum() {
        0 => return None,
        all => drawing.draw.rng.u32(..all),
    };
    for (share, fields) in &items {
        if place < *share {
            let field = drawing.draw.pick(fields);
            drawing.about.family = drawing.about.family.or(field.family);
            drawing.about.plain |= field.item == "payload vlan";
            if is_upper(field.item) {
                drawing.about.upper = Some(field.item);
            }
            return Some(field);
        }
        place -= share;
    }
    None
}

/// Whether an item is read of the link header.
pub(super) fn is_link(item: &str) -> bool {
    matches!(item, "payload ether" | "payload vlan" | "payload raw link")
}

/// Whether an item is that of one header after the network's.
fn is_upper(item: &str) -> bool {
    let other = |name: &str| matches!(name, "ip" | "ip6" | "th" | "raw");
    item.strip_prefix("payload ").is_some_and(|name| !other(name) && !is_link(item))
}

/// Whether it is a field of which nft 1.0.6 knows no type in declarations and concatenations.
pub(super) fn is_untyped(field: Field) -> bool {
    field.item.starts_with("ct proto-")
}

/// Whether nft 1.0.6 does not read it as the key of a map that gives a value.
pub(super) fn is_no_key(field: Field) -> bool {
    field.item.starts_with("fib") || field.item.starts_with("exthdr")
}

/// Some fields with plain values, to be concatenated, but those for which nft asks for a type first: nft 1.0.6 ends by an assertion where it lists one of less than a byte.
pub(super) fn fields(drawing: &mut Drawing<'_>, most: usize) -> Vec<Field> {
    let count = 1 + drawing.draw.rng.usize(..most);
    let mut fields: Vec<Field> = Vec::new();
    for _ in 0..count {
        let before = drawing.about;
        if let Some(field) = pick_field(drawing)
            && (field.kind.bits().is_some_and(|bits| bits % 8 == 0)
                || matches!(field.kind, Kind::Words(words) if !words[0].contains('-')))
            && !field.name.starts_with('@')
            && !is_untyped(field)
            && !matches!(
                field.name,
                "ip6 dscp"
                    | "frag frag-off"
                    | "icmp id"
                    | "icmp sequence"
                    | "icmpv6 id"
                    | "icmpv6 sequence"
            )
            && !fields.iter().any(|other| other.name == field.name)
        {
            fields.push(field);
        } else {
            drawing.about = before;
        }
    }
    fields
}
