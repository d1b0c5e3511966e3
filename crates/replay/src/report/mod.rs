//! The result of a replay: the numbers, and the ways to show them.

mod changes;
mod contradictions;
pub(crate) mod counts;
mod either;
pub mod examples;
mod given;
mod groups;
mod html;
mod json;
mod known;
mod listed;
mod maybes;
mod next;
mod reach;
mod result;
mod saved;
mod skips;
mod text;
pub mod timeline;
mod unseen;

pub use counts::{Count, VerdictCounts};
pub(crate) use html::escape;
pub(crate) use json::ct_name;
pub(crate) use next::walk_flags;
pub use reach::NeverHit;
pub use result::{Capture, DropReasons, Listed, Listing, Report, Sightings, Skipped, Soundness};
pub(crate) use result::{UnknownReason, ways};
pub use saved::{SavedFile, saved_files};
pub use text::Style;
pub(crate) use text::duration;
