//! Seconds that a piece of work takes.

use std::time::{Duration, Instant};

/// Seconds of one call.
pub(super) fn once<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let made = work();
    (start.elapsed().as_secs_f64(), made)
}

/// Seconds of one call: the least of as many as there is time for. What a busy machine adds to a walk is not the
/// walk's, and it adds more to long ones than to short ones.
pub(super) fn least(budget: Duration, mut work: impl FnMut()) -> f64 {
    work();
    let mut least = f64::INFINITY;
    let start = Instant::now();
    while start.elapsed() < budget {
        least = least.min(once(&mut work).0);
    }
    least
}
