//! Datagrams that mean harm, as fast as one core sends them, beside a session that is at work.
//!
//! Contract: they come from a third host, whose address is nobody's. The same datagrams from the same core go to a closed
//! port of the same host and to the tunnel's own, in turn, so what an implementation pays for them is told apart from
//! what sending them costs this machine.

pub(super) mod cost;
mod datagrams;
mod sender;

use std::io;

use super::Plan;
use super::iperf::{Amount, Load, transfer};
use super::overlay::{Overlay, VETH};
use super::rounds::{Better, Figure, Measure, Sheet};
use super::site::{PORT, Pair};
use datagrams::{Recording, pool};
use sender::Sender;

/// Nobody listens there.
const CLOSED: u16 = 9;

/// All of one overlay's turn in a round.
pub(super) fn measure(overlay: &dyn Overlay, plan: &Plan, sheet: &mut Sheet<'_>) -> io::Result<()> {
    // There is nothing to mean harm to.
    if overlay.name() == VETH {
        return Ok(());
    }
    let mut pair = Pair::new(overlay)?;
    let recording = Recording::start(&pair.near.place)?;
    pair.near.start(overlay)?;
    pair.near.reach(pair.far.end.address)?;
    let datagrams = pool(&recording.finish()?, &pair.far.end.key.public());
    let memory = || Ok::<_, io::Error>(pair.far.daemon()?.resident()? as f64);
    let measure =
        |port: &str| Measure::new("tunnel.hostile", "bits/s", Better::More).with("port", port);
    let (closed, sent) = beside(&pair, plan, &datagrams, CLOSED)?;
    sheet.note(measure("closed"), Ok(Figure::new(closed).seen("sent", sent)));
    let before = memory()?;
    let (open, sent) = beside(&pair, plan, &datagrams, PORT)?;
    let grown = memory()? - before;
    sheet.note(measure("the tunnel's"), Ok(Figure::new(open).seen("sent", sent)));
    let kept = Measure::new("tunnel.hostile_kept", "x", Better::More);
    sheet.note(kept, Ok(Figure::new(open / closed)));
    let memory = Measure::new("tunnel.hostile_memory", "bytes", Better::Less);
    sheet.note(memory, Ok(Figure::new(grown).seen("before", before)));
    // It must be alive, and not by what was on its way.
    pair.near.reach(pair.far.end.address)
}

/// Bits per second by TCP while datagrams are sent, and how many of those a second.
fn beside(pair: &Pair, plan: &Plan, datagrams: &[Vec<u8>], port: u16) -> io::Result<(f64, f64)> {
    let sender = Sender::start(&pair.third, (pair.target(), port), datagrams.to_vec())?;
    let load = Load::Tcp { streams: 1 };
    let arrived = transfer(&pair.near, &pair.far, load, Amount::Seconds(plan.tcp()));
    let sent = sender.stop()?;
    Ok((arrived?.rate, sent))
}
