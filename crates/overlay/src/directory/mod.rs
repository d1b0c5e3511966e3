//! [`Directory`]: knows the nodes of a network, decides who may reach whom, and shows them the way.
//!
//! It learns of nodes from the authority, and checks what the authority has signed; it has no key to sign with.
//!
//! Contract: no sockets and no clock. A question comes from a key that the tunnel has proven, and what is to be done about
//! it is taken from [`Directory::take`]. [`Effect::Keep`](crate::Effect::Keep) has to be on disk before any other effect of the same call is
//! carried out: so what was acknowledged is kept. Nothing waits here: who asks repeats the question, each answer is made
//! again from what is known, and a directory that restarts learns the rest from registrations. All state is bounded by
//! the devices that were enrolled.
//!
//! It never has a key of traffic: nodes agree on theirs with each other, through a relay that forwards what is sealed.

mod apart;
mod authority;
mod direction;
mod members;
mod probes;
mod punch;
mod recall;
mod receive;
mod registration;
mod relay;
mod sounding;
mod state;
mod ways;

pub use apart::RelayState;
pub use state::{Directory, Listed};
pub use ways::Way;
