//! Time of walks: over the study's ruleset and over fanned trees, in every layout, with every kind of counter.

use std::hint::black_box;
use std::time::Duration;

use crate::layouts::{Kind, Laid};
use dataplane::publish::tally::{Local, Tally};
use host::Host;
use packet::{Checksums, Link, Packet};
use rules::Transit;
use rules::eval::{Alive, Memories};
use rules::model::{Family, Hook, Ruleset};
use serde_json::json;

use super::clock;
use super::count::{Counted, Counting, Locked};
use super::fan::Fan;
use super::plan::{Plan, params, row};
use super::workload::Linear;
use crate::bench::document::{Row, Runs};
use crate::bench::limit;
use crate::bench::rows::Rows;
use crate::studies::counters::{Elsewhere, Shared, Uncounted};

/// Rules that stay in caches close by in every layout, and enough of them that the packet itself costs little.
pub(super) const IN_CACHE: usize = 800;
/// What walks are timed for.
const BUDGET: Duration = Duration::from_millis(30);

/// Packets at a hook of a ruleset.
#[derive(Debug)]
pub(super) struct Walks {
    packets: Vec<Vec<u8>>,
    family: Family,
    hook: Hook,
    slots: usize,
}

impl Walks {
    pub(super) fn new(ruleset: &Ruleset, hook: Hook, packets: Vec<Vec<u8>>) -> Self {
        let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
        let slots = chains.flat_map(|chain| &chain.rules).map(|rule| rule.slot as usize + 1);
        Self { packets, family: ruleset.family, hook, slots: slots.max().unwrap_or(0) }
    }

    /// Seconds of one packet's walk.
    pub(super) fn seconds(&self, laid: &Laid, counting: Counting) -> f64 {
        match counting {
            Counting::None => self.with::<Uncounted>(laid),
            Counting::Local => self.with::<Local>(laid),
            Counting::Shared => self.with::<Shared>(laid),
            Counting::Allocated => self.with::<Elsewhere>(laid),
            Counting::Locked => self.with::<Locked<1>>(laid),
            Counting::LockedTwice => self.with::<Locked<2>>(laid),
        }
    }

    fn with<T: Tally>(&self, laid: &Laid) -> f64 {
        let counters = T::new(self.slots);
        self.walked(laid, &counters, |walk| clock::least(BUDGET, walk)) / self.packets.len() as f64
    }

    /// Walks so many times, without counters.
    pub(super) fn times(&self, laid: &Laid, times: usize) {
        let counters = Uncounted::new(self.slots);
        self.walked(laid, &counters, |walk| (0..times).for_each(|_| walk()));
    }

    /// What `run` makes of the walk of all packets.
    fn walked<T: Tally, R>(
        &self,
        laid: &Laid,
        counters: &T,
        run: impl FnOnce(&mut dyn FnMut()) -> R,
    ) -> R {
        let host = Host::default();
        let mut bytes = self.packets.clone();
        let parse = |bytes| {
            let bytes: &mut Vec<u8> = bytes;
            let len = bytes.len();
            Packet::parse(bytes, len, Link::Raw, Checksums::Ignore)
        };
        let mut packets: Vec<Packet<'_>> = bytes.iter_mut().map(parse).collect();
        let mut memories = Memories::default();
        let len = self.packets.first().map_or(0, Vec::len) as u64;
        run(&mut || {
            for packet in &mut packets {
                let mut transit = Transit::new(packet, self.family, self.hook, &host);
                let mut observer = Counted { counters, bytes: len };
                let entry = Alive::Certain;
                black_box(laid.walk(0, &mut transit, entry, &mut memories, &mut observer));
            }
        })
    }
}

/// The study's ruleset, laid out.
#[derive(Debug)]
pub(super) struct Laying {
    pub(super) linear: Linear,
    walks: Walks,
    laid: Laid,
}

impl Laying {
    pub(super) fn new(linear: Linear, kind: Kind) -> Self {
        Self::of(&linear.ruleset(), linear, kind)
    }

    fn of(ruleset: &Ruleset, linear: Linear, kind: Kind) -> Self {
        let walks = Walks::new(ruleset, Hook::Input, vec![linear.packet()]);
        let laid = Laid::encode(kind, &ruleset.tables[0], linear.family);
        Self { linear, walks, laid }
    }

    /// Walks so many times, without counters.
    pub(super) fn walk(&self, times: usize) {
        self.walks.times(&self.laid, times);
    }

    /// What `run` makes of its walk, and the counters after that.
    pub(super) fn counted<T: Tally, R>(&self, run: impl FnOnce(&mut dyn FnMut()) -> R) -> (R, T) {
        let counters = T::new(self.walks.slots);
        (self.walks.walked(&self.laid, &counters, run), counters)
    }

    /// Nanoseconds a rule.
    pub(super) fn nanos(&self, counting: Counting) -> f64 {
        self.walks.seconds(&self.laid, counting) * 1e9 / self.linear.run_per_packet() as f64
    }
}

/// Name of a linear walk's rows.
pub(super) fn linear_name(linear: Linear) -> &'static str {
    match (linear.family, linear.is_match) {
        (Family::Ipv6, true) => "rules.linear.v6.match",
        (Family::Ipv6, false) => "rules.linear.v6.nomatch",
        (_, true) => "rules.linear.v4.match",
        (_, false) => "rules.linear.v4.nomatch",
    }
}

/// The study's four rulesets: two families, all rules matching and none.
pub(super) fn studies() -> impl Iterator<Item = Linear> {
    [Family::Ipv6, Family::Ipv4]
        .into_iter()
        .flat_map(|family| [true, false].map(|is_match| Linear::study(family, is_match)))
}

/// Packed chains alone, where no peer is asked for.
pub(super) fn linear(plan: Plan, rows: &mut Rows) {
    for linear in studies() {
        let laying = Laying::new(linear, Kind::PackedChain);
        let nanos = limit::rounds(plan.runs()).map(|_| laying.nanos(Counting::Local)).collect();
        let params = params(json!({ "rules": linear.chains * linear.rules, "counters": "local" }));
        let name = linear_name(linear);
        rows.push(row(name, Kind::PackedChain.name(), params, Runs::of(nanos), "ns/rule"));
    }
}

/// Every layout with every kind of counter, and what the time goes to: matching headers, which is what rules that
/// stay in cache take; counting, which is what counters add; and the rest, which is chains and waiting for memory.
pub(super) fn layouts(plan: Plan, rows: &mut Rows) {
    for linear in studies() {
        let ruleset = linear.ruleset();
        let layings: Vec<Laying> =
            Kind::ALL.into_iter().map(|kind| Laying::of(&ruleset, linear, kind)).collect();
        let mut nanos = vec![[const { Vec::new() }; Counting::ALL.len()]; Kind::ALL.len()];
        let near = Linear { chains: 1, rules: IN_CACHE, ..linear };
        let near_ruleset = near.ruleset();
        let nears = Kind::ALL.map(|kind| Laying::of(&near_ruleset, near, kind));
        let mut headers = [const { Vec::new() }; Kind::ALL.len()];
        for _ in limit::rounds(plan.runs()) {
            for (near, headers) in nears.iter().zip(&mut headers) {
                headers.push(near.nanos(Counting::None));
            }
            for (laying, nanos) in layings.iter().zip(&mut nanos) {
                for (counting, nanos) in Counting::ALL.into_iter().zip(nanos) {
                    nanos.push(laying.nanos(counting));
                }
            }
        }
        for ((kind, nanos), headers) in Kind::ALL.into_iter().zip(nanos).zip(headers) {
            let header = Runs::of(headers).value;
            let runs = nanos.map(Runs::of);
            for (counting, ours) in Counting::ALL.into_iter().zip(runs) {
                rows.push(layout_row(linear, kind, counting, ours, header, runs[0].value));
            }
        }
    }
}

fn layout_row(
    linear: Linear,
    kind: Kind,
    counting: Counting,
    ours: Runs,
    header: f64,
    uncounted: f64,
) -> Row {
    let name = match (linear.family, linear.is_match) {
        (Family::Ipv6, true) => "rules.layouts.v6.match",
        (Family::Ipv6, false) => "rules.layouts.v6.nomatch",
        (_, true) => "rules.layouts.v4.match",
        (_, false) => "rules.layouts.v4.nomatch",
    };
    let round = |nanos: f64| (nanos * 100.0).round() / 100.0;
    let params = params(json!({
        "rules": linear.chains * linear.rules,
        "counters": counting.name(),
        "header": round(header),
        "counter": round(ours.value - uncounted),
        "rest": round(uncounted - header),
    }));
    row(name, kind.name(), params, ours, "ns/rule")
}

/// Packed chains with each kind of counter.
pub(super) fn counters(plan: Plan, rows: &mut Rows) {
    let laying = Laying::new(Linear::study(Family::Ipv6, true), Kind::PackedChain);
    let mut nanos = [const { Vec::new() }; Counting::ALL.len()];
    for _ in limit::rounds(plan.runs()) {
        for (counting, nanos) in Counting::ALL.into_iter().zip(&mut nanos) {
            nanos.push(laying.nanos(counting));
        }
    }
    for (counting, nanos) in Counting::ALL.into_iter().zip(nanos) {
        let name = match counting {
            Counting::None => "rules.counters.none",
            Counting::Local => "rules.counters.local",
            Counting::Shared => "rules.counters.shared",
            Counting::Allocated => "rules.counters.allocated",
            Counting::Locked => "rules.counters.locked",
            Counting::LockedTwice => "rules.counters.locked2",
        };
        let params = params(json!({ "rules": 100_000, "match": true, "family": "v6" }));
        rows.push(row(name, Kind::PackedChain.name(), params, Runs::of(nanos), "ns/rule"));
    }
}

/// A fanned tree in every layout.
pub(super) fn fan(plan: Plan, fan: &Fan, rows: &mut Rows) {
    let tree = fan.tree();
    let ruleset = tree.ruleset();
    let mut packets = tree.packets(fan.run);
    packets.truncate(1000);
    let flows = packets.len();
    let walks = Walks::new(&ruleset, Hook::Forward, packets);
    let laid: Vec<Laid> =
        Kind::ALL.map(|kind| Laid::encode(kind, &ruleset.tables[0], Family::Ipv4)).into();
    let mut nanos = vec![Vec::new(); laid.len()];
    for _ in limit::rounds(plan.runs()) {
        for (laid, nanos) in laid.iter().zip(&mut nanos) {
            nanos.push(walks.seconds(laid, Counting::Local) * 1e9);
        }
    }
    let name = if fan.name == "68k" { "rules.fan.68k" } else { "rules.fan.662k" };
    for (kind, nanos) in Kind::ALL.into_iter().zip(nanos) {
        let params = params(json!({
            "rules": fan.rules, "chains": fan.chains, "run": fan.run, "flows": flows,
        }));
        rows.push(row(name, kind.name(), params, Runs::of(nanos), "ns/packet"));
    }
}
