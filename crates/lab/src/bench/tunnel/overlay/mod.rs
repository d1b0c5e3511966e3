//! What is measured: implementations of an overlay that run at both ends, each told the same keys, addresses and peers.
//!
//! Contract: [`Overlay::start`] leaves a device with its address that is up, at one end; the ends shake hands when the
//! first packet goes. What was started ends with its [`Daemon`].

mod form;
mod processes;
mod tamis;
mod uapi;
mod veth;

use std::fmt;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tunnel::{PrivateKey, PublicKey};

use super::namespace::Namespace;
use crate::bench::live::counts::{resident_together, spent_by};
pub use form::COMMAND;
pub(super) use form::{READY, StudyForm};
pub(super) use tamis::Tamis;
pub(super) use uapi::{PEERS, WireGuard};
pub(super) use veth::{VETH, Veth};

/// Bytes of the greatest inner packet.
pub(super) const MTU: u16 = 1420;
/// All inner addresses.
pub(super) const INNER: &str = "10.77.0.0/16";
/// Until a daemon that was asked to end is ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// An implementation.
pub(super) trait Overlay: Sync {
    /// As figures name it.
    fn name(&self) -> &'static str;

    /// How many workers it was told to have, where it was.
    fn workers(&self) -> Option<usize> {
        None
    }

    /// Starts one end.
    fn start(&self, end: &End, place: &Namespace) -> io::Result<Daemon>;

    /// Has an end forget a peer.
    fn forget(&self, daemon: &Daemon, peer: &PublicKey) -> io::Result<()>;
}

/// One end, as its configuration says.
#[derive(Clone)]
pub(super) struct End {
    /// The device of the overlay.
    pub(super) device: String,
    pub(super) key: PrivateKey,
    /// Its inner address, of a network of all.
    pub(super) address: Ipv4Addr,
    /// Its outer port; 0 for any.
    pub(super) listen: u16,
    /// How outer packets go, as a route of ip(8) has it.
    pub(super) way: String,
    pub(super) peers: Vec<Peer>,
}

/// Who an end talks to.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) key: PublicKey,
    pub(super) endpoint: Option<SocketAddr>,
    /// Its inner address.
    pub(super) address: Ipv4Addr,
    /// Seconds; 0 for none.
    pub(super) keepalive: u16,
}

/// A running end; it ends with it.
#[derive(Default)]
pub(super) struct Daemon {
    child: Option<Child>,
    /// Where it is asked for more.
    socket: Option<PathBuf>,
    /// Where its configuration lies.
    folder: Option<TempDir>,
    /// What it says, which it must be able to.
    output: Option<BufReader<ChildStdout>>,
}

impl Daemon {
    /// A process, with the socket that it listens at, and its folder.
    fn new(child: Child, socket: Option<PathBuf>, folder: Option<TempDir>) -> Self {
        Self { child: Some(child), socket, folder, output: None }
    }

    /// Where it is asked for more.
    fn socket(&self) -> io::Result<&Path> {
        self.socket.as_deref().ok_or_else(|| io::Error::other("no socket"))
    }

    /// Whether there is no process.
    pub(super) fn is_nobody(&self) -> bool {
        self.child.is_none()
    }

    /// Its process, and those that it has started.
    fn processes(&self) -> io::Result<Vec<u32>> {
        self.child.as_ref().map_or(Ok(Vec::new()), |child| processes::with_children(child.id()))
    }

    /// Nanoseconds that it was on a processor, with all its threads.
    pub(super) fn spent(&self) -> io::Result<u64> {
        self.processes()?.into_iter().map(spent_by).sum()
    }

    /// Its bytes that lie in memory.
    pub(super) fn resident(&self) -> io::Result<u64> {
        resident_together(&self.processes()?)
    }

    /// How many threads it has.
    pub(super) fn threads(&self) -> io::Result<usize> {
        let count = |id: u32| Ok(std::fs::read_dir(format!("/proc/{id}/task"))?.count());
        self.processes()?.into_iter().map(count).sum()
    }

    /// Ends it without a warning, as a power cut would.
    pub(super) fn kill(mut self) -> io::Result<()> {
        let all = self.processes()?;
        all.iter().for_each(|id| signal(*id, Signal::KILL));
        if let Some(child) = &mut self.child {
            child.wait()?;
        }
        // Devices go with the last of them.
        while all.iter().any(|id| processes::is_alive(*id)) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// What it says if it has ended.
    fn ended(&mut self) -> io::Result<Option<String>> {
        let Some(child) = &mut self.child else { return Ok(None) };
        Ok(child.try_wait()?.map(|status| format!("it ends with {status}")))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            end(child);
        }
        if let Some(socket) = &self.socket {
            // Only what was killed leaves one.
            let _ = std::fs::remove_file(socket);
        }
        drop(self.folder.take());
    }
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("child", &self.child).finish_non_exhaustive()
    }
}

/// Asks a process to end, and then ends it.
fn end(child: &mut Child) {
    signal(child.id(), Signal::TERM);
    let since = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && since.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Signals a process, which may have ended.
fn signal(id: u32, signal: Signal) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, signal));
}

/// Waits until something is there.
fn wait_for(
    daemon: &mut Daemon,
    what: &str,
    mut is_there: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    let since = Instant::now();
    while !is_there()? {
        if let Some(ended) = daemon.ended()? {
            return Err(io::Error::other(ended));
        }
        if since.elapsed() > Duration::from_secs(10) {
            return Err(io::Error::other(format!("no {what} after 10 seconds")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A command that says nothing.
fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
