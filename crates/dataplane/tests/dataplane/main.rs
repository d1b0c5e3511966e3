//! The handler, packet by packet, and publishing under threads.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod answers;
mod early;
mod egress;
mod follow;
mod ftp;
mod full_table;
mod given_up;
mod headers;
mod journal;
mod live;
mod nat;
mod observed;
mod publish;
mod shared;
mod ways;

/// An observer that sees nothing: one for all tests, since each kind is a packet path of its own to compile.
struct Nobody;

impl rules::eval::Observer for Nobody {}
impl dataplane::Observer for Nobody {}
