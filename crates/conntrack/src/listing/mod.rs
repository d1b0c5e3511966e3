//! [`Listing`]: the table as `conntrack -L` prints it, also with `-o extended`, or as `/proc/net/nf_conntrack` has it;
//! and as tamis writes its own, over a restart.
//!
//! Contract: every line is a flow, or blank, or the tool's own summary. What a line says beyond what is known here
//! (`use`, `id`, `secctx`, …) is passed over; what it lacks is an error with line and column. What is written reads as
//! the same listing. It begins with a heading and the time that its timeouts count from, and its lines have more
//! words (`kept`), which only a listing with that heading is searched for.
//!
//! Source: conntrack-tools 1.4.7 and Linux 6.18 `nf_conntrack_standalone.c`, as printed.

mod kept;
mod listed;
mod read;
mod write;

pub(crate) use kept::Kept;
pub(crate) use listed::State;
pub use listed::{Listed, Listing};
pub use read::ListingError;
pub(crate) use write::name;
