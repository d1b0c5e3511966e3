//! [`Serving`]: clients of a listening socket, each on a thread of its own.
//!
//! Contract: so many at a time, as its [`Door`] says; one more is refused without waiting. Who is slow holds up nobody but
//! itself, as far as the door gives each client a deadline. The thread that accepts ends with [`Serving`]; clients that are
//! served then have their answer or not.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Wake;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::parker::Parker;

/// How long it waits where clients cannot be had: no descriptors are left, say.
const NAP: Duration = Duration::from_millis(100);

/// Where clients come in.
pub(super) trait Door: Send + Sync + 'static {
    /// Who comes.
    type Client: Send + 'static;

    /// What its threads are called.
    const NAME: &'static str;

    /// Clients that are served at a time.
    const MOST_CLIENTS: usize;

    /// Readable when somebody comes.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// The next one.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if there is none; or none can be had.
    fn accept(&self) -> io::Result<Self::Client>;

    /// Serves one, on a thread that may wait.
    fn answer(&self, client: Self::Client);

    /// Sends one away without waiting: too many are served.
    fn refuse(&self, client: Self::Client);
}

/// A thread that accepts clients.
#[derive(Debug)]
pub(super) struct Serving {
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves from now on.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn start<D: Door>(door: D) -> io::Result<Self> {
        let (end, parker) = (Arc::new(AtomicBool::new(false)), Arc::new(Parker::new()?));
        let accepting = Accepting {
            door: Arc::new(door),
            end: Arc::clone(&end),
            parker: Arc::clone(&parker),
            clients: Arc::default(),
        };
        let builder = thread::Builder::new().name(D::NAME.to_owned());
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

struct Accepting<D> {
    door: Arc<D>,
    end: Arc<AtomicBool>,
    parker: Arc<Parker>,
    clients: Arc<AtomicUsize>,
}

impl<D: Door> Accepting<D> {
    fn run(&self) {
        while !self.end.load(Ordering::Acquire) {
            match self.door.accept() {
                Ok(client) => self.serve(client),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.parker.park(&[self.door.descriptor()], None);
                }
                Err(_) => self.parker.park(&[], Some(NAP)),
            }
        }
    }

    fn serve(&self, client: D::Client) {
        let served = Served(Arc::clone(&self.clients));
        if self.clients.fetch_add(1, Ordering::Relaxed) >= D::MOST_CLIENTS {
            return self.door.refuse(client);
        }
        let door = Arc::clone(&self.door);
        let builder = thread::Builder::new().name(D::NAME.to_owned());
        // Where no thread can be had it finds its connection closed.
        let _ = builder.spawn(move || {
            let _served = served;
            door.answer(client);
        });
    }
}

/// A client that is served.
struct Served(Arc<AtomicUsize>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
