//! Connections and fragments as the Linux kernel keeps them: which flow a packet is part of, in what state, and of
//! which fragments it was made.
//!
//! Read [`Tracker`] first: one packet at a time goes through [`Tracker::track`] and
//! [`Tracker::confirm`]. [`Flow`] is an entry of the table, [`CtView`] what is known of one packet. [`defrag`] holds
//! fragments back until they are a packet again.
//!
//! Contract: no sockets, no clock (time is passed in as nanoseconds), no rules, no panic whatever the packets, and
//! memory bounded by [`Config::max`] and [`defrag::Limits::memory`]. The same packets give the same answers in every
//! run, whatever the keys of its hashes. What depends on bytes or verdicts that are not known is answered with every
//! state that remains possible.
//!
//! Source: Linux 6.18, the files named in each module; states and times are facts of its behaviour.
#![forbid(unsafe_code)]

mod chance;
pub mod config;
pub mod defrag;
pub mod dissect;
mod edit;
mod evicted;
mod expect;
pub mod flow;
mod ftp;
mod helper;
mod helpers;
mod icmp;
mod index;
pub mod key;
mod listing;
mod masters;
mod others;
mod protocol;
pub mod sctp;
mod second;
mod shift;
mod slab;
mod sources;
mod status;
pub mod steer;
mod step;
mod table;
pub mod tcp;
mod told;
mod tracker;
mod udp;
mod unmodelled;
mod untraceable;
pub mod verify;
mod view;
mod wanted;

pub use chance::{Chance, Entropy};
pub use config::{Config, Mode, Timeouts};
pub use edit::{Edit, Renumbering, Replacement};
pub use flow::{Counters, Doubt, Flow, Proto, Unseen};
pub use helper::Helper;
pub use index::Handle;
pub use key::{Direction, Tuple, Zone, has_ports};
pub use listing::{Listed, Listing, ListingError};
pub use second::SECOND;
pub use status::{Side, Status};
pub use table::TableStats;
pub use told::{Alive, Life};
pub use tracker::{
    AnswerKind, Attachment, Before, Confirmation, EntryHook, InStates, Part, Proxy, Template,
    Tracker, Visit, answerable, answered,
};
pub use view::{Certainty, CtState, CtView, Space, States, Taken};
pub use wanted::{Prefix, Wanted};
