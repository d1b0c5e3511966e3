//! Who can reach an address, and where packets of a network can go: all of them at once through every table of their
//! way, the translation of their destination followed.
//!
//! Contract: a region that is said to be let through is so for every packet of it that has its headers whole, whatever
//! tests say that can only be asked; what depends on such a test, on a target whose effect depends on the packet, or on
//! an address that is drawn from several, is reported separately. Both describe packets as they come in, with the
//! packet that a walk along the whole way has judged; a region that no walk lets a packet of through is not said to be
//! let through.

mod answer;
mod asking;
mod question;
mod report;
mod translation;
mod way;

pub use answer::{Closed, Judge, Judged, Reach, Reached, Reaching, States, Translated};
pub use asking::reach;
pub use question::{Question, To};
pub use report::Asked;
pub(crate) use translation::sent_on;
