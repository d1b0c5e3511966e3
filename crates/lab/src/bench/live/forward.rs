//! Frames per second, and processor time for each frame, of a forwarder beside its peers, round by round.

use std::io;
use std::path::Path;

use super::forwarder::{Forwarder, IO, MACSWAP};
use super::kinds::{Backend, Tool};
use super::line::{Line, Rate};
use super::plan::Plan;
use super::source::{FRAME_BYTES, RULES, Shape};
use crate::bench::document::{Row, Runs};
use crate::bench::limit;
use crate::bench::rows::Rows;
use crate::oracle::netns;

/// By each back end: frames per second, sent as fast as the source can, without rules and with.
pub(super) fn rates(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    let plain = |by| {
        let rules = (0, Shape::Addresses);
        let testpmd = |mode| Forwarder::Testpmd { by, mode };
        [testpmd(IO), testpmd(MACSWAP), Forwarder::Kernel { tool: Tool::Legacy, rules }]
    };
    let ruled = |tool| Forwarder::Kernel { tool, rules: (RULES, Shape::Addresses) };
    for by in [Backend::AfPacket, Backend::AfXdp] {
        netns::in_fresh(|| {
            let line = Line::new()?;
            rate(&line, tamis, by, 0, &plain(by), plan, out)?;
            let tools = [ruled(Tool::Legacy), ruled(Tool::Nft)];
            rate(&line, tamis, by, RULES, &tools, plan, out)
        })?;
    }
    Ok(())
}

fn rate(
    line: &Line,
    tamis: &Path,
    by: Backend,
    rules: usize,
    peers: &[Forwarder<'static>],
    plan: Plan,
    out: &mut Rows,
) -> io::Result<()> {
    let ours = Forwarder::Tamis { tamis, by, rules: (rules, Shape::Addresses) };
    let [mine, theirs @ ..] =
        &contest(&ours, peers, plan, out, |forwarder| line.rate(forwarder, plan.seconds()))?[..]
    else {
        return Ok(());
    };
    let frames = |(peer, rates): &(_, Vec<Rate>)| {
        (*peer, rates.iter().map(|rate| rate.frames).collect::<Vec<_>>())
    };
    let median = |of: fn(&Rate) -> f64| {
        (Runs::of(mine.1.iter().map(of).collect()).value * 100.0).round() / 100.0
    };
    let row = Row::new(by.forwarding(), "tamis", "packets/s", &frames(mine).1)
        .with("rules", rules)
        .with("size", FRAME_BYTES + 4)
        .with("workers", 1)
        .with("scheme", "run_to_completion")
        .with("busy", median(|rate| rate.busy))
        .with("source_busy", median(|rate| rate.source_busy));
    out.push_beside(row, &frames(mine).1, theirs.iter().map(frames));
    Ok(())
}

/// Processor time for each forwarded packet, the source's own taken off.
pub(super) fn costs(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    let by = Backend::AfPacket;
    let line = Line::new()?;
    for (number, shape) in [(0, Shape::Addresses), (RULES, Shape::Addresses), (RULES, Shape::Ports)]
    {
        let rules = (number, shape);
        let kernel = |tool| Forwarder::Kernel { tool, rules };
        let peers: &[_] = &[kernel(Tool::Legacy), kernel(Tool::Nft)];
        let peers = if number == 0 { &peers[..1] } else { peers };
        let mut source = Vec::new();
        let mut alone = 0.0;
        let found = contest(&Forwarder::Tamis { tamis, by, rules }, peers, plan, out, |who| {
            if let Forwarder::Tamis { .. } = who {
                alone = line.cost(&Forwarder::None, plan.seconds())?;
                source.push(alone);
            }
            Ok(line.cost(who, plan.seconds())? - alone)
        })?;
        let [mine, theirs @ ..] = &found[..] else { continue };
        let row = Row::new("live.cpu.veth_af_packet", "tamis", "ns/packet", &mine.1)
            .with("rules", number)
            .with("shape", shape.name())
            .with("size", FRAME_BYTES + 4)
            .with("source_ns", Runs::of(source).value.round());
        out.push_beside(row, &mine.1, theirs.iter().cloned());
    }
    Ok(())
}

/// What each round finds of ours, and of those peers that can run here, in turn: ours first; nothing if the time is over.
pub(super) fn contest<T>(
    ours: &Forwarder<'_>,
    peers: &[Forwarder<'static>],
    plan: Plan,
    out: &mut Rows,
    mut measure: impl FnMut(&Forwarder<'_>) -> io::Result<T>,
) -> io::Result<Vec<(&'static str, Vec<T>)>> {
    if let Forwarder::Tamis { by, rules: (rules, shape), .. } = ours
        && !out.begins(format!("live, {} with {rules} rules, {}", by.name(), shape.name()))
    {
        return Ok(Vec::new());
    }
    let mut all = vec![*ours];
    for peer in peers.iter().filter(|_| plan.peers) {
        match peer.lacking() {
            Some(why) => out.lacks(peer.name(), why),
            None => all.push(*peer),
        }
    }
    let mut found: Vec<_> = all.iter().map(|who| (who.name(), Vec::new())).collect();
    for _ in limit::rounds(plan.runs()) {
        for (who, (_, runs)) in all.iter().zip(&mut found) {
            runs.push(measure(who)?);
        }
    }
    Ok(found)
}
