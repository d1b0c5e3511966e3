//! [`Plan`]: what is measured, and for how long.

use super::{middlebox, ordered};
use crate::bench::rows::Rows;

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
    pub(super) fn has(self, part: Part) -> bool {
        match self.only {
            Some(only) => only == part,
            // Not every build of tamis has DPDK.
            None => !matches!(part, Part::Dpdk | Part::Handlers),
        }
    }

    pub(super) fn runs(self) -> usize {
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
    pub(super) fn seconds(self) -> f64 {
        if self.quick { 0.5 } else { 2.0 }
    }
}
