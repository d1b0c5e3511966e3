//! The handler, packet by packet, and publishing under threads.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod answers;
mod early;
mod ftp;
mod full_table;
mod given_up;
mod nat;
mod publish;
mod ways;
