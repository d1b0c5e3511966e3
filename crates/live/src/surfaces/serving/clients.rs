//! [`Clients`]: who is served at the moment, and who makes room where there are too many.
//!
//! Contract: at most [`Guest::MOST`] are served at a time, with requests of [`MOST_BYTES`] together. One more takes the
//! place of the one that has owed its request for longest, if that is more than [`ASKING`], or [`SILENT`] where nothing of it
//! waits to be read, or has been reading its answer for more than [`READING`]; whose request is being carried out is left
//! alone. So whoever asks and reads is answered, whatever those do who connect and say nothing.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// How long it may take for it where others wait, while nothing of it waits to be read: most clients send it at once.
const SILENT: Duration = Duration::from_millis(1);

/// How long it may take for it otherwise.
const ASKING: Duration = Duration::from_millis(10);

/// How long it may read its answer where others wait.
const READING: Duration = Duration::from_millis(100);

/// Bytes of all requests that are there at a time.
const MOST_BYTES: usize = 64 << 20;

/// A client's connection.
pub(crate) trait Guest: AsFd + std::fmt::Debug + Send + Sync + 'static {
    /// How many are served at a time.
    const MOST: usize;

    /// Answers, without waiting, that as many others are served as can be.
    fn send_away(&self);

    /// Closes it, for both ends.
    fn close(&self);
}

/// Who is served.
#[derive(Debug)]
pub(crate) struct Clients<C> {
    seats: Mutex<Seats<C>>,
}

impl<C> Default for Clients<C> {
    fn default() -> Self {
        Self { seats: Mutex::new(Seats { taken: Vec::new(), last: 0, bytes: 0 }) }
    }
}

#[derive(Debug)]
struct Seats<C> {
    taken: Vec<Seat<C>>,
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Seat<C> {
    number: u64,
    stream: Arc<C>,
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
pub(crate) struct Served<C: Guest> {
    clients: Arc<Clients<C>>,
    number: u64,
    pub(crate) stream: Arc<C>,
    bytes: usize,
}

impl<C: Guest> Clients<C> {
    /// Serves one more; gives it back if there is no room.
    pub(crate) fn admit(self: &Arc<Self>, client: C) -> Result<Served<C>, C> {
        let mut seats = self.lock();
        if seats.taken.len() >= C::MOST && !seats.make_room(Instant::now()) {
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

    fn lock(&self) -> MutexGuard<'_, Seats<C>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Guest> Seats<C> {
    /// Whether somebody has made room.
    fn make_room(&mut self, now: Instant) -> bool {
        let may_go = |seat: &&Seat<C>| {
            let lasts = now.saturating_duration_since(seat.since);
            match seat.stage {
                Stage::Asks => lasts > ASKING || lasts > SILENT && seat.is_silent(),
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

impl<C: Guest> Seat<C> {
    /// Nothing that it has sent waits to be read.
    fn is_silent(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(recv(&*self.stream, &mut [0; 1], flags), Err(Errno::AGAIN))
    }

    /// Its thread finds its client gone, and ends.
    fn leave(self) {
        if self.stage == Stage::Asks {
            self.stream.send_away();
        }
        self.stream.close();
    }
}

impl<C: Guest> Served<C> {
    /// So many more bytes of its request are there; whether there is room for them.
    pub(crate) fn takes(&mut self, bytes: usize) -> bool {
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
    pub(crate) fn waits(&self) -> io::Result<()> {
        self.clients.lock().has_come_to(self.number, Stage::Waits)
    }

    /// Its answer is there.
    ///
    /// # Errors
    /// It is served no more.
    pub(crate) fn reads(&self) -> io::Result<()> {
        self.clients.lock().has_come_to(self.number, Stage::Reads)
    }
}

impl<C: Guest> Drop for Served<C> {
    fn drop(&mut self) {
        let mut seats = self.clients.lock();
        seats.bytes -= self.bytes;
        seats.taken.retain(|seat| seat.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// How long a client may take for its request.
    const PATIENCE: Duration = Duration::from_secs(1);

    fn client() -> (UnixStream, UnixStream) {
        UnixStream::pair().expect("a pair of sockets")
    }

    fn is_closed(mut far: &UnixStream) -> bool {
        far.set_nonblocking(true).expect("a socket");
        // What it is told, and the end.
        far.read(&mut [0; 4096]).is_ok() && matches!(far.read(&mut [0]), Ok(0))
    }

    type Ends = Vec<(Served<UnixStream>, UnixStream)>;

    /// As many as are served, each with its other end.
    fn full() -> (Arc<Clients<UnixStream>>, Ends) {
        let clients = Arc::<Clients<UnixStream>>::default();
        let admit = |_| {
            let (near, far) = client();
            (clients.admit(near).expect("room"), far)
        };
        let all = (0..UnixStream::MOST).map(admit).collect();
        (clients, all)
    }

    /// Of all that are served, this much of their time passes.
    fn pass(clients: &Clients<UnixStream>, time: Duration) {
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
        assert_eq!(clients.lock().taken.len(), UnixStream::MOST);
    }

    /// Finding: 64 that came at once and said nothing held up who asked by 48 ms, 16 of them at a time.
    #[test]
    fn who_has_said_nothing_makes_room_at_once() {
        let (clients, mut all) = full();
        all[0].1.write_all(b"{").expect("it is served");
        pass(&clients, 2 * SILENT);
        let newest = clients.admit(client().0).expect("the second makes room");
        assert!(!is_closed(&all[0].1) && is_closed(&all[1].1) && !is_closed(&all[2].1));
        drop(newest);
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
