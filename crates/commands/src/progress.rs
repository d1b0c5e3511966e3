//! A progress bar on standard error, for work over a second, on a terminal only.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::screen;

/// How long work goes on before a bar shows.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a bar stands before it is drawn again.
const REDRAWN: Duration = Duration::from_millis(100);
/// The cells of a bar.
const WIDTH: f64 = 40.0;

/// Progress through a capture in bytes.
pub(crate) struct Progress {
    started: Instant,
    drawn: Option<Instant>,
    wanted: bool,
}

impl Progress {
    /// Starts without a bar.
    pub(crate) fn new() -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { started: Instant::now(), drawn: None, wanted }
    }

    /// `done` bytes of `all` are read.
    pub(crate) fn at(&mut self, done: u64, all: Option<u64>) {
        let waits = || match self.drawn {
            Some(drawn) => drawn.elapsed() < REDRAWN,
            None => self.started.elapsed() < PATIENCE,
        };
        if !self.wanted || waits() {
            return;
        }
        self.drawn = Some(Instant::now());
        screen::tell_text(&format!("\r{}\x1b[K", bar(done, all, self.started.elapsed())));
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if self.drawn.is_some() {
            screen::tell_text("\r\x1b[K");
        }
    }
}

/// The bar, how far it is, how fast, and for how long it will go on at that rate.
fn bar(done: u64, all: Option<u64>, spent: Duration) -> String {
    const MEGA: f64 = 1e6;
    let (done, all) = (done as f64, all.unwrap_or(done).max(done) as f64);
    let rate = done / spent.as_secs_f64();
    let bar = "█".repeat((done / all * WIDTH) as usize);
    let (done, all, rate, left) = (done / MEGA, all / MEGA, rate / MEGA, (all - done) / rate);
    format!("{bar:░<40} {done:.0} of {all:.0} MB, {rate:.0} MB/s, {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_tells_how_far_it_is() {
        let shown = bar(30_000_000, Some(120_000_000), Duration::from_secs(2));
        let bar_of = |full| format!("{}{}", "█".repeat(full), "░".repeat(40 - full));
        assert_eq!(shown, format!("{} 30 of 120 MB, 15 MB/s, 6 s left", bar_of(10)));
        // A stream whose end nobody knows; nothing yet.
        let shown = bar(30_000_000, None, Duration::from_secs(2));
        assert_eq!(shown, format!("{} 30 of 30 MB, 15 MB/s, 0 s left", bar_of(40)));
        assert_eq!(bar(0, None, Duration::ZERO).chars().filter(|shown| *shown == '█').count(), 0);
    }
}
