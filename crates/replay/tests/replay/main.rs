//! Replays: the same whatever the threads and layouts, the page that shows them, packet specs.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod either;
mod layouts;
mod owned;
mod page;
mod shards;
mod spec;
mod threads;
