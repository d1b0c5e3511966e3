//! What several recorders counted, added up.
//!
//! Contract: every field of what is added is named, so that a new one cannot be left out.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use dataplane::counters::HitCount;

use super::Recorder;
use crate::report::{Count, DropReasons, Sightings, Skipped, VerdictCounts};

impl Recorder {
    /// Adds what another recorder counted.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self {
            counters,
            maybes,
            ends,
            accepted,
            refused,
            hot_drops,
            either,
            verdicts,
            drop_reasons,
            skipped,
            offload,
            overrun,
            midstream_flows,
            midstream_packets,
            assumed_rp_filter,
            early_flows,
            early_packets,
            squeezed_packets,
            contradictions,
            sightings,
            lacked_interface,
            paths,
            input_unknown,
            output_unknown,
            causes,
            // The same for all.
            families: _,
            notes_sides: _,
            stop: _,
            // Of a packet that was counted.
            calls: _,
            noted: _,
        } = other;
        for (ours, theirs) in self.counters.iter_mut().zip(&counters) {
            ours.merge(theirs, HitCount::add);
        }
        self.maybes.merge(maybes);
        for (ours, theirs) in self.ends.iter_mut().zip(&ends) {
            ours.merge(theirs);
        }
        let decided = self.accepted.iter_mut().zip(&accepted);
        for (ours, theirs) in decided.chain(self.refused.iter_mut().zip(&refused)) {
            ours.merge(theirs, Count::merge);
        }
        add_counts(&mut self.hot_drops, &hot_drops);
        self.either.merge(either);
        self.causes.merge(causes);
        for (ours, theirs) in self.paths.iter_mut().zip(paths) {
            *ours += theirs;
        }
        self.verdicts.merge(&verdicts);
        self.drop_reasons.merge(drop_reasons);
        self.skipped.merge(skipped);
        self.contradictions.merge(contradictions);
        self.sightings.merge(sightings);
        self.offload += offload;
        self.overrun += overrun;
        self.midstream_flows += midstream_flows;
        self.midstream_packets += midstream_packets;
        self.assumed_rp_filter += assumed_rp_filter;
        self.early_flows += early_flows;
        self.early_packets += early_packets;
        self.squeezed_packets += squeezed_packets;
        self.lacked_interface += lacked_interface;
        self.input_unknown += input_unknown;
        self.output_unknown += output_unknown;
    }
}

fn add_counts<K: Copy + Eq + Hash>(ours: &mut HashMap<K, Count>, theirs: &HashMap<K, Count>) {
    for (place, count) in theirs {
        ours.entry(*place).or_default().merge(count);
    }
}

fn add_packets<K: Ord>(ours: &mut BTreeMap<K, u64>, theirs: BTreeMap<K, u64>) {
    for (place, packets) in theirs {
        *ours.entry(place).or_default() += packets;
    }
}

impl VerdictCounts {
    fn merge(&mut self, other: &Self) {
        let Self { accept, drop, reject, unknown, skip } = other;
        self.accept.merge(accept);
        self.drop.merge(drop);
        self.reject.merge(reject);
        self.unknown.merge(unknown);
        self.skip.merge(skip);
    }
}

impl DropReasons {
    fn merge(&mut self, other: Self) {
        let Self {
            rule,
            policy,
            hotdrop,
            stack,
            stack_faults,
            route,
            route_refusals,
            ttl,
            too_big,
            conntrack,
            denied,
            reassembly,
            either,
        } = other;
        self.rule += rule;
        self.policy += policy;
        self.hotdrop += hotdrop;
        self.stack += stack;
        self.route += route;
        self.ttl += ttl;
        self.too_big += too_big;
        self.conntrack += conntrack;
        self.denied += denied;
        self.reassembly += reassembly;
        self.either += either;
        add_packets(&mut self.stack_faults, stack_faults);
        add_packets(&mut self.route_refusals, route_refusals);
    }
}

impl Skipped {
    fn merge(&mut self, other: Self) {
        let Self { family, families, second, lower, link_type, link_types, fragment, other_host } =
            other;
        self.family += family;
        self.second += second;
        self.lower += lower;
        self.link_type += link_type;
        add_packets(&mut self.families, families);
        add_packets(&mut self.link_types, link_types);
        self.fragment += fragment;
        self.other_host += other_host;
    }
}

impl Sightings {
    fn merge(&mut self, other: Self) {
        let Self { arrival, own, second, lower, other_host, unknown } = other;
        self.arrival += arrival;
        self.own += own;
        self.second += second;
        self.lower += lower;
        self.other_host += other_host;
        self.unknown += unknown;
    }
}
