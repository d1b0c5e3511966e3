//! [`Parent`]: started before anything is opened, and asked one thing at a time.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use live::config::{Privileges, Reopened, Settings};
use pktio::{Opener, XdpMode, XdpSockets};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::message::{Request, Told, answered, ask, sockets_of};

/// How long it may take over an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How long it may take to start.
const TO_START: Duration = Duration::from_secs(10);

/// The process that opens devices.
#[derive(Debug)]
pub(crate) struct Parent {
    /// Locked for each request, so that there is one at a time.
    pub(super) socket: Mutex<OwnedFd>,
    pub(super) is_lost: AtomicBool,
    /// Nobody waits for the parent's end: it ends with the run.
    pub(super) _process: Child,
}

impl Parent {
    /// Starts it, for what a run may ask of it; it is ready then.
    ///
    /// # Errors
    /// It does not start, or cannot give up what it does not need where that is required.
    pub(crate) fn start(settings: &Settings, reopened: &Reopened) -> Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (own, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .context("socketpair")?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("tamis").arg("parent").stdin(its).stdout(Stdio::null());
        command.args(reopened.packet_sockets.then_some("--packet-sockets"));
        command.args(reopened.tuns.iter().map(|name| format!("--tun={name}")));
        command.args(reopened.xdps.iter().map(|name| format!("--xdp={name}")));
        command.args(reopened.links.iter().map(|name| format!("--link={name}")));
        let is_required = settings.privileges == Privileges::Required;
        command.args(is_required.then_some("--required"));
        let process = command.spawn().context("/proc/self/exe")?;
        if !reopened.xdps.is_empty() {
            lift_limit_of_memory();
        }
        // It has its own end now, and this process has let go of it: what it ends is seen.
        drop(command);
        set_socket_timeout(&own, Timeout::Recv, Some(TO_START)).context("SO_RCVTIMEO")?;
        if !answered(&own).is_ok_and(|answer| answer.is_ok()) {
            bail!("the process that opens devices again does not start");
        }
        set_socket_timeout(&own, Timeout::Recv, Some(PATIENCE)).context("SO_RCVTIMEO")?;
        Ok(Self { socket: Mutex::new(own), is_lost: AtomicBool::new(false), _process: process })
    }

    fn ask(&self, request: Request<'_>) -> io::Result<Told> {
        if self.is_lost.load(Ordering::Relaxed) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(&*socket, request).and_then(|()| answered(&*socket));
        // An answer that comes later would be taken for that to another request.
        self.is_lost.store(answer.is_err(), Ordering::Relaxed);
        answer?.map_err(io::Error::other)
    }
}

impl Opener for Parent {
    fn packet_socket(&self) -> io::Result<OwnedFd> {
        self.ask(Request::PacketSocket)?.0.pop().ok_or_else(no_descriptor)
    }

    fn tun_queue(&self, name: &str, is_only: bool) -> io::Result<(OwnedFd, String)> {
        let (mut queues, name) = self.ask(Request::TunQueue { name, is_only })?;
        Ok((queues.pop().ok_or_else(no_descriptor)?, name))
    }

    fn xdp_sockets(
        &self,
        name: &str,
        mode: XdpMode,
        queues: u16,
        channels: u32,
    ) -> io::Result<XdpSockets> {
        let answer = self.ask(Request::XdpSockets { name, mode, queues, channels })?;
        sockets_of(answer)
            .filter(|of| of.sockets.len() == usize::from(queues))
            .ok_or_else(no_descriptor)
    }

    fn set_up(&self, name: &str, is_up: bool) -> io::Result<()> {
        self.ask(Request::SetUp { name, is_up }).map(drop)
    }

    fn is_there(&self) -> bool {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let mut polled = [PollFd::new(&*socket, PollFlags::empty())];
        let is_closed = poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        if is_closed {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        !self.is_lost.load(Ordering::Relaxed)
    }
}

/// Memory of AF_XDP stays in place: without `CAP_IPC_LOCK`, as it is once a device comes back, a limit has to allow it.
/// Under a limit that may not be raised such a device has shorter rings.
fn lift_limit_of_memory() {
    let most = getrlimit(Resource::Memlock).maximum;
    let lifted = [None, most].map(|limit| Rlimit { current: limit, maximum: limit });
    let _ = lifted.into_iter().find(|limit| setrlimit(Resource::Memlock, *limit).is_ok());
}

fn no_descriptor() -> io::Error {
    io::Error::other("no descriptor came")
}
