//! Live runs: ports are opened and joined by wires, and workers take frames through the rules until they are asked to stop.
//! [`open`] and [`Opened::start`] start a run, [`Run::wait`] sees it to its end.
//!
//! Contract: the handler is the same as in a replay, and so is its answer. Nothing on a wire is the host's: what is
//! accepted leaves through the other port as it came, except for what rules rewrite; a reply to a rejected packet
//! leaves through the port of arrival, as a bridge sends it. Every frame is accounted for ([`Accounted`]). Counters are
//! read while a run works, and rules may be replaced ([`Run::published`]). Each worker drives all wires, with queues of
//! its own; workers share connections: `forward::steering` decides which worker owns a connection, `forward::handover`
//! moves its frames there.
//!
//! Floors, each of which uses only the floors before it: `answers` (to requests, as types), `config`, `ports`, `forward` (a worker's thread), `workers`,
//! `rules` and `devices`, `api` (requests), `surfaces` (control socket, metrics), `run`.
//!
//! Source: Linux 6.18 `net/bridge/br_netfilter_hooks.c`, `net/bridge/netfilter/nft_reject_bridge.c`.

pub mod answers;
mod api;
pub mod config;
mod devices;
mod forward;
mod ports;
mod rules;
mod run;
mod surfaces;
mod workers;

pub use crate::rules::journal;
pub use forward::{reorder, replies};
pub use ports::doctor;

pub use crate::rules::load::Loaded;
pub use crate::rules::revisions::RevisionStatus;
pub use answers::{DroppedPrivileges, Place, Refusal, RefusalKind, WorkerState};
pub use api::request::{NewPeer, Request, Watch as WatchRequest};
pub use api::requests::MOST_CHANGES;
pub use api::status::Status;
pub use api::words::{BanAction, FlowWords};
pub use config::topology::{Processor, here as processors};
pub use forward::account::{Accounted, Reason};
pub use forward::middlebox::{
    Descriptor, Driver, Hosted, LAYOUT_VERSION, Middlebox, Offsets, Polled, Shown, Verdict, Waiting,
};
pub use forward::taps::{FilterError, FrameEvent, Listening, Next};
pub use forward::worker::DRAIN;
pub use pktio::BoxedPort;
pub use ports::device::is_like;
pub use ports::opening::OpenDpdk;
pub use ports::tunnel::{Peers, TunnelEnd};
pub use run::error::RunError;
pub use run::life::Run;
pub use run::opened::{Opened, check, keep_apart, open};
pub use run::running::Running;
pub use run::wire_spec::WireSpec;
pub use surfaces::control::{ask, follow};
pub use workers::status::Direction;

/// Plays a hostile peer and programs of the host against a tunnel as `data` says (`fuzz/`, target `envelope`).
#[cfg(fuzzing)]
pub fn hostile_envelope(data: &[u8]) {
    ports::tunnel::hostile::envelope(data);
}

/// Plays what `data` says with revisions that wait for their confirmation (`fuzz/`, target `pending`).
#[cfg(fuzzing)]
pub fn hostile_pending(data: &[u8]) {
    crate::rules::revisions::hostile::pending(data);
}
