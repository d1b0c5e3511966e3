//! Datagrams that mean harm, as fast as one core sends them, beside a session that is at work.
//!
//! Contract: they come from a third host, whose address is nobody's. The same datagrams from the same core go to a closed
//! port of the same host and to the tunnel's own, in turn, so what an implementation pays for them is told apart from
//! what sending them costs this machine. Then, at a fixed rate, initiations from forged sources ([`flood`]).

mod beside;
pub(super) mod cost;
mod datagrams;
mod flood;
mod sender;

use std::io;

use super::overlay::{Overlay, VETH};
use super::plan::Plan;
use super::rounds::{Better, Figure, Measure, OURS, Sheet};
use super::site::{PORT, Pair};
use beside::{CLOSED, beside};
use datagrams::{Recording, pool};

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
    pair.near.reach(pair.far.end.address)?;
    // The others have initiations of their own.
    if overlay.name() == OURS { flood::measure(&mut pair, overlay, plan, sheet) } else { Ok(()) }
}
