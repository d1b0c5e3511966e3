//! The control socket: one request in JSON on a line, one answer on a line, over a Unix socket.
//!
//! Contract: whoever may open the socket may ask anything; it is made for its owner alone. Each client has a thread, at
//! most [`server::MOST_CLIENTS`] at a time, [`server::PATIENCE`] for its request and a line of [`server::LONGEST`] bytes; one more is told that all are busy.
//! None of them can hold up a frame, nor another client.

mod carried_out;
mod client;
mod request;
mod server;
mod stream;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::live::Live;
use super::{RunError, socket_error};

pub use client::{ask, follow};
pub use request::{Refusal, RefusalKind, Request, Watch};
pub(super) use server::Serving;

/// A socket that is listened at. It is removed with this.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    socket: PathBuf,
}

impl Control {
    /// Listens at a path. A socket that nobody listens at any more is replaced.
    pub(super) fn open(socket: &Path) -> Result<Self, RunError> {
        Self::listen(socket).map_err(|source| socket_error(socket, source))
    }

    fn listen(socket: &Path) -> io::Result<Self> {
        let is_left = match UnixStream::connect(socket) {
            Ok(_) => {
                return Err(io::Error::new(ErrorKind::AddrInUse, "another tamis listens there"));
            }
            Err(error) => error.kind() == ErrorKind::ConnectionRefused,
        };
        if is_left {
            fs::remove_file(socket)?;
        }
        let listener = UnixListener::bind(socket)?;
        let control = Self { listener, socket: socket.to_owned() };
        fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
        control.listener.set_nonblocking(true)?;
        Ok(control)
    }

    /// Serves clients from now on.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn serve(self, live: &Arc<Live>) -> io::Result<Serving> {
        Serving::start(self, live)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Nothing is left to do where somebody removed it before.
        let _ = fs::remove_file(&self.socket);
    }
}
