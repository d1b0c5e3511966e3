//! Which field a test is of: one that fits what its rule is about already.

use super::field::{Field, Kind};
use super::{Drawing, keys, options, payload};
use rules::model::Family;

/// Lists of fields, and how often one is drawn.
const LISTS: [(&[Field], u32); 8] = [
    (payload::FIELDS, 20),
    (options::EXTHDR, 4),
    (options::IP_OPTIONS, 1),
    (options::TCP_OPTIONS, 3),
    (keys::META, 8),
    (keys::CT, 7),
    (keys::ROUTES, 4),
    (keys::NUMBERS, 2),
];

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
    let routed = drawing.hooks.iter().all(|hook| matches!(*hook, "forward" | "postrouting"));
    let may = |field: &&Field| {
        sees(field.family)
            && fits(field)
            && drawing.may(field.item)
            && (routed || field.item != "rt mtu")
    };
    let lists: Vec<(Vec<&Field>, u32)> = LISTS
        .iter()
        .map(|(list, share)| (list.iter().filter(may).collect::<Vec<_>>(), *share))
        .filter(|(list, _)| !list.is_empty())
        .collect();
    let mut place = match lists.iter().map(|(_, share)| share).sum() {
        0 => return None,
        all => drawing.draw.rng.u32(..all),
    };
    for (list, share) in &lists {
        if place < *share {
            let field = *drawing.draw.pick(list);
            drawing.about.family = drawing.about.family.or(field.family);
            if is_upper(field.item) {
                drawing.about.upper = Some(field.item);
            }
            return Some(field);
        }
        place -= share;
    }
    None
}

/// Whether an item is that of one header after the network's.
fn is_upper(item: &str) -> bool {
    item.strip_prefix("payload ").is_some_and(|name| !matches!(name, "ip" | "ip6" | "th" | "raw"))
}

/// Some fields with plain values, to be concatenated, but those for which nft asks for a type first: nft 1.0.6 ends by an assertion where it lists one of less than a byte.
pub(super) fn fields(drawing: &mut Drawing<'_>, most: usize) -> Vec<Field> {
    let count = 1 + drawing.draw.rng.usize(..most);
    let mut fields: Vec<Field> = Vec::new();
    for _ in 0..count {
        if let Some(field) = pick_field(drawing)
            && (field.kind.bits().is_some_and(|bits| bits % 8 == 0)
                || matches!(field.kind, Kind::Words(words) if !words[0].contains('-')))
            && !field.name.starts_with('@')
            && !matches!(
                field.name,
                "ip6 dscp" | "icmp id" | "icmp sequence" | "icmpv6 id" | "icmpv6 sequence"
            )
            && !fields.iter().any(|other| other.name == field.name)
        {
            fields.push(field);
        }
    }
    fields
}
