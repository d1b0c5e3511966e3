//! What engines get: [`Source`] of packets and [`Work`] on them; and [`Sink`], which looks at what they leave.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// Packets that are taken at once.
pub(super) const BURST: usize = 64;
/// Packets that wait for whoever receives, where they come at their own pace; the oldest are lost.
const RING: u64 = 4096;
/// Nanoseconds that are told from more.
const LONGEST: u64 = 60_000_000_000;
/// Steps that work is measured by, and how often.
const MEASURED: u64 = 1 << 20;
const TRIES: usize = 15;

/// A packet, bare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// From 1, in the order in which they come.
    pub(super) number: u64,
    /// When it came, in nanoseconds since the start.
    due: u64,
}

/// What an engine has to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) work: Work,
    pub(super) pace: Pace,
}

/// When packets come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// As soon as they are taken, for so long.
    Full(Duration),
    /// So many of them.
    Packets(u64),
    /// So many a second, for so long.
    Rate(f64, Duration),
}

/// Computing, which takes longer or shorter by the packet's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Twice the mean.
    most_steps: u64,
    step_ns: f64,
}

impl Work {
    /// Work of this mean, by this machine's pace when nothing else has it.
    pub(super) fn of(mean: Duration) -> Self {
        let times = (0..TRIES).map(|_| {
            let since = Instant::now();
            compute(MEASURED);
            since.elapsed()
        });
        let best = times.min().unwrap_or_default();
        let step_ns = best.as_nanos() as f64 / MEASURED as f64;
        Self { most_steps: (2.0 * mean.as_nanos() as f64 / step_ns) as u64, step_ns }
    }

    pub(super) fn on(&self, packet: &Packet) {
        compute(self.steps(packet));
    }

    fn steps(&self, packet: &Packet) -> u64 {
        // SplitMix64: as good as random, and the same for every engine.
        let mut word = packet.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % self.most_steps.max(1)
    }

    fn nanos(&self, packet: &Packet) -> u64 {
        (self.steps(packet) as f64 * self.step_ns) as u64
    }
}

fn compute(steps: u64) {
    let mut word = steps | 1;
    for _ in 0..steps {
        word = black_box(word.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7));
    }
}

/// Where packets come from; whoever receives has it.
#[derive(Debug)]
pub(super) struct Source {
    pace: Pace,
    start: Instant,
    /// Packets that were taken or lost.
    gone: u64,
    /// Packets that were lost before they were taken.
    lost: u64,
}

impl Source {
    pub(super) fn new(pace: Pace, start: Instant) -> Self {
        Self { pace, start, gone: 0, lost: 0 }
    }

    /// Puts what has come by now into `to`, [`BURST`] at most; how many.
    pub(super) fn take(&mut self, to: &mut Vec<Packet>) -> usize {
        let Some(now) = Instant::now().checked_duration_since(self.start) else { return 0 };
        let (come, interval) = match self.pace {
            Pace::Full(most) if now < most => (u64::MAX, None),
            Pace::Full(_) => (self.gone, None),
            Pace::Packets(most) => (most, None),
            Pace::Rate(rate, most) => {
                ((now.min(most).as_secs_f64() * rate) as u64, Some(1e9 / rate))
            }
        };
        if interval.is_some() && come - self.gone > RING {
            self.lost += come - self.gone - RING;
            self.gone = come - RING;
        }
        let count = (come - self.gone).min(BURST as u64);
        to.extend((self.gone + 1..=self.gone + count).map(|number| {
            let due = interval.map_or(now.as_nanos() as u64, |each| (number as f64 * each) as u64);
            Packet { number, due }
        }));
        self.gone += count;
        count as usize
    }

    /// Whether nothing comes any more.
    pub(super) fn is_over(&self) -> bool {
        match self.pace {
            Pace::Full(most) => self.start.elapsed() >= most,
            Pace::Packets(most) => self.gone >= most,
            Pace::Rate(rate, most) => {
                self.start.elapsed() >= most && self.gone >= (most.as_secs_f64() * rate) as u64
            }
        }
    }

    /// Whether packets are lost if nobody takes them.
    pub(super) fn is_paced(&self) -> bool {
        matches!(self.pace, Pace::Rate(..))
    }
}

/// Where packets leave; whoever sends has it.
#[derive(Debug)]
pub(super) struct Sink {
    work: Work,
    start: Instant,
    last: u64,
    released: u64,
    reordered: u64,
    added: Histogram<u64>,
}

impl Sink {
    /// # Panics
    /// Bounds or digits are too many for a histogram, which they are not.
    pub(super) fn new(work: Work, start: Instant) -> Self {
        let added = Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds");
        Self { work, start, last: 0, released: 0, reordered: 0, added }
    }

    /// Sends packets.
    pub(super) fn send(&mut self, packets: &[Packet]) {
        let now = self.start.elapsed().as_nanos() as u64;
        for packet in packets {
            self.reordered += u64::from(packet.number <= self.last);
            self.last = packet.number;
            self.released += 1;
            let added = now.saturating_sub(packet.due + self.work.nanos(packet));
            self.added.saturating_record(added);
        }
    }

    /// What left, after `refused` packets found no room.
    pub(super) fn left(self, source: &Source, refused: u64) -> Left {
        Left {
            gone: source.gone,
            released: self.released,
            reordered: self.reordered,
            refused,
            lost: source.lost,
            elapsed: self.start.elapsed(),
            added: self.added,
        }
    }
}

/// What came of a load.
#[derive(Debug)]
pub(super) struct Left {
    /// Packets that came.
    gone: u64,
    pub(super) released: u64,
    /// Of those, the ones that left after one that came later.
    pub(super) reordered: u64,
    /// Packets that found no room between receiving and sending.
    pub(super) refused: u64,
    /// Packets that nobody received in time.
    lost: u64,
    pub(super) elapsed: Duration,
    /// Nanoseconds that packets took beyond the work on them.
    pub(super) added: Histogram<u64>,
}

impl Left {
    /// # Panics
    /// Packets left out of order, or have no fate.
    pub(super) fn check(&self) {
        assert_eq!(self.reordered, 0, "packets left out of their order");
        let fates = self.released + self.refused + self.lost;
        assert!(self.gone == fates, "{} came, {fates} have a fate", self.gone);
    }

    pub(super) fn rate(&self) -> f64 {
        self.released as f64 / self.elapsed.as_secs_f64()
    }
}

/// When a load begins: once all threads are there.
pub(super) fn soon() -> Instant {
    Instant::now() + Duration::from_millis(30)
}

/// Has the calling thread run before all other processes, if it may, for a load that is timed.
pub(super) fn before_others(pace: Pace) {
    if matches!(pace, Pace::Packets(_)) {
        return;
    }
    let thread = std::fs::read_link("/proc/thread-self");
    let number = thread.ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
    if let Some(number) = number {
        let _ = Command::new("chrt")
            .args(["--rr", "-p", super::super::source::PRIORITY])
            .arg(number)
            .output();
    }
}
