//! The hall: where frames, headers and rules meet. [`handler`] holds one packet's whole path, from top to
//! bottom; everything else here is a room that it calls.
//!
//! Contract: one [`Handler`] belongs to one thread. It allocates nothing per packet and takes no lock, but that of a list
//! that `-m recent` asks, and what [`Shared`] says where workers share what the kernel has once. Only [`publish`] knows
//! of threads.
#![forbid(unsafe_code)]
// Some of what a replay shares with live runs, these alone use.
#![cfg_attr(not(feature = "live"), allow(dead_code))]

mod answers;
mod arrival;
pub mod bans_text;
mod bridge;
pub mod config;
mod context;
pub mod counters;
mod course;
mod delivery;
mod direct;
mod disposition;
mod egress;
mod evaluator;
mod footprint;
pub mod handler;
mod headers;
mod hooked;
mod hooks;
mod interfaces;
pub mod keys;
mod link;
mod moment;
mod observer;
mod on_wire;
#[cfg(feature = "live")]
pub mod ordered;
mod path;
mod program;
#[cfg(feature = "live")]
pub mod publish;
mod reroute;
#[cfg(feature = "live")]
pub mod run;
mod shared;
mod state;
mod walk;
mod way;
mod wires;
mod within_link;

pub use arrival::{Arrival, Bridge, Hooked, Left, Origin};
pub use config::{Config, Unresolved};
pub use counters::{Counters, Places};
pub use delivery::is_fragment;
pub use disposition::{
    Disposition, DropReason, Early, Either, FinalVerdict, Midstream, Outcome, Skip, Why,
};
pub use egress::{Egress, Leaves, Own};
pub use evaluator::Evaluator;
pub use footprint::{ANSWERS_KEPT, ANSWERS_LONGEST, Footprint};
pub use handler::{BURST, Handler};
pub use headers::find_headers;
pub use link::link_of;
pub use moment::Moment;
pub use observer::{Event, Events, Observer};
pub use path::Path;
pub use program::Program;
pub use rules::ext::Answer;
pub use shared::Shared;
pub use state::{Follow, State};
pub use wires::{Crossing, Join, Wires, WiresError};
