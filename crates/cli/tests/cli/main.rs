//! The binary as a user meets it: its files, its text, its exit codes, and what it does with bad input.
#![allow(clippy::unwrap_used)]

mod corpus;
mod counters;
mod demo;
mod hostile;
mod ran;
mod readme;
mod refusals;
mod replay;
mod streams;
mod why;
