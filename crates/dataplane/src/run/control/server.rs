//! Clients, each on a thread of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Wake;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::super::live::Live;
use super::super::parker::Parker;
use super::Control;
use super::carried_out::carry_out;
use super::request::{Refusal, RefusalKind, Request};
use super::stream;

/// How long a client may take for its request, and for each part of its answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a request.
pub(super) const LONGEST: usize = 64 * 1024;

/// Clients that are served at a time.
pub(super) const MOST_CLIENTS: usize = 32;

/// A thread that accepts clients. It ends with this; clients that are served then have their answer or not.
#[derive(Debug)]
pub(in crate::run) struct Serving {
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(super) fn start(control: Control, live: &Arc<Live>) -> io::Result<Self> {
        let (end, parker) = (Arc::new(AtomicBool::new(false)), Arc::new(Parker::new()?));
        let accepting = Accepting {
            control,
            live: Arc::clone(live),
            end: Arc::clone(&end),
            parker: Arc::clone(&parker),
            clients: Arc::default(),
        };
        let builder = thread::Builder::new().name("control".to_owned());
        let thread = builder.spawn(move || accepting.run())?;
        Ok(Self { end, parker, thread: Some(thread) })
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
    }
}

struct Accepting {
    control: Control,
    live: Arc<Live>,
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<AtomicUsize>,
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
        let (live, served) = (Arc::clone(&self.live), Served::one_more(&self.clients));
        let builder = thread::Builder::new().name("client".to_owned());
        let served = served.map(|served| {
            let client = client.try_clone();
            builder.spawn(move || {
                let _served = served;
                // One that goes away without its answer needs none.
                let _ = client.and_then(|client| answer(&client, &live));
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

fn answer(mut client: &UnixStream, live: &Live) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(PATIENCE))?;
    let line = line(client)?;
    let request = Request::from_line(&line);
    if let Ok(Request::Watch(asked)) = &request {
        return stream::watch(client, live, asked);
    }
    let answer = request.and_then(|request| carry_out(request, live));
    let answer = answer.unwrap_or_else(|refusal| refusal.json());
    writeln!(client, "{answer}")
}

/// The client's line, without its end.
fn line(mut client: &UnixStream) -> io::Result<String> {
    let (until, mut line) = (Instant::now() + PATIENCE, Vec::new());
    let mut some = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || line.len() > LONGEST {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let read = client.read(&mut some)?;
        let end = some[..read].iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&some[..end.unwrap_or(read)]);
        if end.is_some() || read == 0 {
            return String::from_utf8(line).map_err(io::Error::other);
        }
    }
}
