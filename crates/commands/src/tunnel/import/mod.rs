//! `tamis tunnel import`: a configuration of wg-quick as one of `tamis tunnel up`.
//!
//! Contract: nothing that is there is written over, and where something is wrong nothing is left behind. What is written
//! is read back before this says so. What does not carry over is said, each in a line.

mod interface;
mod lines;
mod peers;
mod settings;

pub(crate) use settings::{ImportArgs, run};
