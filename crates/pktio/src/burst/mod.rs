//! A burst: frames on their way between ports, in whatever memory they are.
//!
//! Contract: a port fills a burst, everyone else borrows frames from it. A frame is a range of bytes: of the burst's
//! own buffer, or of a chunk that the frame has with it ([`crate::FrameBuf`]). One burst may hold both kinds.
//!
//! - The buffer is for captures: a file is read into it in one piece and parsed where it lies. Such frames have no
//!   memory of their own; where one has to outlive its burst, it is copied.
//! - Chunks are for ports whose memory comes and goes frame by frame (pools, UMEM, mbufs, blocks of a ring). They
//!   move from burst to burst and to another thread without a copy, and go back to their region when the frame is
//!   dropped: with [`Burst::clear`], [`Burst::retain`], or the burst itself.
//!
//! Receiving allocates nothing once buffer and lists have reached their size. Frames of either kind stand in
//! ascending order without overlap: that is what lets [`Burst::iter_mut`] lend them all at once. A burst belongs to
//! one thread at a time and may move between threads.

mod chunks;
mod frames;
#[cfg(test)]
mod tests;

pub use frames::Burst;
