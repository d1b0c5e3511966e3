//! `tamis-bench live`: frames per second, and processor time per packet, of `tamis run` on devices that this makes in a
//! network namespace of its own, beside testpmd and the kernel.
//!
//! Contract: each run starts its forwarder anew, in turn with the peer's. Needs root; what cannot be run is listed.
//! Every process is pinned: the source of the frames to the first core, the forwarder to the last one, and both to the
//! last one where processor time is measured.

mod counts;
mod forwarder;
mod line;
pub mod ordered;
pub mod soak;
mod source;
mod tun;

use std::io;
use std::path::Path;

use self::forwarder::Forwarder;
use self::line::Line;
use self::source::Shape;
use super::document::{Document, Missing, Row};
use crate::oracle::netns;

/// Rules that no packet matches, where there are any.
const RULES: usize = 1000;
/// Bytes of a frame, without its checksum.
const FRAME_BYTES: usize = 60;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Measure peers, too.
    pub peers: bool,
    /// Fewer and shorter runs.
    pub quick: bool,
    /// One part of it.
    pub only: Option<Part>,
    /// Packets of which the order is looked at, in that part.
    pub packets: Option<u64>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Frames per second between two veth pairs.
    Forward,
    /// Processor time for each packet.
    Processor,
    /// TCP by way of TUN devices, with offloads and without.
    Tun,
    /// Packets in memory that several workers keep in order; needs neither root nor devices.
    Ordered,
}

impl Part {
    /// All of them, with the names that the command line has.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Forward, "forward"),
        (Self::Processor, "cpu"),
        (Self::Tun, "tun"),
        (Self::Ordered, "ordered"),
    ];
}

impl Plan {
    fn has(self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    fn runs(self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    /// Packets that several workers keep in order.
    ///
    /// # Panics
    /// As [`ordered::run`].
    #[must_use]
    pub fn ordered(self) -> Document {
        let each = std::time::Duration::from_secs_f64(self.seconds() / 2.0);
        ordered::run(ordered::Plan { rounds: self.runs(), each, packets: self.packets })
    }

    /// Seconds that a run is measured.
    fn seconds(self) -> f64 {
        if self.quick { 0.5 } else { 2.0 }
    }
}

/// Measures this program, `tamis`.
///
/// # Errors
/// No namespace can be made, or tamis does not run.
pub fn run(tamis: &Path, plan: Plan) -> io::Result<Document> {
    let mut document = Document::new();
    if plan.has(Part::Forward) {
        netns::in_fresh(|| forward(tamis, plan, &mut document))?;
    }
    if plan.has(Part::Processor) {
        netns::in_fresh(|| processor(tamis, plan, &mut document))?;
    }
    if plan.has(Part::Tun) {
        document.results.push(tun::row(tamis, plan)?);
    }
    if plan.has(Part::Ordered) {
        document.results.extend(plan.ordered().results);
    }
    Ok(document)
}

/// Frames per second, sent as fast as the source can, without rules and with.
fn forward(tamis: &Path, plan: Plan, document: &mut Document) -> io::Result<()> {
    let line = Line::new()?;
    let plain = Forwarder::Tamis { tamis, rules: (0, Shape::Addresses) };
    let ruled = Forwarder::Tamis { tamis, rules: (RULES, Shape::Addresses) };
    let peer = peer(Forwarder::Testpmd, plan, document);
    let (mut ours, mut under, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.runs() {
        ours.push(line.rate(&plain, plan.seconds())?);
        if let Some(peer) = &peer {
            theirs.push(line.rate(peer, plan.seconds())?);
        }
        under.push(line.rate(&ruled, plan.seconds())?);
    }
    let row = |rules: usize, figures: &[f64]| {
        Row::new("live.forward.veth_af_packet", "tamis", "packets/s", figures)
            .with("rules", rules)
            .with("size", FRAME_BYTES + 4)
            .with("workers", 1)
    };
    let plain = row(0, &ours);
    document.results.push(match &peer {
        Some(peer) => plain.beside(peer.name(), &ours, &theirs),
        None => plain,
    });
    document.results.push(row(RULES, &under));
    Ok(())
}

/// Processor time for each forwarded packet, the source's own taken off.
fn processor(tamis: &Path, plan: Plan, document: &mut Document) -> io::Result<()> {
    let line = Line::new()?;
    for (number, shape) in [(0, Shape::Addresses), (RULES, Shape::Addresses), (RULES, Shape::Ports)]
    {
        let rules = (number, shape);
        let ours = Forwarder::Tamis { tamis, rules };
        let peer = peer(Forwarder::Kernel { rules }, plan, document);
        let (mut mine, mut theirs, mut source) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..plan.runs() {
            let alone = line.cost(&Forwarder::None, plan.seconds())?;
            mine.push(line.cost(&ours, plan.seconds())? - alone);
            if let Some(peer) = &peer {
                theirs.push(line.cost(peer, plan.seconds())? - alone);
            }
            source.push(alone);
        }
        let row = Row::new("live.cpu.veth_af_packet", "tamis", "ns/packet", &mine)
            .with("rules", number)
            .with("shape", shape.name())
            .with("size", FRAME_BYTES + 4)
            .with("source_ns", super::Runs::of(source).value.round());
        document.results.push(match &peer {
            Some(peer) => row.beside(peer.name(), &mine, &theirs),
            None => row,
        });
    }
    Ok(())
}

/// The peer, if it is to be measured and can be; else it is listed.
fn peer(
    forwarder: Forwarder<'static>,
    plan: Plan,
    document: &mut Document,
) -> Option<Forwarder<'static>> {
    if !plan.peers {
        return None;
    }
    let why = forwarder.lacking();
    let is_there = why.is_none();
    document.missing.extend(why.map(|why| Missing { peer: forwarder.name(), why }));
    is_there.then_some(forwarder)
}
