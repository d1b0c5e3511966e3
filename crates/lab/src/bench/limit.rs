//! When a benchmark is to end: after the seconds that it was given, or at SIGTERM.
//!
//! A process has one end, so it is the process's: [`end_after`] and [`end_at_sigterm`] set it, loops over rounds are
//! [`rounds`]. A round that has begun is measured to its end. A second SIGTERM ends the process at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

static END: OnceLock<Instant> = OnceLock::new();
static STOPPED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Gives this process so long, from now on; the first call counts.
pub fn end_after(time: Duration) {
    END.get_or_init(|| Instant::now() + time);
}

/// Has SIGTERM end this process in order.
///
/// # Errors
/// The signal cannot be handled.
pub fn end_at_sigterm() -> io::Result<()> {
    let term = signal_hook::consts::SIGTERM;
    signal_hook::flag::register_conditional_default(term, Arc::clone(&STOPPED))?;
    signal_hook::flag::register(term, Arc::clone(&STOPPED)).map(drop)
}

/// Whether SIGTERM came.
#[must_use]
pub fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Whether nothing more is to begin.
#[must_use]
pub fn is_over() -> bool {
    is_stopped() || END.get().is_some_and(|end| Instant::now() >= *end)
}

/// The numbers of rounds, up to so many; the first one always, others while there is time.
pub fn rounds(most: usize) -> impl Iterator<Item = usize> {
    (0..most).take_while(|round| *round == 0 || !is_over())
}
