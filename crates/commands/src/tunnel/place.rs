//! Where tunnels that are up are found: next to its control socket each has a file that its `up` keeps locked while the
//! host is not as it was before. Only one process holds the lock, so a tunnel is up once, and waiting for the lock is
//! waiting for the tunnel's end.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use live::config::tunnel::{FOLDER, TunnelSettings, is_name};
use rustix::fs::OFlags;

/// How often it is looked whether a tunnel is down.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of a process's number.
const LONGEST: u64 = 16;

/// How often a lock is asked for that somebody may only be looking at.
const TRIES: usize = 5;

/// The place of a tunnel that is up, or is being brought up. It goes with this.
pub(super) struct Place {
    lock: File,
    path: PathBuf,
    control: PathBuf,
}

impl Place {
    /// Takes the place of a tunnel with this control socket.
    ///
    /// # Errors
    /// It is up already, or the folder is not there.
    pub(super) fn claim(control: &Path) -> Result<Self> {
        make_folder(control)?;
        let path = lock_of(control);
        let shown = || path.display().to_string();
        for _ in 0..TRIES {
            let lock = open(&path).with_context(shown)?;
            match lock.try_lock() {
                // Who had it may have removed it meanwhile.
                Ok(()) if is_same(&lock, &path) => {
                    if lock.metadata()?.len() > LONGEST {
                        bail!(
                            "{}: expected a lock of a tunnel, found another file",
                            path.display()
                        );
                    }
                    let mut place = Self { lock, path, control: control.to_owned() };
                    place.lock.set_len(0)?;
                    write!(place.lock, "{}", std::process::id())?;
                    return Ok(place);
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
                Err(TryLockError::Error(error)) => return Err(error).with_context(shown),
            }
        }
        bail!("{} is held: the tunnel is up already (tamis tunnel status)", path.display())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Whatever cannot be removed does not keep the next one from coming up. A socket is left by who was killed.
        if is_left(&self.control) {
            let _ = fs::remove_file(&self.control);
        }
        let _ = fs::remove_file(&self.path);
        if self.path.starts_with(FOLDER) {
            // It goes with the last one: it is empty then.
            let _ = fs::remove_dir(FOLDER);
        }
    }
}

/// Whether nobody listens at a socket any more.
fn is_left(control: &Path) -> bool {
    let is_socket = fs::symlink_metadata(control).is_ok_and(|it| it.file_type().is_socket());
    let connected = UnixStream::connect(control);
    is_socket && connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Makes the folder of a control socket, if it is the usual one.
///
/// # Errors
/// It cannot be made.
pub(super) fn make_folder(control: &Path) -> Result<()> {
    if control.starts_with(FOLDER) && !Path::new(FOLDER).is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(FOLDER).context(FOLDER)?;
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits() as i32);
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn is_same(lock: &File, path: &Path) -> bool {
    match (lock.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn lock_of(control: &Path) -> PathBuf {
    control.with_extension("lock")
}

/// The control socket of a tunnel that is named, itself or by its configuration.
pub(super) fn control(which: &str) -> Result<PathBuf> {
    match is_name(which) && !Path::new(which).is_file() {
        true => Ok(TunnelSettings::control_of(which)),
        false => Ok(TunnelSettings::read(Path::new(which))?.control),
    }
}

/// The control sockets of all tunnels that are up and have one in the usual folder.
pub(super) fn all() -> Vec<PathBuf> {
    let paths = fs::read_dir(FOLDER).into_iter().flatten().flatten().map(|entry| entry.path());
    let locks = paths.filter(|path| path.extension().is_some_and(|ending| ending == "lock"));
    let mut up: Vec<PathBuf> =
        locks.filter(|lock| is_held(lock)).map(|lock| lock.with_extension("sock")).collect();
    up.sort();
    up
}

fn is_held(lock: &Path) -> bool {
    File::open(lock)
        .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Whether the tunnel with this control socket is up, or not yet down.
pub(super) fn is_up(control: &Path) -> bool {
    is_held(&lock_of(control))
}

/// The process whose tunnel it is.
pub(super) fn process(control: &Path) -> Option<i32> {
    let mut text = String::new();
    File::open(lock_of(control)).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Waits until it is down; false if that takes longer than this.
pub(super) fn is_down_within(control: &Path, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    while is_up(control) {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}
