//! Captures as one stream of batches: the packets that are evaluated, numbered, in order of time.
//!
//! Contract: constant memory in the length of the captures; several captures are one stream, merged by time.
//! Within a window that is read ahead frames are put in order of time. One that comes later still takes the
//! latest time, and is counted; one without a time has that of the frame before it. Selection happens here, so
//! that what is left out is never evaluated.

mod argument;
mod feed;
mod interfaces;
mod numbers;
mod queue;
mod stream;
#[cfg(test)]
mod tests;

pub use argument::CaptureName;
pub use numbers::Numbers;
pub(crate) use numbers::capture_of;
pub(crate) use stream::{Reading, Source};
