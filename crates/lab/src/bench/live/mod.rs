//! `tamis-bench live`: frames per second, and processor time per packet, of `tamis run` on devices that this makes in a
//! network namespace of its own, beside testpmd and the kernel.
//!
//! Contract: each run starts its forwarder anew, in turn with the peer's. Needs root; what cannot be run is listed.
//! Every process is pinned: the source of the frames to the first core, the forwarder to the last one, and both to the
//! last one where processor time is measured.

mod changes;
pub mod changing;
pub(super) mod counts;
mod dpdk;
pub mod figure;
mod forward;
mod forwarder;
mod handlers;
mod kinds;
mod latency;
mod line;
pub mod middlebox;
pub mod ordered;
mod running;
pub mod soak;
mod source;
mod tun;

use std::io;
use std::path::Path;

use super::document::Document;
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
    /// How long a frame is on its way.
    Latency,
    /// TCP by way of TUN devices, with offloads and without.
    Tun,
    /// Frames for each second of processor time between devices of DPDK that cost next to nothing.
    Dpdk,
    /// A wire whose rules change.
    Changes,
    /// Packets in memory that several workers keep in order; needs neither root nor devices.
    Ordered,
    /// What a middlebox costs frames from memory; needs neither root nor devices.
    Middlebox,
    /// A middlebox in Java beside the same in Rust, between those devices of DPDK.
    Handlers,
}

impl Part {
    /// All of them, with the names that the command line has.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Forward, "forward"),
        (Self::Processor, "cpu"),
        (Self::Latency, "latency"),
        (Self::Tun, "tun"),
        (Self::Dpdk, "dpdk"),
        (Self::Changes, "changes"),
        (Self::Ordered, "ordered"),
        (Self::Middlebox, "middlebox"),
        (Self::Handlers, "handlers"),
    ];
}

impl Plan {
    fn has(self, part: Part) -> bool {
        match self.only {
            Some(only) => only == part,
            // Not every build of tamis has DPDK.
            None => !matches!(part, Part::Dpdk | Part::Handlers),
        }
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

    /// What a middlebox costs.
    ///
    /// # Panics
    /// As [`middlebox::run`].
    #[must_use]
    pub fn middlebox(self) -> Document {
        middlebox::run(self.runs(), self.quick)
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
        forward::rates(tamis, plan, &mut document)?;
    }
    if plan.has(Part::Processor) {
        netns::in_fresh(|| forward::costs(tamis, plan, &mut document))?;
    }
    if plan.has(Part::Latency) {
        latency::delays(tamis, plan, &mut document)?;
    }
    if plan.has(Part::Tun) {
        document.results.push(tun::row(tamis, plan)?);
    }
    if plan.has(Part::Dpdk) {
        dpdk::rows(tamis, plan, &mut document)?;
    }
    if plan.has(Part::Handlers) {
        handlers::rows(tamis, plan, &mut document)?;
    }
    if plan.has(Part::Changes) {
        changes::rows(tamis, plan, &mut document)?;
    }
    if plan.has(Part::Ordered) {
        document.results.extend(plan.ordered().results);
    }
    if plan.has(Part::Middlebox) {
        document.results.extend(plan.middlebox().results);
    }
    Ok(document)
}
