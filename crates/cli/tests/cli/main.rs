//! The binary as a user meets it: its files, its text, its exit codes, and what it does with bad input.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod bans;
mod cases;
mod command;
mod convert;
mod corpus;
mod counters;
mod demo;
mod devices;
mod files;
mod forged;
mod gates;
mod host;
mod hostile;
mod jobs;
mod live;
mod near;
mod outputs;
mod programs;
mod ran;
mod readme;
mod record;
mod refusals;
mod replay;
mod review;
mod select;
mod shell;
mod snapshot;
mod streams;
mod vs;
mod why;
mod wire;
