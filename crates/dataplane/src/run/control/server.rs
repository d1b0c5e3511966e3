//! Clients, each on a thread of its own.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::{net::sockopt::socket_peercred, process::geteuid};

use super::super::live::Live;
use super::super::parker::Parker;
use super::super::revisions::Peer;
use super::Control;
use super::carried_out;
use super::clients::{Clients, PATIENCE, Served, busy, refuse};
use super::line;
use super::request::{Refusal, Request};
use super::stream;

/// How long a client may take for all of its answer.
const READING: Duration = Duration::from_secs(10);

/// How long clients that are served are waited for at the end.
const PARTING: Duration = Duration::from_millis(200);

/// A thread that accepts clients. It ends with this, and with the clients that are served then, if they are
/// done within [`PARTING`]: who asks for the end has an answer, too.
#[derive(Debug)]
pub(in crate::run) struct Serving {
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<Clients>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(super) fn start(control: Control, live: &Arc<Live>) -> io::Result<Self> {
        let (end, parker) = (Arc::new(AtomicBool::new(false)), Arc::new(Parker::new()?));
        let clients = Arc::<Clients>::default();
        let accepting = Accepting {
            control,
            live: Arc::clone(live),
            end: Arc::clone(&end),
            parker: Arc::clone(&parker),
            clients: Arc::clone(&clients),
        };
        let builder = thread::Builder::new().name("control".to_owned());
        let thread = builder.spawn(move || accepting.run())?;
        Ok(Self { end, parker, clients, thread: Some(thread) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        self.parker.wake_by_ref();
        if let Some(thread) = self.thread.take() {
            // A panic of it has been told.
            let _ = thread.join();
        }
        let until = Instant::now() + PARTING;
        while self.clients.have_answers_to_come() && Instant::now() < until {
            thread::sleep(PARTING / 100);
        }
    }
}

struct Accepting {
    control: Control,
    live: Arc<Live>,
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<Clients>,
}

impl Accepting {
    fn run(&self) {
        while !self.end.load(Ordering::Acquire) {
            match self.control.listener.accept() {
                Ok((client, _)) => self.serve(client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.parker.park(&[self.control.listener.as_fd()], None);
                }
                // No descriptors are left, or the client is gone: later there may be some.
                Err(_) => self.parker.park(&[], Some(PATIENCE / 10)),
            }
        }
    }

    fn serve(&self, client: UnixStream) {
        let who = match may_ask(&client) {
            Ok(who) => who,
            Err(refusal) => return refuse(&client, &refusal),
        };
        let Some(mut served) = self.admit(client) else { return };
        let (live, stream) = (Arc::clone(&self.live), Arc::clone(&served.stream));
        let builder = thread::Builder::new().name("client".to_owned());
        let thread = builder.spawn(move || {
            // One that goes away without its answer needs none.
            let _ = answer(&mut served, who, &live);
        });
        if thread.is_err() {
            refuse(&stream, &busy());
        }
    }

    /// Waits for a place. Those who come meanwhile wait, too, before they are accepted.
    fn admit(&self, mut client: UnixStream) -> Option<Served> {
        let until = Instant::now() + PATIENCE;
        loop {
            client = match self.clients.admit(client) {
                Ok(served) => return Some(served),
                Err(client) => client,
            };
            if Instant::now() >= until || self.end.load(Ordering::Acquire) {
                refuse(&client, &busy());
                return None;
            }
            self.parker.park(&[], Some(PATIENCE / 200));
        }
    }
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

/// Who asks is not known here: the socket's mode has to do.
#[cfg(not(target_os = "linux"))]
fn may_ask(_: &UnixStream) -> Result<Option<Peer>, Refusal> {
    Ok(None)
}

fn answer(served: &mut Served, who: Option<Peer>, live: &Live) -> io::Result<()> {
    let client = Arc::clone(&served.stream);
    client.set_nonblocking(false)?;
    let line = line::read(served, PATIENCE)?;
    served.waits()?;
    let request = line.and_then(|line| Request::from_line(&line));
    if let Ok(Request::Watch(asked)) = &request {
        // It reads for as long as it likes, unless others want its place.
        served.reads()?;
        return stream::watch(&client, live, asked);
    }
    let answer = carried_out::answer(request, who, live);
    served.reads()?;
    write(&client, format!("{answer}\n").as_bytes(), Instant::now() + READING)
}

/// Writes all of this, however slowly it is read, until some time.
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
