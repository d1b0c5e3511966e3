//! How long traffic is away when an end moves to another outer address, or is killed and started again.
//!
//! Contract: the near host asks all the time, and the far one answers; an answer counts if it was asked for after the
//! event. The time of a restart begins when the end is killed.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::overlay::{Overlay, VETH};
use super::rounds::{Better, Figure, Measure, Sheet};
use super::site::{Host, Pair};

const PORT: u16 = 7;
/// Between two questions.
const INTERVAL: Duration = Duration::from_millis(10);
/// After which nobody is waited for.
const PATIENCE: Duration = Duration::from_secs(40);
/// Of quiet traffic before an event.
const BEFORE: Duration = Duration::from_millis(500);

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    NearMoves,
    NearRestarts,
    FarRestarts,
}

const EVENTS: [(Event, &str); 3] = [
    (Event::NearMoves, "one end moves"),
    (Event::NearRestarts, "the asking end restarts"),
    (Event::FarRestarts, "the other end restarts"),
];

/// All of one overlay's turn in a round.
pub(super) fn measure(overlay: &dyn Overlay, sheet: &mut Sheet<'_>) -> io::Result<()> {
    // Who has no overlay does not move.
    if overlay.name() == VETH {
        return Ok(());
    }
    for (event, name) in EVENTS {
        let mut pair = Pair::new(overlay)?;
        let measure = Measure::new("tunnel.back", "s", Better::Less).with("event", name);
        let back = away(&mut pair, |pair| carry_out(event, pair, overlay));
        sheet.note(measure, back.map(|time| Figure::new(time.as_secs_f64())));
    }
    Ok(())
}

fn carry_out(event: Event, pair: &mut Pair, overlay: &dyn Overlay) -> io::Result<()> {
    let restart = |host: &mut Host| host.kill().and_then(|()| host.start(overlay));
    match event {
        Event::NearMoves => pair.move_near(),
        Event::NearRestarts => restart(&mut pair.near),
        Event::FarRestarts => restart(&mut pair.far),
    }
}

/// How long no answer came.
fn away(pair: &mut Pair, event: impl FnOnce(&mut Pair) -> io::Result<()>) -> io::Result<Duration> {
    let (near, far) = (socket(&pair.near, 0)?, socket(&pair.far, PORT)?);
    let to = SocketAddr::from((pair.far.end.address, PORT));
    let (start, stop) = (Instant::now(), AtomicBool::new(false));
    let (asking, stopped) = (&near, &stop);
    thread::scope(|scope| {
        let _ends = Ending(&stop);
        scope.spawn(|| answer(&far, &stop));
        scope.spawn(move || ask(asking, to, start, stopped));
        thread::sleep(BEFORE);
        let since = Instant::now();
        event(pair)?;
        come(&near, start, since)?;
        Ok(since.elapsed())
    })
}

/// Sets its flag in the end, however that comes.
struct Ending<'f>(&'f AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A socket of a host that waits a little for datagrams.
fn socket(host: &Host, port: u16) -> io::Result<UdpSocket> {
    host.place.run(move || {
        let socket = UdpSocket::bind(("0.0.0.0", port))?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        Ok(socket)
    })
}

/// Sends everything back.
fn answer(socket: &UdpSocket, stop: &AtomicBool) {
    let mut bytes = [0; 8];
    while !stop.load(Ordering::Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut bytes) {
            // An end that is not there now takes nothing.
            let _ = socket.send_to(&bytes[..length], from);
        }
    }
}

/// Sends the time, in nanoseconds from the start, all the time.
fn ask(socket: &UdpSocket, to: SocketAddr, start: Instant, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let now = start.elapsed().as_nanos() as u64;
        let _ = socket.send_to(&now.to_be_bytes(), to);
        thread::sleep(INTERVAL);
    }
}

/// Waits for an answer to what was asked after a time.
fn come(socket: &UdpSocket, start: Instant, since: Instant) -> io::Result<()> {
    let first = since.duration_since(start).as_nanos() as u64;
    let mut bytes = [0; 8];
    while since.elapsed() < PATIENCE {
        if let Ok((8, _)) = socket.recv_from(&mut bytes)
            && u64::from_be_bytes(bytes) > first
        {
            return Ok(());
        }
    }
    Err(io::Error::other(format!("not back after {} seconds", PATIENCE.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_an_earlier_question_does_not_count() {
        let [near, far] = [0, 0].map(|port| UdpSocket::bind(("127.0.0.1", port)).unwrap());
        near.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let to = near.local_addr().unwrap();
        let start = Instant::now();
        let since = start + Duration::from_nanos(1000);
        for asked in [1, 999, 1000, 2000] {
            far.send_to(&u64::to_be_bytes(asked), to).unwrap();
        }
        far.send_to(b"?", to).unwrap();
        come(&near, start, since).unwrap();
        // The last one that was read was that of 2000.
        let mut bytes = [0; 8];
        assert_eq!(near.recv_from(&mut bytes).unwrap().0, 1);
    }
}
