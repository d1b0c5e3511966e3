//! Middleboxes: a middlebox sees the frames that cross a wire, may rewrite them, and decides of each whether it goes
//! on.
//!
//! Contract: each worker has one of its own, which sees each frame once: the frames that leave the rules, or the frames
//! before the rules ([`Slot`]); replies that rules make leave unseen. Frames keep their order and stay in their memory.
//! No frame is lost: what is dropped counts as [`Reason::Middlebox`](crate::forward::account::Reason::Middlebox) or
//! [`Reason::Handler`](crate::forward::account::Reason::Handler). A middlebox that panics is a worker that panics;
//! after that no middlebox sees any frame.

mod away;
mod descriptor;
mod driver;
mod hosted;
mod offsets;
mod ring;
mod shown;
mod verdict;
mod waiting;

pub(crate) use away::Away;
pub use descriptor::{Descriptor, LAYOUT_VERSION};
pub use driver::{Driver, Middlebox};
pub(crate) use hosted::End;
pub use hosted::Hosted;
pub use offsets::Offsets;
pub(crate) use ring::WorkerRing;
pub use shown::Polled;
pub use verdict::Verdict;
pub use waiting::{Shown, Waiting};
