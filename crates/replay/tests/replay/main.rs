//! Replays: the same whatever the threads and layouts, the page that shows them, packet specs.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod classbench;
mod copies;
mod described;
mod either;
mod layouts;
mod lines;
mod listings;
mod logged;
mod not_given;
mod owned;
mod page;
mod recorded;
mod shards;
mod spec;
mod threads;
mod traced;
