//! [`Sender`]: one core that sends datagrams as fast as it can.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::bench::tunnel::namespace::Namespace;

/// Datagrams for one call.
const BURST: usize = 64;
/// It stops by itself after so long.
const LONGEST: Duration = Duration::from_secs(60);

/// One that sends until it is stopped.
pub(super) struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<f64>>>,
}

impl Sender {
    /// Sends these datagrams again and again from a namespace, on the last core.
    pub(super) fn start(
        place: &Namespace,
        to: (Ipv4Addr, u16),
        datagrams: Vec<Vec<u8>>,
    ) -> io::Result<Self> {
        let socket = place.run(move || {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            socket.connect(to)?;
            Ok(socket)
        })?;
        Self::again(socket, datagrams)
    }

    fn again(socket: UdpSocket, datagrams: Vec<Vec<u8>>) -> io::Result<Self> {
        let mut first = 0;
        Self::of(move || {
            let row = &datagrams[first..(first + BURST).min(datagrams.len())];
            first = if first + BURST < datagrams.len() { first + BURST } else { 0 };
            send_row(&socket, row)
        })
    }

    /// Does this again and again, which says how many datagrams it sent, on the last core.
    pub(super) fn of(row: impl FnMut() -> usize + Send + 'static) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().spawn(move || send(row, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops it; how many datagrams it sent in a second.
    pub(super) fn stop(mut self) -> io::Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        let ended = ended.ok_or_else(|| io::Error::other("the sender is gone"))?;
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn send(mut row: impl FnMut() -> usize, stop: &AtomicBool) -> io::Result<f64> {
    let mut last = CpuSet::new();
    last.set(thread::available_parallelism()?.get() - 1);
    sched_setaffinity(None, &last)?;
    let (since, mut sent) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) && since.elapsed() < LONGEST {
        sent += row();
    }
    Ok(sent as f64 / since.elapsed().as_secs_f64())
}

/// How many of these were taken. An answer that the port is closed costs a row, and no more.
fn send_row(socket: &UdpSocket, datagrams: &[Vec<u8>]) -> usize {
    let slices: Vec<_> = datagrams.iter().map(|bytes| [IoSlice::new(bytes)]).collect();
    let mut controls: Vec<_> = slices.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let both = slices.iter().zip(&mut controls);
    let mut messages: Vec<_> = both.map(|(bytes, control)| MMsgHdr::new(bytes, control)).collect();
    sendmmsg(socket, &mut messages, SendFlags::empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_datagrams_come_in_turn_and_the_rate_is_told() {
        let far = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let near = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        let datagrams: Vec<Vec<u8>> =
            (0..100_u8).map(|length| vec![length; length.into()]).collect();
        let expected = datagrams.clone();
        let sender = Sender::again(near, datagrams).unwrap();
        let mut bytes = [0; 200];
        for expected in &expected {
            let length = far.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], expected);
        }
        assert!(sender.stop().unwrap() > 0.0);
    }
}
