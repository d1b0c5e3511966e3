//! Middleboxes: who is given the frames that cross a wire, may rewrite them, and says of each whether it goes on.
//!
//! Contract: each worker has one of its own, and it sees each frame once: those that leave after the rules, or those that
//! come before them ([`Slot`](super::config::Slot)). Frames keep their order and stay in their memory. No frame is lost: what is dropped counts
//! as [`Reason::Middlebox`](super::Reason::Middlebox) or [`Reason::Handler`](super::Reason::Handler). After a panic of a
//! worker none sees any frame.

mod descriptor;
mod hosted;

pub use descriptor::{Descriptor, LAYOUT_VERSION};
pub(super) use hosted::End;
pub use hosted::{Hosted, Polled};

/// What becomes of a frame that a middlebox has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Verdict {
    /// It goes on.
    #[default]
    Pass = 0,
    /// It is dropped.
    Drop = 1,
    /// It leaves by the port that it came in by.
    Back = 2,
    /// The middlebox failed over it: what [`OnError`](super::config::OnError) says.
    Error = 3,
}
