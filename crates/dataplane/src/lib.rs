//! One packet's path: where frames, headers and rules meet. [`handler`] holds it from top to bottom; everything else here is
//! what it calls.
//!
//! Contract: one [`Handler`] belongs to one thread. It allocates nothing per packet and takes no lock, but that of a list
//! that `-m recent` asks, and what [`Shared`] says where workers share what the kernel has once. Only [`publish`] knows
//! of threads.
#![forbid(unsafe_code)]

mod admit;
mod answers;
mod arrival;
pub mod bans_text;
pub mod config;
mod context;
pub mod counters;
mod delivery;
mod direct;
mod disposition;
mod egress;
mod evaluator;
mod footprint;
mod fragments;
pub mod handler;
mod headers;
mod hooked;
mod hooks;
pub mod keys;
mod link;
mod moment;
mod observer;
mod on_wire;
mod program;
pub mod publish;
mod routing;
mod shared;
mod state;
mod unseen;
mod walk;
mod wires;
mod within_link;

pub use arrival::{Arrival, Bridge, Hooked, Left, Origin};
pub use config::{Config, Start, Unresolved};
pub use counters::{Counters, Places};
pub use delivery::is_fragment;
pub use disposition::{
    Disposition, DropReason, Early, Either, FinalVerdict, Midstream, Outcome, Skip, Why,
};
pub use egress::{Egress, Leaves, Own};
pub use evaluator::Evaluator;
pub use footprint::{ANSWERS_KEPT, ANSWERS_LONGEST, Footprint};
pub use handler::{BURST, Handler};
pub use headers::{find_headers, find_headers_into};
pub use link::{is_ip, link_of};
pub use moment::Moment;
pub use observer::{Event, Events, Observer};
pub use program::Program;
pub use routing::bridge::hands_over;
pub use routing::path::Path;
pub use routing::way::addresses;
pub use rules::ext::Answer;
pub use shared::Shared;
pub use state::State;
pub use wires::{Crossing, Join, Wires, WiresError};
