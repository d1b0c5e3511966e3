//! The control socket: one request in JSON on a line, one answer on a line, over a Unix socket.
//!
//! Contract: who is root, or the user that tamis runs as, may ask anything, and nobody else: the socket is made for its
//! owner alone, in a folder where others cannot put another one in its place, and who asks is looked at. Each client has a
//! thread, at most [`clients::MOST_CLIENTS`] at a time, [`clients::PATIENCE`] for its request and a line of
//! [`line::LONGEST`] bytes; one more takes the place of who is silent, or is told that all are busy. None of them can hold
//! up a frame, nor another client.

mod carried_out;
mod client;
mod clients;
mod flows;
mod line;
mod lists;
mod peers;
mod request;
mod rules;
mod server;
mod stream;
mod words;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::live::Live;
use super::{RunError, socket_error};

pub(super) use carried_out::answer_to_line;
pub use client::{ask, follow};
pub use lists::MOST_CHANGES;
pub use request::{NewPeer, Refusal, RefusalKind, Request, Watch};
pub(super) use server::Serving;
pub use words::{BanAction, FlowWords};

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
        is_safe(folder_of(socket))?;
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

fn folder_of(socket: &Path) -> &Path {
    let folder = socket.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Whether others cannot put a socket of theirs in the place of one in this folder.
fn is_safe(folder: &Path) -> io::Result<()> {
    const OTHERS_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & OTHERS_WRITE == 0 || mode & STICKY != 0 {
        return Ok(());
    }
    let what = format!("others may write to its folder: chmod o-w {}", folder.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, what))
}

impl Drop for Control {
    fn drop(&mut self) {
        // Nothing is left to do where somebody removed it before.
        let _ = fs::remove_file(&self.socket);
    }
}
