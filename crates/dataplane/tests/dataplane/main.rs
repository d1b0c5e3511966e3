//! The handler, packet by packet, and publishing under threads.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod answers;
mod bridges;
mod early;
mod egress;
mod follow;
mod fragments;
mod ftp;
mod full_table;
mod given_up;
mod headers;
mod nat;
mod observed;
mod publish;
mod recorded;
mod shared;
mod taken;
mod ways;

use rules::eval::Nobody;
