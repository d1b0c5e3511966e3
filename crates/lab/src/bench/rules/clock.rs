//! Seconds that a piece of work takes.

use std::time::{Duration, Instant};

use crate::bench::document::Runs;

/// Seconds of one call.
pub(super) fn once<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let made = work();
    (start.elapsed().as_secs_f64(), made)
}

/// Seconds of one call: the median of as many as there is time for, so that being put aside by the machine's
/// other work does not count.
pub(super) fn each(budget: Duration, mut work: impl FnMut()) -> f64 {
    work();
    let mut calls = Vec::new();
    let start = Instant::now();
    while start.elapsed() < budget {
        calls.push(once(&mut work).0);
    }
    Runs::of(calls).value
}
