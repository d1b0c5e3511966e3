//! Benchmarks: tamis and its peers on the same work in the same run.
//!
//! Contract: a figure is the median of several runs, its peer's runs taken in turn with ours; what is
//! missing is listed with the reason. Each benchmark is a function that gives a [`Document`].

pub mod access;
mod chart;
pub mod document;
pub mod java;
#[cfg(target_os = "linux")]
pub mod live;
pub mod replay;
pub mod rules;
mod shape;
mod svg;
#[cfg(target_os = "linux")]
pub mod tunnel;

pub use document::{Document, Machine, Missing, Peer, Row, Runs};
