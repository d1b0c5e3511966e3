//! The control socket: one request in JSON on a line, one answer on a line, over a Unix socket.
//!
//! Contract: root, and the user that tamis runs as, may ask anything, and nobody else: the socket is made for its owner
//! alone, in a folder where others cannot put another one in its place ([`folder`]), and both ends check each other's
//! user. Each client has a thread, a limited number at a time, [`server::PATIENCE`] for its request and a line of
//! [`line::LONGEST`] bytes; one more takes the place of a silent client, or gets the answer that all are busy. None of
//! them can hold up a frame, nor another client.

mod client;
mod folder;
mod line;
mod server;
mod socket;
mod stream;

pub use client::{ask, follow};
pub(crate) use socket::{Control, check};
