//! Verdicts over time, in at most [`MAX_BINS`] bins however long the capture is.
//!
//! Contract: constant memory. Bins start narrow; when one more does not fit, bins become the next wider of
//! a ladder of widths that people read easily (1, 5, 10, 50 … seconds, minutes, hours, days), each a
//! multiple of the one before, and neighbours are added up: no packet is lost. A bin starts at a multiple
//! of its width. Packets are also counted by their order, for captures without times.

use conntrack::SECOND;
use dataplane::FinalVerdict;

/// Most bins.
pub const MAX_BINS: usize = 240;
/// The verdicts of a [`Bin`], in its order.
pub const VERDICTS: [&str; 5] = ["accept", "drop", "reject", "unknown", "skip"];
/// Packets by verdict.
pub type Bin = [u64; VERDICTS.len()];

const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// Widths from ten seconds to a day; below they go as decimal numbers do, above they double.
const CLOCK: [u64; 9] = [
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    6 * HOUR,
    24 * HOUR,
];

/// What a position on the axis is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Nanoseconds since the Unix epoch.
    Time,
    /// Packets before this one.
    Order,
}

impl Axis {
    /// The first width: a microsecond, or one packet.
    fn narrowest(self) -> u64 {
        match self {
            Self::Time => 1000,
            Self::Order => 1,
        }
    }

    /// The next wider width, a multiple of `width`.
    fn wider(self, width: u64) -> u64 {
        if self == Self::Time && width >= CLOCK[0] {
            let next = CLOCK.iter().copied().find(|wider| *wider > width);
            return next.unwrap_or(width.saturating_mul(2));
        }
        let power_of_ten = 10_u64.pow(width.ilog10()) == width;
        width.saturating_mul(if power_of_ten { 5 } else { 2 })
    }
}

/// Verdicts along one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bins {
    axis: Axis,
    width: u64,
    /// Start of the first bin, in widths.
    first: u64,
    bins: Vec<Bin>,
}

impl Bins {
    fn new(axis: Axis) -> Self {
        Self { axis, width: axis.narrowest(), first: 0, bins: Vec::new() }
    }

    /// Counts a packet at a position that is not before any counted earlier (if it is, in the first bin).
    fn count(&mut self, position: u64, verdict: usize) {
        if self.bins.is_empty() {
            self.first = position / self.width;
        }
        let mut slot = self.slot(position);
        while slot >= MAX_BINS as u64 {
            self.widen();
            slot = self.slot(position);
        }
        let slot = slot as usize;
        if slot >= self.bins.len() {
            self.bins.resize(slot + 1, Bin::default());
        }
        self.bins[slot][verdict] += 1;
    }

    fn slot(&self, position: u64) -> u64 {
        (position / self.width).saturating_sub(self.first)
    }

    fn widen(&mut self) {
        let width = self.axis.wider(self.width);
        let factor = width / self.width;
        let first = self.first / factor;
        let mut wide: Vec<Bin> = Vec::with_capacity(self.bins.len());
        for (index, bin) in self.bins.iter().enumerate() {
            let slot = ((self.first + index as u64) / factor - first) as usize;
            if slot >= wide.len() {
                wide.resize(slot + 1, Bin::default());
            }
            for (sum, packets) in wide[slot].iter_mut().zip(bin) {
                *sum += packets;
            }
        }
        *self = Self { axis: self.axis, width, first, bins: wide };
    }

    /// What its positions are.
    #[must_use]
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// Width of every bin, in the axis' unit.
    #[must_use]
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Every bin with the position it starts at, in order, without gaps.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &Bin)> {
        let at = |index: usize| (self.first + index as u64).saturating_mul(self.width);
        self.bins.iter().enumerate().map(move |(index, bin)| (at(index), bin))
    }
}

/// Verdicts by time and by order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    time: Bins,
    order: Bins,
    packets: u64,
    untimed: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { time: Bins::new(Axis::Time), order: Bins::new(Axis::Order), packets: 0, untimed: 0 }
    }
}

impl Timeline {
    /// Counts the next packet of the capture; its time in nanoseconds since the Unix epoch.
    pub fn count(&mut self, time: Option<u64>, verdict: &FinalVerdict) {
        let verdict = match verdict {
            FinalVerdict::Accept(_) => 0,
            FinalVerdict::Drop(_) => 1,
            FinalVerdict::Reject(_) => 2,
            FinalVerdict::Unknown => 3,
            FinalVerdict::Skip(_) => 4,
        };
        match time {
            Some(time) => self.time.count(time, verdict),
            None => self.untimed += 1,
        }
        self.order.count(self.packets, verdict);
        self.packets += 1;
    }

    /// The bins to show: by time, or by order if no packet has a time.
    #[must_use]
    pub fn shown(&self) -> &Bins {
        if self.untimed == self.packets { &self.order } else { &self.time }
    }

    /// Packets that [`Timeline::shown`] leaves out, because they have no time and others have.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        if self.untimed == self.packets { 0 } else { self.untimed }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(bins: &Bins) -> Bin {
        let mut sums = Bin::default();
        for (_, bin) in bins.iter() {
            for (sum, packets) in sums.iter_mut().zip(bin) {
                *sum += packets;
            }
        }
        sums
    }

    proptest! {
        /// Against a list of all packets: every bin holds exactly those of its span.
        #[test]
        fn bins_hold_what_lies_in_their_span(
            start in 0..u64::MAX / 4,
            steps in proptest::collection::vec((0_u32..45, 0_u64..1000, 0_usize..5), 0..600),
        ) {
            let mut bins = Bins::new(Axis::Time);
            let mut at = start;
            let mut packets = Vec::new();
            for (scale, step, verdict) in steps {
                at = at.saturating_add(step << scale).min(u64::MAX / 2);
                bins.count(at, verdict);
                packets.push((at, verdict));
            }
            prop_assert!(bins.bins.len() <= MAX_BINS);
            for (from, bin) in bins.iter() {
                prop_assert_eq!(from % bins.width(), 0);
                for (verdict, count) in bin.iter().enumerate() {
                    let inside = packets.iter().filter(|(at, of)| {
                        *of == verdict && *at >= from && *at - from < bins.width()
                    });
                    prop_assert_eq!(inside.count() as u64, *count);
                }
            }
            prop_assert_eq!(sums(&bins).iter().sum::<u64>(), packets.len() as u64);
        }

        #[test]
        fn order_loses_no_packet(packets in 0_u64..5000) {
            let mut timeline = Timeline::default();
            for _ in 0..packets {
                timeline.count(None, &FinalVerdict::Unknown);
            }
            prop_assert_eq!(sums(timeline.shown()), [0, 0, 0, packets, 0]);
            prop_assert_eq!(timeline.shown().axis(), Axis::Order);
        }
    }

    #[test]
    fn every_width_is_a_multiple_of_the_one_before() {
        for axis in [Axis::Time, Axis::Order] {
            let mut width = axis.narrowest();
            for _ in 0..30 {
                let wider = axis.wider(width);
                assert!(wider > width && wider.is_multiple_of(width), "{axis:?} {width} {wider}");
                width = wider;
            }
        }
    }

    #[test]
    fn packets_without_a_time_are_told_apart() {
        let mut timeline = Timeline::default();
        timeline.count(Some(5), &FinalVerdict::Accept(None));
        timeline.count(None, &FinalVerdict::Accept(None));
        assert_eq!((timeline.left_out(), timeline.shown().axis()), (1, Axis::Time));
    }

    #[test]
    fn the_last_instant_is_counted() {
        let mut bins = Bins::new(Axis::Time);
        bins.count(0, 1);
        bins.count(u64::MAX, 1);
        assert_eq!(sums(&bins), [0, 2, 0, 0, 0]);
    }
}
