//! The report as JSON, schema `tamis.replay/1`: what stands in it stays, more may be added.

use std::collections::BTreeMap;
use std::io::{self, Write};

use conntrack::Mode;
use conntrack::steer::Key;
use dataplane::Counters;
use rules::eval::RuleRef;
use rules::model::Family;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::Report;
use crate::json_text;
use crate::reach::Reach;
use crate::rules_file::RulesFile;
use crate::time_text::time_text;

/// The document. Rules may be a million, so their hits are written one by one.
struct Document<'r>(&'r Report);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Value::Object(members) = self.0.all_but_hits() else { return to.serialize_unit() };
        let mut map = to.serialize_map(None)?;
        for (key, value) in &members {
            map.serialize_entry(key, value)?;
        }
        let reach: Vec<Reach> = (0..self.0.files.len()).map(|file| self.0.reach(file)).collect();
        map.serialize_entry("hits", &Hits(&self.0.files, &self.0.counters, &reach, Some(self.0)))?;
        if let Some(changes) = &self.0.changes {
            map.serialize_entry(
                "new_hits",
                &Hits(&changes.files, &changes.counters, &changes.reach, None),
            )?;
        }
        map.end()
    }
}

/// Rules files, what was counted on each, and the report that says why rules may have been hit.
struct Hits<'r>(&'r [RulesFile], &'r [Counters], &'r [Reach], Option<&'r Report>);

impl Serialize for Hits<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(files, counters, reach, report) = self;
        let files = files.iter().zip(*counters).zip(*reach).enumerate();
        to.collect_seq(files.flat_map(|(index, ((file, counters), reach))| {
            let because = move |at| report.and_then(|report| report.maybe_json(index, at));
            hits(file, counters, reach, because)
        }))
    }
}

impl Report {
    /// Writes the whole report as one document.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn write_json(&self, to: &mut dyn Write) -> io::Result<()> {
        json_text::pretty(to, &Document(self))
    }

    fn all_but_hits(&self) -> Value {
        let mut rules: Vec<Value> = self.files.iter().map(rules_of).collect();
        let mut document = json!({
            "schema": "tamis.replay/1",
            "rules": if rules.is_empty() { Value::Null } else { rules.remove(0) },
            "captures": self.captures.iter().map(|capture| json!({
                "file": capture.name.file,
                "interface": capture.name.interface,
                "packets": capture.count.packets,
                "bytes": capture.count.bytes,
                "first": capture.first.map(time_text),
                "last": capture.last.map(time_text),
                "dropped": capture.dropped,
            })).collect::<Vec<_>>(),
            "assumed": self.assumed(),
            "parallel": {
                "class": self.class.to_string(),
                "because": self.class_because,
                "key": self.class.key().map(|key| match key {
                    Key::Addresses => "addresses",
                    Key::Ports(_) => "ports",
                }),
            },
            "packets": self.packets,
            "verdicts": self.verdicts,
            "unknown_because": self.unknown_places().into_iter().map(|reason| json!({
                "line": reason.place.map(|(_, line)| line),
                "what": reason.what,
                "how": reason.how,
                "packets": reason.packets,
            })).collect::<Vec<_>>(),
            "policies": self.policies(),
            "drop_reasons": self.drop_reasons_json(),
            "skipped": {
                "family": self.skipped.family,
                "families": self.skipped.families.iter().map(|(family, packets)| {
                    (family.map_or("other", Family::name), *packets)
                }).collect::<BTreeMap<_, _>>(),
                "second": self.skipped.second,
                "lower": self.skipped.lower,
                "link_type": self.skipped.link_type,
                "link_types": self.skipped.link_types.iter().map(|(kind, packets)| {
                    (kind.0.to_string(), *packets)
                }).collect::<BTreeMap<_, _>>(),
                "fragment": self.skipped.fragment,
                "other_host": self.skipped.other_host,
            },
            "sightings": self.sightings,
            "contradictions": self.contradictions_json(),
            "unseen": self.unseen(),
            "interrupted": self.interrupted,
            "soundness": self.soundness,
            "warnings": self.warnings,
            "elapsed_s": self.elapsed_s,
            "packets_per_s": self.packets_per_s(),
        });
        if let (false, Some(object)) = (rules.is_empty(), document.as_object_mut()) {
            object.insert("more_rules".to_owned(), Value::Array(rules));
        }
        if let (false, Some(object)) = (self.listed.is_empty(), document.as_object_mut()) {
            object.insert("listed".to_owned(), self.listed_json());
        }
        if let Some(object) = document.as_object_mut() {
            object.extend(self.listing_json().map(|listing| ("list".to_owned(), listing)));
            object.extend(self.groups_json().map(|groups| ("groups".to_owned(), groups)));
            object.extend(self.changes_json().map(|changes| ("changes".to_owned(), changes)));
            if !self.selection.is_everything() {
                object.insert("selected".to_owned(), json!({ "read": self.frames }));
            }
        }
        document
    }

    pub(super) fn assumed(&self) -> Value {
        let (path, _) = self.path();
        json!({
            "family": self.files.first().map(|file| file.ruleset.family.name()),
            "semantics": self.files.first().map(|file| file.ruleset.backend.name()),
            "path": path,
            "in": self.config.input,
            "out": self.config.output,
            "nets": self.config.nets.iter()
                .map(|(name, net)| format!("{name}={net}"))
                .collect::<Vec<_>>(),
            "local": self.config.host.local.as_ref().map(|local| {
                local.iter().map(ToString::to_string).collect::<Vec<_>>()
            }),
            "ct": ct_name(self.config.ct.mode),
            "midstream_flows": self.midstream_flows,
            "midstream_packets": self.midstream_packets,
            "rp_filter": self.assumed_rp_filter,
            "early_flows": self.early_flows,
            "early_packets": self.early_packets,
            "squeezed_packets": self.squeezed_packets,
            "offload": self.offload,
            "kernel": self.kernel().to_string(),
            "kernel_given": self.config.host.kernel.is_some(),
            "kernel_packets": self.overrun,
            "queue_verdicts": self.config.host.queues.words(),
            "tz": self.config.host.zone.as_ref().map(ToString::to_string),
            "addresses": self.config.host.addresses.iter()
                .map(|(name, addr)| format!("{name}={addr}"))
                .collect::<Vec<_>>(),
            "time_went_back": self.time_went_back,
            "reordered": self.backwards,
        })
    }

    fn policies(&self) -> Value {
        let mut policies = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            for (t, table) in file.ruleset.tables.iter().enumerate() {
                for (c, chain) in table.chains.iter().enumerate() {
                    let Some(base) = chain.base else { continue };
                    let tally = self.counters[index].policy(t as u32, c as u32);
                    policies.push(json!({
                        "family": file.ruleset.family.name(),
                        "table": file.ruleset.title(table),
                        "chain": chain.name,
                        "policy": base.policy.to_string(),
                        "packets": tally.packets,
                        "bytes": tally.bytes,
                        "maybe": tally.maybe,
                    }));
                }
            }
        }
        Value::Array(policies)
    }

    fn drop_reasons_json(&self) -> Value {
        let reasons = &self.drop_reasons;
        let faults: Map<String, Value> = reasons
            .stack_faults
            .iter()
            .map(|(fault, packets)| (fault.to_string(), json!(packets)))
            .collect();
        let refusals: Map<String, Value> = reasons
            .route_refusals
            .iter()
            .map(|(why, packets)| (why.name().to_owned(), json!(packets)))
            .collect();
        json!({
            "rule": reasons.rule,
            "policy": reasons.policy,
            "hotdrop": reasons.hotdrop,
            "stack": reasons.stack,
            "route": reasons.route,
            "ttl": reasons.ttl,
            "too_big": reasons.too_big,
            "conntrack": reasons.conntrack,
            "reassembly": reasons.reassembly,
            "denied": reasons.denied,
            "either": reasons.either,
            "stack_faults": faults,
            "route_refusals": refusals,
        })
    }
}

/// Every rule with what it counted, and whether packets reached it.
fn hits(
    file: &RulesFile,
    counters: &Counters,
    reach: &Reach,
    maybe_because: impl Fn(RuleRef) -> Option<Value>,
) -> impl Iterator<Item = Value> {
    file.rules().map(move |(at, table, chain, rule)| {
        let tally = counters.rule(at);
        let mut hit = json!({
            "family": file.ruleset.family.name(),
            "table": file.ruleset.title(table),
            "chain": chain.name,
            "number": file.number(at),
            "line": file.line(rule.line).1,
            "text": file.rule_text(at),
            "packets": tally.packets,
            "bytes": tally.bytes,
            "maybe": tally.maybe,
            "first": tally.first.map(time_text),
            "last": tally.last.map(time_text),
            "reached": reach.of(at).word(),
        });
        if let (Some(because), Some(hit)) = (maybe_because(at), hit.as_object_mut()) {
            hit.insert("maybe_because".to_owned(), because);
        }
        if let Some(part) = chain.counting_part(at.rule as usize) {
            let RuleRef { table, chain, .. } = at;
            let tally = counters.rule(RuleRef { table, chain, rule: part as u32 });
            hit["counter"] = json!({
                "packets": tally.packets,
                "bytes": tally.bytes,
                "maybe": tally.maybe,
            });
        }
        hit
    })
}

fn rules_of(file: &RulesFile) -> Value {
    let mut rules = json!({
        "file": file.file,
        "family": file.ruleset.family.name(),
        "semantics": file.ruleset.backend.name(),
        "tables": file.ruleset.tables.len(),
        "chains": file.ruleset.chain_count(),
        "rules": file.ruleset.rule_count(),
    });
    for (key, other) in ["second_file", "third_file"].into_iter().zip(&file.others) {
        rules[key] = json!(other.file);
    }
    rules
}

/// A mode of tracking, as `--ct` spells it.
pub(crate) fn ct_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Kernel => "kernel",
        Mode::Midstream => "midstream",
        Mode::Off => "off",
    }
}
