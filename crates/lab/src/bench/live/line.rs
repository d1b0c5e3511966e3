//! The line of devices that frames are sent along: `a0` - `m0`, forwarder, `m1` - `b0`, and what is counted at its end.
//!
//! Contract: all devices are in the calling thread's namespace, without offloads. Frames are counted where they leave
//! the forwarder, at `b0`, whose stack drops them: they are to another host.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::counts::{come, received, spent_by_kernel};
use super::forwarder::Forwarder;
use super::running::Running;
use super::source::{self, Pace};
use crate::oracle::netns::{ip, settle_device, write_setting};

/// Until a forwarder has found its pace.
const WARM_UP: Duration = Duration::from_millis(400);

/// What came out at the far end, at the source's full speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Frames per second.
    pub(super) frames: f64,
    /// The part of the time that the forwarder's process was on a processor, with all its threads.
    pub(super) busy: f64,
    /// The same of the source, in whose time the kernel forwards.
    pub(super) source_busy: f64,
}

/// The devices.
#[derive(Debug)]
pub(super) struct Line;

impl Line {
    /// Makes them.
    pub(super) fn new() -> io::Result<Self> {
        ip(
            "link add a0 address 02:00:00:00:00:01 type veth peer name m0 address 02:00:00:00:00:02\n\
            link add b0 address 02:00:00:00:00:04 type veth peer name m1 address 02:00:00:00:00:03\n",
        )?;
        for device in ["a0", "m0", "m1", "b0"] {
            settle_device(device)?;
            write_setting(&format!("ipv6/conf/{device}/disable_ipv6"), "1")?;
            let off = ["-K", device, "rx", "off", "tx", "off", "sg", "off", "gro", "off"];
            Command::new("ethtool").args(off).output()?;
            ip(&format!("link set {device} up\n"))?;
        }
        // For the kernel's own way; nobody else looks.
        ip("addr add 10.0.0.1/24 dev m0\naddr add 10.0.1.1/24 dev m1\n")?;
        Ok(Self)
    }

    /// Frames that come out at the far end, at the source's full speed.
    pub(super) fn rate(&self, forwarder: &Forwarder<'_>, seconds: f64) -> io::Result<Rate> {
        let running = forwarder.start(last_core())?;
        self.along(&running, 0, Pace::Full, || {
            thread::sleep(WARM_UP);
            let since = Instant::now();
            let before = [come()?, running.spent()?, source::spent()?];
            thread::sleep(Duration::from_secs_f64(seconds));
            let after = [come()?, running.spent()?, source::spent()?];
            let elapsed = since.elapsed().as_secs_f64();
            let [frames, busy, source_busy] =
                [0, 1, 2].map(|of| after[of].saturating_sub(before[of]) as f64 / elapsed);
            Ok(Rate { frames, busy: busy / 1e9, source_busy: source_busy / 1e9 })
        })
    }

    /// Nanoseconds of processor time for each frame that comes out at the far end, of the source, of the kernel and of
    /// the forwarder, all on one core, no faster than frames are forwarded. Without a forwarder, for each that is sent.
    pub(super) fn cost(&self, forwarder: &Forwarder<'_>, seconds: f64) -> io::Result<f64> {
        let running = forwarder.start(last_core())?;
        let pace = if running.is_none() { Pace::Full } else { Pace::Behind };
        let count = || if running.is_none() { received("m0") } else { come() };
        self.along(&running, last_core(), pace, || {
            thread::sleep(WARM_UP);
            let (spent, before) =
                (running.spent()? + spent_by_kernel()? + source::spent()?, count()?);
            thread::sleep(Duration::from_secs_f64(seconds));
            let now = running.spent()? + spent_by_kernel()? + source::spent()?;
            Ok((now - spent) as f64 / (count()? - before).max(1) as f64)
        })
    }

    /// Measures while frames are sent from the core.
    pub(super) fn along<T>(
        &self,
        running: &Running,
        core: usize,
        pace: Pace,
        measure: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let sent = scope.spawn(|| source::send(running.destination(), core, pace, &stop));
            let measured = measure();
            stop.store(true, Ordering::Relaxed);
            sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            measured
        })
    }
}

/// The core of the forwarder.
pub(super) fn last_core() -> usize {
    thread::available_parallelism().map_or(0, |cores| cores.get() - 1)
}
