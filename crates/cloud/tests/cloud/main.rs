//! The cloud and nodes as a user runs them.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod apart;
mod authority;
mod demo;
mod direct;
mod etcd;
mod families;
mod killed;
mod namespaces;
mod pairs;
mod policed;
mod reached;
mod relays;
mod routers;
mod speed;
mod tcp;
mod two;
