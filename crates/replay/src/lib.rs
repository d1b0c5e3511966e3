//! Captures against rules: what happened to every packet, and why.
//!
//! [`run::replay`] feeds captures to the one handler and counts, [`report`] shows the result,
//! [`why`] tells one packet's story, [`cases`] holds rules to what a file of cases expects of them.
#![forbid(unsafe_code)]

mod alone;
mod annotate;
pub mod bans_file;
mod batch;
pub mod cases;
pub mod changes;
pub mod contradictions;
mod decider;
pub mod demo;
mod distinct;
mod error;
mod evaluated;
mod filter;
mod gate;
pub mod groups;
mod input;
pub mod json_text;
mod lane;
mod lines;
mod list;
mod logged;
mod named_file;
mod near;
pub mod nftables;
mod outputs;
mod packets;
mod reach;
mod recorded;
mod recorder;
pub mod report;
mod reports;
mod room;
mod rules_file;
pub mod rules_json;
pub mod run;
mod select;
mod setup;
pub mod shell;
mod sink;
mod source;
pub mod spec;
mod split;
mod spotter;
mod stoppable;
mod target;
mod threads;
mod time_text;
pub mod walk;
mod watch;
pub mod why;

pub use alone::Alone;
pub use dataplane::Moment;
pub use decider::{Decider, DeciderPlace};
pub use error::{Error, without_numbers};
pub use filter::Filter;
pub use input::read_text;
pub use room::Room;
pub use rules_file::RulesFile;
pub use select::Selection;
pub use source::{CaptureName, Numbers};
pub use split::may_write;
pub use target::Target;
