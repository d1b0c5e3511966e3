//! `tamis-cloud`: the servers of an overlay with names: it enrols devices (AS), knows which nodes are there and who may reach
//! whom (NMS), and relays what they seal for each other (TRS), in one process, or each in one of its own.
//! `docs/cloud.md` is its book.
//!
//! Contract: the protocol is in `overlay`; here are its sockets, its clock and its disk. What it acknowledges is on disk.
//! It never has a key of traffic between nodes.
#![forbid(unsafe_code)]

mod authority;
mod charge;
mod clock;
mod command;
mod config;
mod control;
mod directories;
mod etcd;
mod identities;
mod overview;
mod page;
mod paths;
mod peers;
mod policy;
mod serve;
mod service;
mod store;
mod streams;
mod trs;
mod workers;

use std::process::ExitCode;

/// Exit code for errors: the configuration or the command is wrong, or the cloud refuses.
const WRONG: u8 = 2;

fn main() -> ExitCode {
    command::run().unwrap_or_else(|error| {
        eprintln!("tamis-cloud: {}", packet::visible::word(&format!("{error:#}")));
        ExitCode::from(WRONG)
    })
}
