//! Names in the overlay: an authority enrols devices and signs what they are; a directory knows which nodes are there and
//! decides who may reach whom; nodes ask it for the way to each other when a program asks for a name; a relay forwards what
//! they seal for each other.
//! `docs/cloud.md` has every message, and who learns what.
//!
//! Contract: state machines, as in [`tunnel`]: no sockets, no threads, no clock, no `unsafe`. Time, randomness and bytes
//! are passed in; what is to be done is taken out. Nothing panics on input, and all memory is bounded.
//!
//! | | device | server |
//! |---|---|---|
//! | enrolment, renewal | [`Enrolment`], under a one-time key; [`Node`] | [`Authority`] |
//! | who is there, and the way | [`Node`] | [`Directory`] |
//! | both | [`Carrier`]: messages inside the tunnel | [`Relay`]: datagrams between nodes, by [`Forwarding`]; [`Outpost`]: a relay on a host of its own |
#![forbid(unsafe_code)]

mod authority;
mod carrier;
mod certificate;
mod directory;
mod effect;
mod forwarding;
mod framed;
mod identity;
mod invitation;
pub mod limits;
mod lines;
mod members;
mod message;
mod name;
mod network;
mod no_way;
mod node;
mod orders;
mod outpost;
mod paths;
mod permits;
mod policy;
mod port_mapping;
mod queue;
mod reached;
mod recall;
mod record;
mod relay;
mod router;
mod service;
mod transactions;
mod wire;

pub use authority::Authority;
pub use carrier::{Came, Carried, Carrier, PORT};
pub use directory::{Directory, Listed, RelayState, Way};
pub use effect::{Effect, Now};
pub use forwarding::{Forwarded, Forwarding, Reading, Sources};
pub use framed::{Framed, NoFrame};
pub use identity::{Claims, Identity, NotASigner, NotGenuine, Signer, SignerKey};
pub use invitation::{Enrolment, JoinUrl, NotAJoinUrl, NotEnrolled};
pub use members::{Certifying, Following};
pub use message::{Body, HEADER, LONGEST, Membership, Message, Refusal, Transaction};
pub use name::{Name, NotAName, below};
pub use network::{GUESTS_DIRECTORY, Network, guest_address};
pub use no_way::NoWay;
pub use node::{Action, Node};
pub use orders::{End, Join, Relaying, Series};
pub use outpost::Outpost;
pub use paths::Pair;
pub use permits::{Permit, Permits};
pub use policy::{ALL, Line, MOST_LINES, Policy};
pub use port_mapping::{LONGEST_ANSWER, PortMapping, ROUTER_PORT};
pub use reached::{MOST as MOST_REACHED, Reached};
pub use record::{Device, Invitation, Record};
pub use relay::{PathCounts, Relay};
pub use router::{Ports, Router, Strangers};
pub use service::{NotAService, Protocol, Service};
pub use wire::Malformed;
