//! Tables one after the other: what a target of an earlier one changes is what the later ones see.
//!
//! The handler is asked under the rules as they are packed and as they were read. Where nothing is tracked, a slow
//! reading walks the tables one at a time, and has to say the same wherever it is certain.

use std::sync::Arc;

use dataplane::{Arrival, Config, DropReason, Evaluator, FinalVerdict, Path, Program, is_fragment};
use host::Host;
use packet::{Checksums, L3, Link, Packet, Read};
use rules::eval::{self, Alive, Memories, Verdict, turns_at, walk_turn};
use rules::model::{Family, Hook, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Iface, Transit};

const PATHS: [Path; 3] = [Path::Forward, Path::Input, Path::Output];

/// Text up to a line `%`, and the bytes after it.
pub(super) fn split(data: &[u8]) -> (Option<&str>, &[u8]) {
    let mark = b"\n%\n";
    let at = data.windows(mark.len()).position(|window| window == mark).unwrap_or(data.len());
    let frame = data.get(at + mark.len()..).unwrap_or_default();
    (std::str::from_utf8(&data[..at]).ok(), frame)
}

/// Save text of any family, then a line `%`, then a packet, which comes twice: rules may remember the first time.
pub(super) fn tables(data: &[u8]) {
    let (Some(text), frame) = split(data) else { return };
    for family in [None, Some(Family::Arp), Some(Family::Bridge)] {
        let Ok(loaded) = load(text, &LoadOptions { family, ..LoadOptions::default() }) else {
            continue;
        };
        let ruleset = Arc::new(loaded.ruleset);
        for path in PATHS {
            compare(&ruleset, path, frame, frame.len());
            compare(&ruleset, path, &frame[..frame.len() / 2], frame.len());
        }
    }
}

fn compare(ruleset: &Arc<Ruleset>, path: Path, frame: &[u8], wire_len: usize) {
    let model = handled(ruleset, path, true, (frame, wire_len));
    assert_eq!(handled(ruleset, path, false, (frame, wire_len)), model, "packed, on {path:?}");
    let slow = one_by_one(ruleset, path, (frame, wire_len));
    for (slow, (fast, _)) in slow.into_iter().zip(model) {
        assert_eq!(slow, fast, "on {path:?}");
    }
}

/// What is left of a packet: its verdict, by which rule if it is a drop, its bytes, its mark, and whom it met.
#[derive(Debug, PartialEq)]
struct Left {
    verdict: &'static str,
    dropped_by: Option<DropReason>,
    bytes: Vec<u8>,
    met: Met,
}

/// Rules by the place of their counters, and policies by table and chain; whether they were certainly met.
#[derive(Debug, Default, PartialEq)]
struct Met {
    rules: Vec<(u32, bool)>,
    policies: Vec<(u32, u32, bool)>,
    mark: packet::Mark,
}

impl eval::Observer for Met {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.rules.push((slot, certain));
        self.mark = transit.mark;
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.policies.push((table, chain, certain));
        self.mark = transit.mark;
    }
}

impl dataplane::Observer for Met {}

/// By the handler: what can be compared with the slow reading, and all else that it says.
fn handled(
    ruleset: &Arc<Ruleset>,
    path: Path,
    reference: bool,
    (frame, wire_len): (&[u8], usize),
) -> [(Left, String); 2] {
    let config = Config { reference, path: Some(path), ..Config::default() };
    let program = Program::new([Arc::clone(ruleset)], config);
    let mut evaluator = Evaluator::new(&program);
    let (input, output) = interfaces(path);
    let handle = |number| {
        let mut bytes = frame.to_vec();
        let arrival = Arrival {
            time: Some(number),
            input,
            output,
            ..Arrival::new(number, link_of(ruleset), wire_len)
        };
        let mut met = Met::default();
        let outcome = evaluator.handle(&mut bytes, &arrival, &mut met).outcome;
        let verdict = outcome.end.verdict;
        let dropped_by = match verdict {
            FinalVerdict::Drop(reason) => Some(reason),
            FinalVerdict::Reject(by) => Some(by.into()),
            _ => None,
        };
        let left = Left { verdict: verdict.word(), dropped_by, bytes, met };
        (left, format!("{outcome:?}"))
    };
    [1, 2].map(handle)
}

/// Each packet, as far as its walk is certain; nothing from the first one on that is not, or whose way is more than
/// hooks with tables.
fn one_by_one(ruleset: &Ruleset, path: Path, (frame, wire_len): (&[u8], usize)) -> Vec<Left> {
    // A nat table has its turn only where connections are tracked.
    let has_nat = ruleset.table("nat").is_some();
    let is_plain = !ruleset.tracks() && !has_nat && !ruleset.asks_for_ports();
    if !ruleset.family.is_ip() || !is_plain {
        return Vec::new();
    }
    let mut memories = Memories::of(ruleset);
    let walked = [1, 2].map(|time| {
        let mut bytes = frame.to_vec();
        let mut packet = Packet::parse(&mut bytes, wire_len, Link::Raw, Checksums::default());
        let is_own = matches!(
            (packet.headers().l3, ruleset.family),
            (L3::Ipv4 { .. }, Family::Ipv4) | (L3::Ipv6, Family::Ipv6)
        );
        if !is_own || is_fragment(&packet) {
            return None;
        }
        let mut met = Met::default();
        let end = passes(ruleset, path, time, &mut packet, &mut memories, &mut met)?;
        let (verdict, dropped_by) = match end {
            Ok(()) => ("accept", None),
            Err((Verdict::Reject, by)) => ("reject", Some(by)),
            Err((_, by)) => ("drop", Some(by)),
        };
        Some(Left { verdict, dropped_by, bytes, met })
    });
    walked.into_iter().map_while(|left| left).collect()
}

/// How a packet ends: it passes, or is dropped or refused by something.
type End = Result<(), (Verdict, DropReason)>;

/// The hooks of its path, and the tables of each, one at a time; none where it is not certain.
fn passes(
    ruleset: &Ruleset,
    path: Path,
    time: u64,
    packet: &mut Packet<'_>,
    memories: &mut Memories,
    met: &mut Met,
) -> Option<End> {
    let host = Host::default();
    let (input, output) = interfaces(path);
    let named = |name: Option<&'static str>| name.map_or(Iface::Absent, Iface::Named);
    let mut mark = packet::Mark::default();
    for hook in hooks(path) {
        if *hook == Hook::Forward && !lower_ttl(packet)? {
            return Some(Err((Verdict::Drop, DropReason::Ttl)));
        }
        let mut transit = Transit {
            input: if *hook == Hook::Output { Iface::Absent } else { named(input) },
            output: if *hook == Hook::Prerouting { Iface::Absent } else { named(output) },
            time: Some(time),
            to_host: Some(path != Path::Forward),
            mark,
            ..Transit::new(packet, ruleset.family, *hook, &host)
        };
        for turn in turns_at(ruleset, *hook) {
            let found = walk_turn(ruleset, &turn, &mut transit, Alive::Certain, memories, met);
            match found.only()? {
                (Verdict::Accept, _) => {}
                (verdict, by) => return Some(Err((verdict, by?.into()))),
            }
        }
        mark = transit.mark;
    }
    Some(Ok(()))
}

fn hooks(path: Path) -> &'static [Hook] {
    match path {
        Path::Forward => &[Hook::Prerouting, Hook::Forward, Hook::Postrouting],
        Path::Input => &[Hook::Prerouting, Hook::Input],
        Path::Output | Path::Loopback => &[Hook::Output, Hook::Postrouting],
    }
}

/// What routers do between PREROUTING and FORWARD; false where nothing is left.
fn lower_ttl(packet: &mut Packet<'_>) -> Option<bool> {
    let at = if packet.headers().l3 == L3::Ipv6 { 7 } else { 8 };
    let Read::Known([ttl]) = packet.net::<1>(at) else { return None };
    if ttl > 1 {
        packet.set_ttl(ttl - 1);
    }
    Some(ttl > 1)
}

fn interfaces(path: Path) -> (Option<&'static str>, Option<&'static str>) {
    let (input, output) = (Some("eth0"), Some("eth1"));
    match path {
        Path::Forward => (input, output),
        Path::Input => (input, None),
        Path::Output | Path::Loopback => (None, output),
    }
}

fn link_of(ruleset: &Ruleset) -> Link {
    if ruleset.family.is_ip() { Link::Raw } else { Link::Ethernet }
}
