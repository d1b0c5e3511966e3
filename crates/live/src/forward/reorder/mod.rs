//! The `ordered` scheme: batches are staged one after the other, worked on by several workers at a time, and released
//! in the order in which they were staged. [`Lane`] holds them in between, [`Lane::turn`] is a worker's turn.
//!
//! Contract: staging and releasing run on the workers themselves, each by one worker at a time, the first to come. A
//! lane holds a bounded number of batches. Its one lock is held for a few moves of a batch, never while frames are
//! received, worked on or sent: four times for a batch, never for a frame. A worker that panics over a batch loses it;
//! a batch that a worker keeps for longer than the lane's patience is given up: the batches
//! after it go on, and what the worker brings back later is not released. No batch allocates once a lane has all its
//! buffers.
//!
//! The caller defines the work and its objects ([`Batch`], [`Way`]): wires use it for bursts of frames.
//!
//! A lock, and not a ring of atomics: every interleaving of whole critical sections is then all there is, which is what
//! shuttle explores (`tests/shuttle.rs`), and no argument on the order of memory is left to make.

mod lane;
mod turn;

/// The lane's locks; its tests under shuttle replace them.
mod sync {
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

pub use lane::{Backlog, Batch, Claim, Lane, Releaser, Shape, Stage, Stager};
pub use turn::{Came, Way};

#[cfg(test)]
mod tests;
