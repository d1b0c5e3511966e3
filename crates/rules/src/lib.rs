//! Decides by policy: rulesets of the xtables family, from text to verdict.
//!
//! [`save`] reads and prints save text, [`model`] is the ruleset, [`ext`] holds one file per match and
//! target, [`eval`] walks the rules for one packet: slow, obvious, the reference for every faster walk.
//!
//! Nothing in here depends on what is above it: words (`family`, `header`, `names`, `value`, `lexer`, `error`,
//! `outcome`), the packet at a hook ([`Transit`]) with its connection and the host's sets, what an extension is ([`ext`])
//! and each of them, the ruleset, then what reads, walks, lays out and changes it.
//!
//! Contract: no sockets, no threads, no clock (time is passed in), no panic whatever the text or the
//! packet.
#![forbid(unsafe_code)]

mod backend;
mod connection;
pub mod convert;
mod error;
pub mod eval;
pub mod ext;
mod family;
mod header;
pub mod ipset;
pub mod layout;
mod lexer;
pub mod model;
mod names;
pub mod nat;
mod one;
mod outcome;
mod parallel;
pub mod predicate;
pub mod revision;
pub mod save;
mod table_name;
mod tracking;
mod transit;
mod value;

pub use backend::Backend;
pub use connection::{Connection, KnownFlow, Request};
pub use conntrack::{Chance, Entropy};
pub use family::{Attachment, CONNTRACK, DEFRAG, Role, TableKind};
pub use names::{protocol_name, protocol_number};
pub use outcome::Outcome;
pub use parallel::{Because, Class};
pub use transit::{BridgeNote, Iface, Transit};
pub use value::{port as port_number, service as port_of_service};
