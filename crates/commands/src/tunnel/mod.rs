//! `tamis tunnel`: an end of the overlay, and its peers. This module has the commands and what all of them share; each
//! group of them is in a submodule.
//!
//! Contract: `up` is two processes. The first process makes the host ready for the tunnel and undoes that
//! (`host`); the other one (`serve`) moves packets, and has given up all that it does not need for it. Whichever ends,
//! the other one does, and the host is as it was.

mod ask;
mod bridge;
mod command;
#[cfg(target_os = "linux")]
mod demo;
mod down;
mod host;
mod import;
mod join;
mod keys;
mod names;
mod peers_text;
mod place;
mod reach;
mod serve;
mod settings;
mod speed;
mod up;
mod why;

pub(crate) use command::{TunnelArgs, run};
#[cfg(fuzzing)]
pub(crate) use names::hostile;
