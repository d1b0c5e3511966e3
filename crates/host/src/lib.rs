//! What a host is, as far as its packets depend on it: links, addresses, routes, policy rules, groups and settings, as
//! its own tools print them; and where a packet goes on it.
//!
//! Contract: text becomes a model, a model decides; no files, no clock, no panic whatever the text. What nobody gave
//! is not known, and decides nothing. Unknown words are ignored, so that the output of older, newer and smaller systems
//! is read alike.
#![forbid(unsafe_code)]

mod addresses;
mod alike;
mod back;
mod by_part;
mod decide;
mod fingerprints;
pub mod foreign;
mod geoip;
mod groups;
mod host;
mod kernel;
mod leave;
mod links;
mod nearest;
pub mod neighbours;
mod network;
mod policy;
mod queues;
mod read;
mod route;
mod routed;
pub mod routes;
mod search;
pub mod sighting;
mod source;
mod sysctl;
mod tables;
mod text;
mod xfrm;
mod zone;

pub use addresses::{Address, Addresses};
pub use alike::Alike;
pub use back::WayBack;
pub use fingerprints::{Fingerprint, Fingerprints, Window};
pub use geoip::{Country, Geoip};
pub use groups::Groups;
pub use host::Host;
pub use kernel::{Change, Kernel};
pub use links::{Link, LinkKind, Links};
pub use nearest::{edits, nearest};
pub use network::Network;
pub use policy::{Policy, PolicyRule};
pub use queues::{QueueVerdict, Queues, parse_verdict};
pub use read::HostError;
pub use routed::{Assumed, FrameKind, Incoming, Missing, Outgoing, Reached, Refused, Routed};
pub use sysctl::Sysctl;
pub use text::TextError;
pub use xfrm::{Xfrm, XfrmDirection, XfrmFlow, XfrmPolicy, XfrmTemplate};
pub use zone::Zone;
