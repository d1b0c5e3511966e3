//! A packet's walk through the hooks: tables, tracking, time to live, and what is left of its verdicts.
//!
//! [`crate::hooks`] says which hooks in which order. [`Walk`] stands at one after the other (`packet_walk`), with how far the
//! packet has come (`progress`); `tables` says which tables stand there, `nat` what the nat chains decide.

mod answer;
mod aside;
mod below;
mod doubtful;
mod foreign;
mod foreign_turn;
mod hidden;
mod linear;
mod nat;
mod output;
mod packet_walk;
mod passing;
mod progress;
mod size;
mod tables;
mod taken;
mod track;
mod ways;

pub(crate) use packet_walk::{Below, Walk};
pub(crate) use size::Sizes;
pub(crate) use tables::Tables;
pub(crate) use taken::{Doubt, Sure};
