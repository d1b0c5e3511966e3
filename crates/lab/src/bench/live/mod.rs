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

use super::rows::Rows;
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
    /// Workers that keep packets in order, in turn, in that part.
    pub workers: &'static [usize],
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
    pub fn ordered(self, out: &mut Rows) {
        let each = std::time::Duration::from_secs_f64(self.seconds() / 2.0);
        let Self { workers, packets, .. } = self;
        ordered::run(ordered::Plan { workers, rounds: self.runs(), each, packets }, out);
    }

    /// What a middlebox costs.
    ///
    /// # Panics
    /// As [`middlebox::run`].
    pub fn middlebox(self, out: &mut Rows) {
        middlebox::run(self.runs(), self.quick, out);
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
pub fn run(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    for (part, name) in Part::ALL.into_iter().filter(|(part, _)| plan.has(*part)) {
        if !out.begins(format!("live, part {name}")) {
            continue;
        }
        match part {
            Part::Forward => forward::rates(tamis, plan, out)?,
            Part::Processor => netns::in_fresh(|| forward::costs(tamis, plan, out))?,
            Part::Latency => latency::delays(tamis, plan, out)?,
            Part::Tun => out.push(tun::row(tamis, plan)?),
            Part::Dpdk => dpdk::rows(tamis, plan, out)?,
            Part::Changes => changes::rows(tamis, plan, out)?,
            Part::Ordered => plan.ordered(out),
            Part::Middlebox => plan.middlebox(out),
            Part::Handlers => handlers::rows(tamis, plan, out)?,
        }
    }
    Ok(())
}
