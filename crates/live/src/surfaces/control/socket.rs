//! [`Control`]: a control socket that is listened on.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use pktio::file::FileId;
use rustix::process::geteuid;

use super::folder;
use crate::config::{ConfigError, Named, Settings};

/// A listening socket. Its file is removed with this, unless another one has its name by then.
#[derive(Debug)]
pub(crate) struct Control {
    pub(super) listener: UnixListener,
    socket: PathBuf,
    file: FileId,
}

impl Control {
    /// Listens at a path. Replaces a socket that nobody listens at any more, and nothing else.
    ///
    /// # Errors
    /// Others may replace it, another run listens there, or something else is in its place.
    pub(crate) fn open(socket: &Path) -> io::Result<Self> {
        folder::check(socket, geteuid().as_raw())?;
        if is_left(socket)? {
            fs::remove_file(socket)?;
        }
        let listener = UnixListener::bind(socket)?;
        let control = Self { listener, socket: socket.to_owned(), file: FileId::of(socket) };
        fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
        control.listener.set_nonblocking(true)?;
        Ok(control)
    }
}

/// Refuses a place where no control socket can be. A folder that is missing may be made before the run starts, as systemd and
/// `tamis tunnel` make theirs.
///
/// # Errors
/// Others may replace the socket, or something else is there.
pub(crate) fn check(settings: &Settings) -> Result<(), ConfigError> {
    let Some(Named { path, at }) = &settings.socket else { return Ok(()) };
    let safe = folder::check(path, geteuid().as_raw());
    match safe.and_then(|()| is_there(path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(settings.refuse(*at, format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Whether a socket exists there.
///
/// # Errors
/// Something else is there.
fn is_there(socket: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(socket) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    let what = "expected a socket, or nothing yet, found something else, which stays";
    match found.file_type().is_socket() {
        true => Ok(true),
        false => Err(io::Error::new(ErrorKind::AlreadyExists, what)),
    }
}

/// Whether a socket exists there that nobody listens at any more.
///
/// # Errors
/// Somebody listens, or something else is there.
fn is_left(socket: &Path) -> io::Result<bool> {
    if !is_there(socket)? {
        return Ok(false);
    }
    match UnixStream::connect(socket) {
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another tamis listens there")),
        Err(error) => Ok(error.kind() == ErrorKind::ConnectionRefused),
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if FileId::of(&self.socket).is_same(&self.file) {
            // Nothing is left to do where somebody removed it before.
            let _ = fs::remove_file(&self.socket);
        }
    }
}
