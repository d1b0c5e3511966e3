//! What layouts take: bytes a rule with one worker's counters, and allocations.

use std::sync::Arc;

use crate::layouts::{Footprint, Kind, Laid, Layout};
use rules::model::{Family, Header, Rule, Ruleset};
use serde_json::json;

use super::fan::Fan;
use super::plan::{params, row};
use super::workload::Linear;
use crate::bench::document::Runs;
use crate::bench::rows::Rows;

/// Bytes of one worker's counters of a rule: packets and bytes.
const COUNTERS: usize = size_of::<[u64; 2]>();

/// The study's ruleset in every layout.
pub(super) fn linear(rows: &mut Rows) {
    [Family::Ipv6, Family::Ipv4].into_iter().for_each(|family| linear_of(family, rows));
}

/// That of one family.
pub(super) fn linear_of(family: Family, rows: &mut Rows) {
    let shape = if family == Family::Ipv6 { "100 x 1000 v6" } else { "100 x 1000 v4" };
    of(&Linear::study(family, true).ruleset(), shape, None, rows);
}

/// A fanned tree in every layout, beside the bytes of the study's packed form.
pub(super) fn fan(fan: &Fan, rows: &mut Rows) {
    let shape = if fan.name == "68k" { "fan 68k" } else { "fan 662k" };
    of(&fan.tree().ruleset(), shape, Some(fan.packed), rows);
}

fn of(ruleset: &Ruleset, shape: &str, study: Option<usize>, rows: &mut Rows) {
    let table = &ruleset.tables[0];
    let rules: usize = table.chains.iter().map(|chain| chain.rules.len()).sum();
    for kind in Kind::ALL {
        let Footprint { bytes, allocations } =
            Laid::encode(kind, table, ruleset.family).footprint();
        let each = (bytes + rules * COUNTERS) as f64 / rules as f64;
        let mut values =
            json!({ "shape": shape, "rules": rules, "layout": bytes, "counters": COUNTERS });
        if let Some(study) = study {
            values["study"] = study.into();
        }
        rows.push(row("rules.memory", kind.name(), params(values), Runs::of(vec![each]), "B/rule"));
        let count = Runs::of(vec![allocations as f64]);
        let values = params(json!({ "shape": shape, "rules": rules, "of": "layout" }));
        rows.push(row("rules.allocs", kind.name(), values, count, "allocations"));
    }
    let each = model_bytes(ruleset) as f64 / rules as f64;
    let values = params(json!({ "shape": shape, "rules": rules }));
    rows.push(row("rules.memory", "model", values, Runs::of(vec![each]), "B/rule"));
}

/// Bytes of rules as they were read, without those of extensions: allocated ones, and the two pointers to each
/// rule, of its chain in the model and in a layout.
fn model_bytes(ruleset: &Ruleset) -> usize {
    /// What `Arc` keeps before what it holds.
    const COUNTS: usize = 2 * size_of::<usize>();
    let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    let rule = |rule: &Arc<Rule>| {
        let header = rule.header.as_ref().map_or(0, Header::allocated);
        COUNTS + size_of::<Rule>() + header + 2 * size_of::<Arc<Rule>>()
    };
    chains.flat_map(|chain| &chain.rules).map(rule).sum()
}
