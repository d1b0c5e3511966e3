//! Packets in groups, as text and as JSON.

use std::fmt::Write;

use conntrack::SECOND;
use rules::eval::RuleRef;
use rules::model::Family;
use serde_json::{Map, Value, json};

use super::text::{duration, number, plural};
use super::{Report, VerdictCounts};
use crate::decider::{Decider, DeciderPlace};
use crate::groups::{CallPath, Ends, Group, GroupBy, GroupKey, Grouping, has_ports, protocol_text};
use crate::time_text::time_text;

/// Groups that are shown where nobody says how many.
const SHOWN: usize = 20;

impl Report {
    /// Groups that were asked for, and as many of each kind as were.
    fn asked_groups(&self) -> impl Iterator<Item = (&Grouping, &[Group])> {
        let most = self.listing.as_ref().map_or(SHOWN, |listing| listing.limit);
        let asked = self.groups.iter().filter(|grouping| grouping.asked);
        asked.map(move |grouping| (grouping, &grouping.groups[..grouping.groups.len().min(most)]))
    }

    pub(super) fn groups_text(&self, out: &mut String) -> std::fmt::Result {
        for (grouping, shown) in self.asked_groups() {
            let (all, by) = (grouping.groups.len(), grouping.by);
            let lists: Vec<&str> = grouping.lists.packets().collect();
            let head = format!("\nBY {}, {}", by.name().to_uppercase(), lists.join(" or "));
            let packets = plural(grouping.listed, "packet");
            writeln!(out, "{head}: {} of {}, {packets}", shown.len(), plural(all as u64, "group"))?;
            for group in shown {
                self.group_text(out, by, group)?;
            }
            if shown.len() < all {
                let more = number((all - shown.len()) as u64);
                writeln!(out, "  and {more} more (--limit {all} shows all)")?;
            }
            if grouping.left_out > 0 {
                let packets = plural(grouping.left_out, "packet");
                writeln!(out, "  left out: {packets} of groups that were too many to keep")?;
            }
            if grouping.partial {
                writeln!(out, "  too many groups: packets of other verdicts are counted in part")?;
            }
        }
        Ok(())
    }

    fn group_text(&self, out: &mut String, by: GroupBy, group: &Group) -> std::fmt::Result {
        let when = self.span_text(group);
        let example = group.example.map(|(frame, _)| self.numbers.words(frame));
        let example = example.map_or_else(String::new, |frame| format!("#{frame}"));
        let GroupKey::Path(decider, path) = &group.key else {
            let counts = counts_text(&group.verdicts);
            let decided = match (by, &group.example) {
                (GroupBy::Flow, Some((_, by))) => {
                    format!("  by {}", self.old_place(*by).with_line())
                }
                _ => String::new(),
            };
            return writeln!(out, "  {}  {counts}  {when} {example}{decided}", group.key);
        };
        let packets = number(group.listed.packets);
        writeln!(out, "{packets:>12}  {when} {example}")?;
        let mut depth = 0;
        if !path.sure {
            writeln!(out, "{:14}by one of several jumps", "")?;
            depth = 1;
        }
        for jump in self.jumps(*decider, path) {
            let indent = 14 + 2 * depth;
            writeln!(out, "{:indent$}{}", "", jump.with_line())?;
            depth += 1;
        }
        let indent = 14 + 2 * depth;
        writeln!(out, "{:indent$}{}", "", self.old_place(*decider).with_line())
    }

    /// When the first packet came, and how long after it the last one did.
    fn span_text(&self, group: &Group) -> String {
        let Some((first, last)) = group.first.zip(group.last) else { return String::new() };
        let began = self.since_start(first);
        match last.saturating_sub(first) {
            0 => began,
            span => format!("{began} for {}", duration(span)),
        }
    }

    /// A time, as seconds after the first packet of all captures.
    pub(super) fn since_start(&self, time: u64) -> String {
        let start = self.captures.iter().filter_map(|capture| capture.first).min();
        let nanos = time.saturating_sub(start.unwrap_or(time));
        format!("+{}.{:03} s", nanos / SECOND, nanos / 1_000_000 % 1000)
    }

    /// The rules that jump, on the path to what decided.
    fn jumps(&self, decider: Decider, path: &CallPath) -> Vec<DeciderPlace<'_>> {
        let Some((family, _)) = decider.rules() else { return Vec::new() };
        let place = |at: &RuleRef| self.jump_at(family, *at);
        path.jumps.iter().map(place).collect()
    }

    fn jump_at(&self, family: Family, at: RuleRef) -> DeciderPlace<'_> {
        self.old_place(Decider::Rules(family, rules::eval::By::Rule(at)))
    }

    /// Every kind of groups that was asked for.
    pub(super) fn groups_json(&self) -> Option<Value> {
        let groupings = self.asked_groups().map(|(grouping, shown)| {
            let groups = shown.iter().map(|group| self.group_json(group));
            json!({
                "by": grouping.by.name(),
                "lists": grouping.lists.packets().collect::<Vec<_>>(),
                "packets": grouping.listed,
                "total": grouping.groups.len(),
                "left_out": grouping.left_out,
                "partial": grouping.partial,
                "groups": groups.collect::<Vec<_>>(),
            })
        });
        let groupings: Vec<Value> = groupings.collect();
        (!groupings.is_empty()).then_some(Value::Array(groupings))
    }

    fn group_json(&self, group: &Group) -> Value {
        let mut object = Map::new();
        self.key_json(&group.key, &mut object);
        let (frame, by) = group.example.unzip();
        let rest = json!({
            "packets": group.listed.packets,
            "bytes": group.listed.bytes,
            "verdicts": group.verdicts,
            "first": group.first.map(time_text),
            "last": group.last.map(time_text),
            "example": frame.map(|frame| self.numbers.json(frame)),
            "by": by.map(|by| self.old_place(by)),
        });
        if let Value::Object(rest) = rest {
            object.extend(rest);
        }
        Value::Object(object)
    }

    fn key_json(&self, key: &GroupKey, object: &mut Map<String, Value>) {
        let members = match key {
            GroupKey::Path(decider, path) => json!({
                "jumps": self.jumps(*decider, path),
                "sure": path.sure,
            }),
            GroupKey::Flow(Ends(flow)) => {
                let port = |port: u16| has_ports(flow.protocol).then_some(port);
                json!({
                    "protocol": protocol_text(flow.protocol),
                    "source": flow.source,
                    "source_port": port(flow.source_port),
                    "destination": flow.destination,
                    "destination_port": port(flow.destination_port),
                })
            }
            GroupKey::Address(address) => json!({ "address": address }),
            GroupKey::Port(protocol, port) => {
                json!({ "protocol": protocol_text(*protocol), "port": port })
            }
            GroupKey::Nothing => json!({ "nothing": key.to_string() }),
        };
        if let Value::Object(members) = members {
            object.extend(members);
        }
    }
}

/// `3 accept, 12 drop`.
fn counts_text(verdicts: &VerdictCounts) -> String {
    let counts = verdicts.named().into_iter().filter(|(_, count)| count.packets > 0);
    let counts = counts.map(|(name, count)| format!("{} {name}", number(count.packets)));
    counts.collect::<Vec<_>>().join(", ")
}
