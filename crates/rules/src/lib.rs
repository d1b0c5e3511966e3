//! Decides by policy: rulesets of the xtables family, from text to verdict.
//!
//! [`save`] reads and prints save text, [`model`] is the ruleset, [`ext`] holds one file per match and
//! target, [`eval`] walks the rules for one packet: slow, obvious, the reference for every faster walk.
//!
//! Contract: no sockets, no threads, no clock (time is passed in), no panic whatever the text or the
//! packet.
#![forbid(unsafe_code)]

mod connection;
pub mod convert;
pub mod eval;
pub mod ext;
mod family;
pub mod ipset;
pub mod layout;
pub mod model;
pub mod nat;
mod outcome;
mod parallel;
pub mod revision;
pub mod save;
mod semantics;
mod tracking;
mod transit;

pub use connection::{Connection, Seen, Wish};
pub use family::{TableKind, protocol_name, protocol_number};
pub use outcome::Outcome;
pub use parallel::{Because, Class};
pub use semantics::Semantics;
pub use transit::{BridgeNote, Iface, Transit};
