//! The binary as a user meets it: its files, its text, its exit codes, and what it does with bad input.
#![allow(clippy::unwrap_used)]

mod cases;
mod convert;
mod corpus;
mod counters;
mod demo;
mod files;
mod forged;
mod gates;
mod hostile;
mod jobs;
mod near;
mod ran;
mod readme;
mod record;
mod refusals;
mod replay;
mod review;
mod shell;
mod snapshot;
mod streams;
mod why;
