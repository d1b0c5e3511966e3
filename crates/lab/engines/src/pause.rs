//! A place between two steps at which a test makes a thread stumble, so that a race which is there shows.
//! Only the `as_published` engines have such places.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

static STUMBLES: AtomicBool = AtomicBool::new(false);

thread_local! {
    static STEPS: Cell<u32> = const { Cell::new(0) };
}

/// Makes threads yield at random between the steps of the published designs, from now on.
pub fn jitter(on: bool) {
    STUMBLES.store(on, Ordering::Relaxed);
}

/// Between two steps that the published design takes apart.
#[inline]
pub(crate) fn between_steps() {
    if STUMBLES.load(Ordering::Relaxed) {
        let step =
            STEPS.with(|steps| steps.replace(steps.get().wrapping_mul(0x9e37).wrapping_add(77)));
        if step & 8 != 0 {
            std::thread::yield_now();
        }
    }
}
