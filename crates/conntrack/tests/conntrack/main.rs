//! Whole conversations through connection tracking and defragmentation, built packet by packet, and any
//! packets at all.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod any;
mod ask;
mod cost;
mod doubt;
mod fragments;
mod full;
mod helpers;
mod icmp;
mod lifecycle;
mod net;
mod other_protocols;
mod proxied;
mod restart;
mod tcp;
mod unseen;
