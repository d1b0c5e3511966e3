//! Clients, each on a thread of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::task::Wake;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::super::live::Live;
use super::super::parker::Parker;
use super::super::revisions::Peer;
use super::Control;
use super::carried_out::carry_out;
use super::request::{Refusal, RefusalKind, Request};

/// How long a client may take for its request, and for each part of its answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a request.
pub(super) const LONGEST: usize = 64 * 1024;

/// Bytes of a request that has the turn of large ones.
pub(super) const LARGEST: usize = 64 << 20;

/// How long a large request may take, once it has its turn.
pub(super) const PATIENCE_FOR_LARGE: Duration = Duration::from_secs(10);

/// Clients that are served at a time.
pub(super) const MOST_CLIENTS: usize = 32;

/// How long clients that are served are waited for at the end.
const PARTING: Duration = Duration::from_millis(200);

/// A thread that accepts clients. It ends with this, and with the clients that are served then, if they are
/// done within [`PARTING`]: who asks for the end has an answer, too.
#[derive(Debug)]
pub(in crate::run) struct Serving {
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(super) fn start(control: Control, live: &Arc<Live>) -> io::Result<Self> {
        let (end, parker) = (Arc::new(AtomicBool::new(false)), Arc::new(Parker::new()?));
        let clients = Arc::<AtomicUsize>::default();
        let accepting = Accepting {
            control,
            live: Arc::clone(live),
            end: Arc::clone(&end),
            parker: Arc::clone(&parker),
            clients: Arc::clone(&clients),
            large: Arc::default(),
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
        while self.clients.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            thread::sleep(PARTING / 100);
        }
    }
}

struct Accepting {
    control: Control,
    live: Arc<Live>,
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<AtomicUsize>,
    large: Arc<Large>,
}

/// The turn of large requests: there is the memory of one at a time.
type Large = Mutex<()>;

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
        let (live, served) = (Arc::clone(&self.live), Served::one_more(&self.clients));
        let large = Arc::clone(&self.large);
        let builder = thread::Builder::new().name("client".to_owned());
        let served = served.map(|served| {
            let client = client.try_clone();
            builder.spawn(move || {
                let _served = served;
                // One that goes away without its answer needs none.
                let _ = client.and_then(|client| answer(&client, &live, &large));
            })
        });
        if !matches!(served, Some(Ok(_))) {
            let busy = format!("{MOST_CLIENTS} clients are served: expected one of them to end");
            let refusal = Refusal { kind: RefusalKind::Busy, what: busy };
            let _ = client.set_nonblocking(true);
            let _ = writeln!(&client, "{}", refusal.json());
        }
    }
}

/// A client that is served.
struct Served(Arc<AtomicUsize>);

impl Served {
    fn one_more(clients: &Arc<AtomicUsize>) -> Option<Self> {
        let served = Self(Arc::clone(clients));
        (clients.fetch_add(1, Ordering::Relaxed) < MOST_CLIENTS).then_some(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(mut client: &UnixStream, live: &Live, large: &Large) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(PATIENCE))?;
    let answer = asked(client, large)?.and_then(|Line { request, turn }| {
        let answer = carry_out(request, peer(client), live);
        // Its text is gone with it.
        drop(turn);
        answer
    });
    let answer = answer.unwrap_or_else(|refusal| refusal.json());
    writeln!(client, "{answer}")
}

/// Who is at the other end, where the system says so.
#[cfg(target_os = "linux")]
fn peer(client: &UnixStream) -> Option<Peer> {
    let peer = rustix::net::sockopt::socket_peercred(client).ok()?;
    Some(Peer { uid: peer.uid.as_raw(), pid: peer.pid.as_raw_nonzero().get().unsigned_abs() })
}

/// Who is at the other end: not known here.
#[cfg(not(target_os = "linux"))]
fn peer(_: &UnixStream) -> Option<Peer> {
    None
}

/// What a client's line asks for.
struct Line<'l> {
    request: Request,
    /// Held for as long as a large request is there.
    turn: Option<MutexGuard<'l, ()>>,
}

/// Reads the client's line.
fn asked<'l>(mut client: &UnixStream, large: &'l Large) -> io::Result<Result<Line<'l>, Refusal>> {
    let (mut until, mut longest) = (Instant::now() + PATIENCE, LONGEST);
    let (mut line, mut turn) = (Vec::new(), None);
    let mut some = [0; 16 * 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if line.len() > longest && turn.is_none() {
            let Some(own) = turn_of(large, left) else { return Ok(Err(busy())) };
            (turn, longest, until) = (Some(own), LARGEST, Instant::now() + PATIENCE_FOR_LARGE);
            continue;
        }
        if left.is_zero() || line.len() > longest {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let read = client.read(&mut some)?;
        let end = some[..read].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&some[..end.unwrap_or(read)]);
        if end.is_some() || read == 0 {
            let line = String::from_utf8(line).map_err(io::Error::other)?;
            return Ok(Request::from_line(&line).map(|request| Line { request, turn }));
        }
    }
}

/// The turn of large requests, if it is free in time.
fn turn_of(large: &Large, patience: Duration) -> Option<MutexGuard<'_, ()>> {
    let until = Instant::now() + patience;
    loop {
        match large.try_lock() {
            Ok(turn) => return Some(turn),
            Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(PATIENCE / 100),
        }
    }
}

fn busy() -> Refusal {
    let what = format!("another request of more than {LONGEST} bytes is served: ask again");
    Refusal { kind: RefusalKind::Busy, what }
}
