//! The packet handling of the fifth study, in both of its forms, around the protocol that tamis has: one system call, one
//! packet and one turn at a time.
//!
//! [`Form::Conventional`] is its starting point: one thread does everything, and what is known of peers is inside it.
//! [`Form::Mutex`] is what it proposes: a stager gives packets their order and each a lock, workers made beforehand seal
//! and open them, and a sender takes them in order, each once its lock is free.
//!
//! Contract: for `tamis-bench tunnel`. An end runs until its process is ended; its device has no address yet when it is
//! ready. Packets that come before a handshake is done are dropped.
//! Source: "Implementation and Evaluation of CYPHONIC client" (GCCE 2023), slides 5, 10, 14 and 15.

mod conventional;
mod end;
mod mutex;

use std::io;

use end::End;

pub use end::{Peer, Settings};

/// How packets are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By one thread, one after the other.
    Conventional,
    /// By workers, a lock for each packet.
    Mutex,
}

impl Form {
    /// All of them, as figures name them.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Conventional, "conventional"), (Self::Mutex, "mutex")];
}

/// Makes the device, says that it is there, and handles packets for good.
///
/// # Errors
/// There is no device, no socket or no randomness, or one of them fails.
pub fn run(form: Form, settings: &Settings, ready: impl FnOnce()) -> io::Result<()> {
    let end = End::new(settings)?;
    ready();
    match form {
        Form::Conventional => conventional::run(end),
        Form::Mutex => mutex::run(end),
    }
}
