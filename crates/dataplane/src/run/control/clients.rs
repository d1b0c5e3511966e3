//! [`Clients`]: who is served at the moment, and who makes room where there are too many.
//!
//! Contract: at most [`MOST_CLIENTS`] are served at a time, with requests of [`MOST_BYTES`] together. One more takes the
//! place of the one that has owed its request for longest, if that is more than [`ASKING`], or has been reading its answer
//! for more than [`READING`]; whose request is being carried out is left alone. So whoever asks and reads is answered,
//! whatever those do who connect and say nothing.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::request::{Refusal, RefusalKind};

/// How long a client may take for its request.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How long it may take for it where others wait.
const ASKING: Duration = Duration::from_millis(10);

/// How long it may read its answer where others wait.
const READING: Duration = Duration::from_millis(100);

/// Clients that are served at a time.
pub(super) const MOST_CLIENTS: usize = 32;

/// Bytes of all requests that are there at a time.
const MOST_BYTES: usize = 64 << 20;

/// Who is served.
#[derive(Debug, Default)]
pub(super) struct Clients {
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    taken: Vec<Seat>,
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Seat {
    number: u64,
    stream: Arc<UnixStream>,
    stage: Stage,
    since: Instant,
}

/// How far a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It owes its request.
    Asks,
    /// That is being carried out.
    Waits,
    /// It has its answer to read.
    Reads,
}

/// A client that is served, until this is dropped.
#[derive(Debug)]
pub(super) struct Served {
    clients: Arc<Clients>,
    number: u64,
    pub(super) stream: Arc<UnixStream>,
    bytes: usize,
}

impl Clients {
    /// Serves one more; gives it back if there is no room.
    pub(super) fn admit(self: &Arc<Self>, client: UnixStream) -> Result<Served, UnixStream> {
        let mut seats = self.lock();
        if seats.taken.len() >= MOST_CLIENTS && !seats.make_room(Instant::now()) {
            return Err(client);
        }
        seats.last += 1;
        let (number, stream) = (seats.last, Arc::new(client));
        let seat =
            Seat { number, stream: Arc::clone(&stream), stage: Stage::Asks, since: Instant::now() };
        seats.taken.push(seat);
        Ok(Served { clients: Arc::clone(self), number, stream, bytes: 0 })
    }

    /// Whether some of them have asked, and not read all of their answers.
    pub(super) fn have_answers_to_come(&self) -> bool {
        self.lock().taken.iter().any(|seat| seat.stage != Stage::Asks)
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    /// Whether somebody has made room.
    fn make_room(&mut self, now: Instant) -> bool {
        let may_go = |seat: &&Seat| {
            let lasts = now.saturating_duration_since(seat.since);
            match seat.stage {
                Stage::Asks => lasts > ASKING,
                Stage::Waits => false,
                Stage::Reads => lasts > READING,
            }
        };
        let oldest = self.taken.iter().filter(may_go).min_by_key(|seat| seat.since);
        let Some(number) = oldest.map(|seat| seat.number) else { return false };
        self.taken.extract_if(.., |seat| seat.number == number).for_each(Seat::leave);
        true
    }

    fn has_come_to(&mut self, number: u64, stage: Stage) -> io::Result<()> {
        let seat = self.taken.iter_mut().find(|seat| seat.number == number);
        let seat = seat.ok_or(io::ErrorKind::ConnectionAborted)?;
        (seat.stage, seat.since) = (stage, Instant::now());
        Ok(())
    }
}

impl Seat {
    /// Its thread finds its client gone, and ends.
    fn leave(self) {
        if self.stage == Stage::Asks {
            refuse(&self.stream, &busy());
        }
        // One that is closed already needs nothing.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Why somebody is not served now: nothing was done.
pub(super) fn busy() -> Refusal {
    let what = format!("{MOST_CLIENTS} clients are served: expected one of them to end");
    Refusal { kind: RefusalKind::Busy, what }
}

/// Tells a client that is not served, if it listens.
pub(super) fn refuse(mut client: &UnixStream, refusal: &Refusal) {
    let _ = client.set_nonblocking(true);
    let _ = writeln!(client, "{}", refusal.json());
}

impl Served {
    /// So many more bytes of its request are there; whether there is room for them.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        let mut seats = self.clients.lock();
        if seats.bytes + bytes > MOST_BYTES {
            return false;
        }
        seats.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// Its request is there.
    ///
    /// # Errors
    /// It had to make room: its request is not to be carried out.
    pub(super) fn waits(&self) -> io::Result<()> {
        self.clients.lock().has_come_to(self.number, Stage::Waits)
    }

    /// Its answer is there.
    ///
    /// # Errors
    /// It is served no more.
    pub(super) fn reads(&self) -> io::Result<()> {
        self.clients.lock().has_come_to(self.number, Stage::Reads)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut seats = self.clients.lock();
        seats.bytes -= self.bytes;
        seats.taken.retain(|seat| seat.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn client() -> (UnixStream, UnixStream) {
        UnixStream::pair().expect("a pair of sockets")
    }

    fn is_closed(mut far: &UnixStream) -> bool {
        far.set_nonblocking(true).expect("a socket");
        // What it is told, and the end.
        far.read(&mut [0; 4096]).is_ok() && matches!(far.read(&mut [0]), Ok(0))
    }

    /// As many as are served, each with its other end.
    fn full() -> (Arc<Clients>, Vec<(Served, UnixStream)>) {
        let clients = Arc::<Clients>::default();
        let admit = |_| {
            let (near, far) = client();
            (clients.admit(near).expect("room"), far)
        };
        let all = (0..MOST_CLIENTS).map(admit).collect();
        (clients, all)
    }

    /// Of all that are served, this much of their time passes.
    fn pass(clients: &Clients, time: Duration) {
        clients.lock().taken.iter_mut().for_each(|seat| seat.since -= time);
    }

    #[test]
    fn who_is_silent_for_longest_makes_room() {
        let (clients, all) = full();
        clients.lock().taken.iter_mut().for_each(|seat| seat.since += 100 * PATIENCE);
        let refused = clients.admit(client().0).expect_err("they have just come");
        pass(&clients, 100 * PATIENCE + 2 * ASKING);
        all[0].0.waits().expect("it is served");
        let newest = clients.admit(refused).expect("the second makes room");
        assert!(!is_closed(&all[0].1) && is_closed(&all[1].1) && !is_closed(&all[2].1));
        assert!(all[1].0.waits().is_err(), "what it asked is not carried out");
        assert!(newest.waits().is_ok());
        assert_eq!(clients.lock().taken.len(), MOST_CLIENTS);
    }

    #[test]
    fn whose_request_is_carried_out_keeps_its_place() {
        let (clients, mut all) = full();
        all.iter().for_each(|(served, _)| served.waits().expect("it is served"));
        pass(&clients, 100 * PATIENCE);
        let refused = clients.admit(client().0).expect_err("all wait for their answers");
        all[3].0.reads().expect("it is served");
        pass(&clients, READING + ASKING);
        let admitted = clients.admit(refused).expect("it has been reading for long");
        assert!(all[3].0.reads().is_err() && all[4].0.reads().is_ok());
        all.clear();
        drop(admitted);
        assert_eq!(clients.lock().taken.len(), 0);
    }

    #[test]
    fn requests_share_their_room() {
        let (clients, mut all) = full();
        assert!(all[0].0.takes(MOST_BYTES - 1) && !all[1].0.takes(2) && all[1].0.takes(1));
        assert!(!all[2].0.takes(1));
        drop(all.remove(0));
        assert!(all[2].0.takes(1));
        drop(all);
        assert_eq!(clients.lock().bytes, 0);
    }
}
