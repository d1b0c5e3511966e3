//! The binary as a user meets it: its files, its text, its exit codes, and what it does with bad input.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod bans;
mod campaign;
mod cases;
mod command;
mod confined;
mod confined_workers;
mod convert;
mod corpus;
mod counters;
mod demo;
mod devices;
mod dpdk;
mod files;
mod follow;
mod forged;
mod gates;
mod host;
mod hostile;
mod hosts;
mod java;
mod java_upcalls;
mod jobs;
mod killed;
mod lint;
mod lists;
mod live;
mod metrics;
mod near;
mod outputs;
mod packaging;
#[cfg(target_os = "linux")]
mod parent;
mod programs;
mod ran;
mod readme;
mod record;
mod refusals;
mod replay;
mod restart;
mod review;
mod revisions;
mod select;
mod shadow;
mod shell;
mod snapshot;
mod started;
mod streams;
#[cfg(target_os = "linux")]
mod tunnel;
mod vlan;
mod vs;
mod watch;
mod why;
mod wire;
