//! What [`super::in_flight`] is made of: `tests/in_flight.rs` puts words and locks in its place whose interleavings loom
//! explores.

pub(super) use parking_lot::{Condvar, Mutex};
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize};
