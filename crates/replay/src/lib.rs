//! Captures against rules: what happened to every packet, and why.
//!
//! [`run::replay`] feeds captures to the one handler and counts, [`report`] shows what came of it,
//! [`why`] tells one packet's story, [`cases`] holds rules to what a file of cases expects of them.
#![forbid(unsafe_code)]

pub mod cases;
pub mod demo;
mod error;
mod frames;
mod input;
mod near;
mod recorder;
pub mod report;
mod rules_file;
pub mod run;
pub mod shell;
pub mod spec;
pub mod why;

pub use error::Error;
pub use rules_file::RulesFile;
