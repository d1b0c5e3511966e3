//! [`PacedReader`]: a capture as a live port. Its frames come at the distances that their time stamps have, at
//! another speed, or as fast as they are taken.
//!
//! Contract: the first frame with a time comes at once, every other one when as much time has passed as in the
//! capture, divided by the speed, and never before the frame that it follows: times that go back, and frames
//! without a time, wait for nothing. What comes late does not move what comes after it. Nothing sleeps here:
//! [`Readiness::After`] says how long to. The clock is passed in.
//!
//! Flat out, each chunk of the file is parsed where it lies, as [`CaptureReader`] does; paced, frames are copied.

use std::time::{Duration, Instant};

use super::CaptureReader;
use crate::burst::Burst;
use crate::frame::FrameMeta;
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;
use crate::timestamp::Timestamp;

/// How many times as fast as it was captured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// As fast as it was captured.
    pub const AS_CAPTURED: Self = Self(1.0);

    /// `factor` times as fast; `None` unless it is a number above 0.
    #[must_use]
    pub fn new(factor: f64) -> Option<Self> {
        (factor.is_finite() && factor > 0.0).then_some(Self(factor))
    }

    /// How long after `first` a frame comes that was captured at `at`.
    fn delay(self, first: Timestamp, at: Timestamp) -> Duration {
        let nanos = i128::from(at.as_nanos()) - i128::from(first.as_nanos());
        let seconds = nanos.max(0) as f64 / 1e9 / self.0;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// When frames come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as they are taken.
    FlatOut,
    /// By their time stamps.
    Timed(Speed),
}

/// Hands over the frames of a capture when it is time. `C` is the clock.
pub struct PacedReader<C = fn() -> Instant> {
    reader: CaptureReader,
    pace: Pace,
    clock: C,
    /// Frames read, of which the first ones have been handed over.
    read: Burst,
    handed_over: usize,
    /// When the first frame with a time came, and that time.
    began: Option<(Instant, Timestamp)>,
    is_over: bool,
    stats: Stats,
}

impl PacedReader {
    /// Paces `reader` by the machine's clock.
    pub fn new(reader: CaptureReader, pace: Pace) -> Self {
        Self::with_clock(reader, pace, Instant::now)
    }
}

impl<C: Fn() -> Instant> PacedReader<C> {
    /// Paces `reader` by this clock.
    pub fn with_clock(reader: CaptureReader, pace: Pace, clock: C) -> Self {
        Self {
            reader,
            pace,
            clock,
            read: Burst::new(),
            handed_over: 0,
            began: None,
            is_over: false,
            stats: Stats::default(),
        }
    }

    /// The capture that it reads.
    pub fn reader(&self) -> &CaptureReader {
        &self.reader
    }

    /// How long a frame still has to wait.
    fn wait(&self, meta: &FrameMeta, now: Instant) -> Duration {
        let (Pace::Timed(speed), Some((began, first)), Some(at)) =
            (self.pace, self.began, meta.timestamp)
        else {
            return Duration::ZERO;
        };
        speed.delay(first, at).saturating_sub(now.saturating_duration_since(began))
    }

    /// Copies to `burst` what is due of the frames read.
    fn hand_over(&mut self, burst: &mut Burst) {
        let now = (self.clock)();
        while let Some(frame) = self.read.get(self.handed_over) {
            if self.began.is_none() {
                self.began = frame.meta.timestamp.map(|first| (now, first));
            }
            if !self.wait(frame.meta, now).is_zero() {
                return;
            }
            self.handed_over += 1;
            self.stats.rx_frames += 1;
            self.stats.rx_bytes += frame.bytes.len() as u64;
            burst.push(frame.bytes, *frame.meta);
        }
    }
}

impl<C: Fn() -> Instant> Port for PacedReader<C> {
    /// The frames whose time has come. Once the capture is over, [`PacedReader::readiness`] is [`Readiness::Never`].
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        if self.pace == Pace::FlatOut {
            self.is_over = self.reader.rx_burst(burst)? == 0;
            return Ok(burst.len());
        }
        if self.handed_over == self.read.len() {
            self.handed_over = 0;
            self.is_over = self.reader.rx_burst(&mut self.read)? == 0;
        }
        self.hand_over(burst);
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.reader.tx_burst(burst)
    }

    fn readiness(&self) -> Readiness<'_> {
        match self.read.get(self.handed_over) {
            _ if self.is_over => Readiness::Never,
            None if self.pace == Pace::FlatOut => Readiness::Always,
            // It is read to know, and does not wait for who takes its frames.
            None => Readiness::After(Duration::ZERO),
            Some(frame) => Readiness::After(self.wait(frame.meta, (self.clock)())),
        }
    }

    fn stats(&self) -> Stats {
        if self.pace == Pace::FlatOut { self.reader.stats() } else { self.stats }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::link::LinkType;
    use crate::pcap_file::{ClassicWriter, Precision};

    /// A capture of a frame for each of these times, in nanoseconds; its one byte is its place.
    fn capture(times: &[u32]) -> CaptureReader {
        let mut writer = ClassicWriter::new(Vec::new(), LinkType::RAW, Precision::Nanos).unwrap();
        let mut burst = Burst::new();
        for (place, time) in times.iter().enumerate() {
            let timestamp = Some(Timestamp::from_nanos((*time).into()));
            burst.push(&[place as u8], FrameMeta { timestamp, ..FrameMeta::default() });
        }
        burst.iter().for_each(|frame| writer.write(frame).unwrap());
        CaptureReader::new("made", Cursor::new(writer.finish().unwrap())).unwrap()
    }

    fn bytes(burst: &Burst) -> Vec<u8> {
        burst.iter().map(|frame| frame.bytes[0]).collect()
    }

    #[test]
    fn frames_come_at_their_distances_and_the_port_says_when() {
        let start = Instant::now();
        let now = Cell::new(start);
        let half = Pace::Timed(Speed::new(0.5).unwrap());
        let mut port =
            PacedReader::with_clock(capture(&[500, 500, 600, 550, 700]), half, || now.get());
        let mut burst = Burst::new();
        assert!(matches!(port.readiness(), Readiness::After(Duration::ZERO)));
        for (at, expected, wait) in
            [(0, &[0, 1][..], 200), (199, &[], 1), (200, &[2, 3], 200), (1000, &[4], 0)]
        {
            now.set(start + Duration::from_nanos(at));
            assert_eq!(port.rx_burst(&mut burst).unwrap(), expected.len());
            assert_eq!(bytes(&burst), expected);
            let Readiness::After(left) = port.readiness() else { panic!("{at}") };
            assert_eq!(left.as_nanos(), wait);
        }
        assert_eq!(port.rx_burst(&mut burst).unwrap(), 0);
        assert!(matches!(port.readiness(), Readiness::Never));
        assert_eq!((port.stats().rx_frames, port.stats().rx_bytes), (5, 5));
        assert_eq!(port.reader().warning(), None);
    }

    #[test]
    fn flat_out_nothing_waits() {
        let stands = || -> Instant { panic!("nobody asks for the time") };
        let mut port = PacedReader::with_clock(capture(&[0, 4_000_000_000]), Pace::FlatOut, stands);
        let mut burst = Burst::new();
        assert_eq!(port.rx_burst(&mut burst).unwrap(), 2);
        assert_eq!((bytes(&burst), port.stats().rx_frames), (vec![0, 1], 2));
        assert!(matches!(port.readiness(), Readiness::Always));
        assert_eq!(port.rx_burst(&mut burst).unwrap(), 0);
        assert!(matches!(port.readiness(), Readiness::Never));
    }

    #[test]
    fn a_speed_is_a_number_above_0() {
        let refused = [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(refused.map(Speed::new), [None; 6]);
        let slowest = Speed::new(f64::MIN_POSITIVE).unwrap();
        let wait = slowest.delay(Timestamp::from_nanos(i64::MIN), Timestamp::from_nanos(i64::MAX));
        assert_eq!(wait, Duration::MAX);
    }

    proptest! {
        /// Against a plain sum: a frame has come when its delay and the delays of all before it have passed.
        #[test]
        fn what_has_come_is_what_is_due(
            times in proptest::collection::vec(0..2_000_u32, 1..20),
            steps in proptest::collection::vec(0..700_u64, 1..20),
            quarters in 1..9_u32,
        ) {
            let pace = Pace::Timed(Speed::new(f64::from(quarters) / 4.0).unwrap());
            let start = Instant::now();
            let now = Cell::new(start);
            let mut port = PacedReader::with_clock(capture(&times), pace, || now.get());
            let (mut burst, mut come) = (Burst::new(), Vec::new());
            for step in steps {
                now.set(now.get() + Duration::from_nanos(step));
                port.rx_burst(&mut burst).unwrap();
                come.extend(bytes(&burst));
                let Some((began, _)) = port.began else { panic!("the first frame has come") };
                let passed = (now.get() - began).as_nanos() as f64;
                let since = |time: &u32| f64::from(time.saturating_sub(times[0]));
                let delay = |time: &u32| since(time) * 4.0 / f64::from(quarters);
                // To the nanosecond; half of one may be rounded either way.
                let due = |round: fn(f64) -> f64| {
                    times.iter().take_while(|time| round(delay(time)) <= passed).count()
                };
                let (fewest, most) = (due(f64::round), due(|delay| (delay - 0.5).ceil()));
                prop_assert!((fewest..=most).contains(&come.len()), "{} of {fewest}", come.len());
                prop_assert!(come.iter().copied().eq(0..come.len() as u8));
            }
        }
    }
}
