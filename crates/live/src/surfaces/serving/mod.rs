//! [`Serving`]: clients of a listening socket, each on a thread of its own.
//!
//! Contract: its [`Door`] says how many at a time; who is silent makes room for one more ([`clients`]), which waits a
//! moment where nobody is. Who is slow holds up nobody but itself, as far as the door gives each client a deadline. The
//! thread that accepts ends with [`Serving`]; clients that have asked by then are waited for, for [`PARTING`].

mod clients;

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::forward::parker::Parker;

pub(crate) use clients::{Clients, Guest, Served};

/// How long it waits where clients cannot be had: no descriptors are left, say.
const NAP: Duration = Duration::from_millis(100);

/// How long one waits for a place.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long clients that are served are waited for at the end: who asks for it has an answer, too.
const PARTING: Duration = Duration::from_millis(200);

/// Where clients come in.
pub(crate) trait Door: Send + Sync + 'static {
    /// Who comes.
    type Client: Guest;

    /// What its threads are called.
    const NAME: &'static str;

    /// Readable when somebody comes.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// The next one.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if there is none; or none can be had.
    fn accept(&self) -> io::Result<Self::Client>;

    /// Serves one, on a thread that may wait.
    fn answer(&self, client: &mut Served<Self::Client>);
}

/// A thread that accepts clients.
#[derive(Debug)]
pub(crate) struct Serving<C: Guest> {
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<Clients<C>>,
    thread: Option<JoinHandle<()>>,
}

impl<C: Guest> Serving<C> {
    /// Serves from now on.
    ///
    /// # Errors
    /// No thread can be had.
    pub(crate) fn start<D: Door<Client = C>>(door: D) -> io::Result<Self> {
        let (end, parker) = (Arc::new(AtomicBool::new(false)), Arc::new(Parker::new()?));
        let clients = Arc::<Clients<C>>::default();
        let accepting = Accepting {
            door: Arc::new(door),
            end: Arc::clone(&end),
            parker: Arc::clone(&parker),
            clients: Arc::clone(&clients),
        };
        let builder = thread::Builder::new().name(D::NAME.to_owned());
        let thread = builder.spawn(move || accepting.run())?;
        Ok(Self { end, parker, clients, thread: Some(thread) })
    }
}

impl<C: Guest> Drop for Serving<C> {
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

struct Accepting<D: Door> {
    door: Arc<D>,
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<Clients<D::Client>>,
}

impl<D: Door> Accepting<D> {
    fn run(&self) {
        while !self.end.load(Ordering::Acquire) {
            match self.door.accept() {
                Ok(client) => self.serve(client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.parker.park(&[self.door.descriptor()], None);
                }
                // No descriptors are left, or the client has disconnected: later there may be some.
                Err(_) => self.parker.park(&[], Some(NAP)),
            }
        }
    }

    fn serve(&self, client: D::Client) {
        let Some(mut served) = self.admit(client) else { return };
        let (door, stream) = (Arc::clone(&self.door), Arc::clone(&served.stream));
        let builder = thread::Builder::new().name(D::NAME.to_owned());
        if builder.spawn(move || door.answer(&mut served)).is_err() {
            stream.send_away();
        }
    }

    /// Waits for a place. Those who come meanwhile wait, too, before they are accepted.
    fn admit(&self, mut client: D::Client) -> Option<Served<D::Client>> {
        let until = Instant::now() + PATIENCE;
        loop {
            client = match self.clients.admit(client) {
                Ok(served) => return Some(served),
                Err(client) => client,
            };
            if Instant::now() >= until || self.end.load(Ordering::Acquire) {
                client.send_away();
                return None;
            }
            self.parker.park(&[], Some(PATIENCE / 1000));
        }
    }
}
