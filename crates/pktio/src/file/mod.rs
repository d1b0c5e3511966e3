//! The one opener of files that somebody names, and the [`Files`] of a command, kept apart.
//!
//! Contract: opening waits for nobody, unless a person named a pipe. What is no file is refused before it is opened, as
//! that alone may do something, and what is read has a bound. Where a file lies counts once its links are followed.
//!
//! Source: openat2(2), fifo(7).

mod id;
mod opening;

pub use id::{FileId, Files, place};
pub use opening::{LONGEST_TEXT, NamedBy, below, bounded, create_anew, open, read, read_text};
