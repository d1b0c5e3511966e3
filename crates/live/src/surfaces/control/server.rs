//! Serves clients, each on a thread of its own.

use std::io::{self, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::{net::sockopt::socket_peercred, process::geteuid};

use super::line::{self, Client};
use super::socket::Control;
use super::stream;
use crate::answers::{Refusal, RefusalKind};
use crate::api::parts::Parts;
use crate::api::request::Request;
use crate::api::requests;
use crate::rules::revisions::Peer;
use crate::surfaces::serving::{Door, Guest, Serving};

/// How long a client may take for all of its answer.
const READING: Duration = Duration::from_secs(10);

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(1);

/// The control socket of a run.
struct Served {
    control: Control,
    parts: Arc<Parts>,
}

impl Control {
    /// Serves clients from now on.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn serve(self, parts: &Arc<Parts>) -> io::Result<Serving<UnixStream>> {
        Serving::start(Served { control: self, parts: Arc::clone(parts) })
    }
}

impl Door for Served {
    type Client = UnixStream;
    const NAME: &'static str = "control";

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.control.listener.as_fd()
    }

    fn accept(&self) -> io::Result<UnixStream> {
        self.control.listener.accept().map(|(client, _)| client)
    }

    fn answer(&self, client: &mut Client) {
        match may_ask(&client.stream) {
            // A client that disconnects without its answer needs none.
            Ok(who) => drop(answer(client, who, &self.parts)),
            Err(refusal) => refuse(&client.stream, &refusal),
        }
    }
}

impl Guest for UnixStream {
    const MOST: usize = 32;

    fn send_away(&self) {
        let most = Self::MOST;
        let what = format!("{most} clients are served: expected one of them to end");
        refuse(self, &Refusal { kind: RefusalKind::Busy, what });
    }

    fn close(&self) {
        // A connection that is closed already needs nothing.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// Sends the reason to a client that is not served, if it listens.
fn refuse(mut client: &UnixStream, refusal: &Refusal) {
    let _ = client.set_nonblocking(true);
    let _ = writeln!(client, "{}", refusal.json());
}

/// Whether the client is root's, or of the user that tamis runs as: a socket's mode may be changed, and be open to others
/// before it is set.
#[cfg(target_os = "linux")]
fn may_ask(client: &UnixStream) -> Result<Option<Peer>, Refusal> {
    let own = geteuid();
    match socket_peercred(client) {
        Ok(peer) if peer.uid.is_root() || peer.uid == own => {
            let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
            Ok(Some(Peer { uid: peer.uid.as_raw(), pid }))
        }
        _ => {
            let own = own.as_raw();
            let what = format!("expected root, or user {own}, which runs tamis, to ask");
            Err(Refusal::refused(what))
        }
    }
}

/// The client's user is not known here: the socket's mode has to suffice.
#[cfg(not(target_os = "linux"))]
fn may_ask(_: &UnixStream) -> Result<Option<Peer>, Refusal> {
    Ok(None)
}

fn answer(served: &mut Client, who: Option<Peer>, parts: &Parts) -> io::Result<()> {
    let client = Arc::clone(&served.stream);
    client.set_nonblocking(false)?;
    let line = line::read(served, PATIENCE)?;
    served.waits()?;
    let request = line.and_then(|line| Request::from_line(&line));
    if let Ok(Request::Watch(asked)) = &request {
        // The client reads for as long as it likes, unless others want its place.
        served.reads()?;
        return stream::watch(&client, parts, asked);
    }
    let answer = requests::answer(request, who, parts);
    served.reads()?;
    write(&client, format!("{answer}\n").as_bytes(), Instant::now() + READING)
}

/// Writes all of this, however slowly it is read, until `until`.
fn write(mut client: &UnixStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_write_timeout(Some(left))?;
        let written = client.write(bytes)?;
        bytes = &bytes[written..];
    }
    Ok(())
}
