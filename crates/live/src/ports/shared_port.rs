//! [`SharedPort`]: a port with one queue that several workers drive. One of them receives on it, or all do; all
//! transmit.
//!
//! Contract: the port is locked for a burst. So a port whose receiving waits for a medium (a capture that is piped in)
//! keeps others from transmitting meanwhile.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use pktio::{Bell, Burst, Envelope, Port, PortError, Readiness, Stats};

use crate::config::Order;
use pktio::BoxedPort;

/// How often a port is checked that had no descriptor at first and may have one now.
const LOOK: Duration = Duration::from_millis(1);

/// One worker's part of a port.
pub(crate) struct SharedPort {
    port: Arc<Mutex<BoxedPort>>,
    /// `None` where another worker receives.
    receives: Option<Wait>,
    /// Whether this part reports the port's counters.
    counts: bool,
}

/// How to wait for frames of the port, by means that cannot be borrowed from it while it is locked.
struct Wait {
    /// Rings when the port's own bell does.
    bell: Arc<Bell>,
    descriptor: Option<OwnedFd>,
}

impl SharedPort {
    /// Makes a part for each of `workers` workers. The first receives, or where the order of all frames is kept each
    /// does, one at a time.
    ///
    /// # Errors
    /// The port's descriptor cannot be duplicated.
    pub(crate) fn of(port: BoxedPort, workers: usize, order: Order) -> io::Result<Vec<Self>> {
        let receiving = if order == Order::Wire { workers } else { 1 };
        let waits = (0..receiving).map(|_| Wait::of(&*port)).collect::<io::Result<Vec<_>>>()?;
        let mut waits = waits.into_iter();
        let port = Arc::new(Mutex::new(port));
        let part = |at| Self { port: Arc::clone(&port), receives: waits.next(), counts: at == 0 };
        Ok((0..workers).map(part).collect())
    }

    fn lock(&self) -> MutexGuard<'_, BoxedPort> {
        // What a panic left half done is the port's own to bear, as where it is not shared.
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait {
    fn of(port: &dyn Port) -> io::Result<Self> {
        let bell = Arc::<Bell>::default();
        let mut descriptor = None;
        match port.readiness() {
            Readiness::Bell(own) => drop(own.wakes(&Waker::from(Arc::clone(&bell)))),
            Readiness::Descriptor(own) => descriptor = Some(own.try_clone_to_owned()?),
            _ => {}
        }
        Ok(Self { bell, descriptor })
    }
}

impl Port for SharedPort {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        if self.receives.is_none() {
            burst.clear();
            return Ok(0);
        }
        self.lock().rx_burst(burst)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.lock().tx_burst(burst)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.lock().flush()
    }

    fn readiness(&self) -> Readiness<'_> {
        let Some(wait) = &self.receives else { return Readiness::Never };
        match (self.lock().readiness(), &wait.descriptor) {
            (Readiness::Bell(_), _) => Readiness::Bell(&wait.bell),
            (Readiness::Descriptor(_), Some(own)) => Readiness::Descriptor(own.as_fd()),
            (Readiness::Descriptor(_), None) => Readiness::After(LOOK),
            (Readiness::Always, _) => Readiness::Always,
            (Readiness::Never, _) => Readiness::Never,
            (Readiness::After(wait), _) => Readiness::After(wait),
        }
    }

    /// The counters of the whole port, on the first part alone.
    fn stats(&self) -> Stats {
        if self.counts { self.lock().stats() } else { Stats::default() }
    }

    fn finishes(&self) -> bool {
        self.lock().finishes()
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        self.lock().envelope()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts the calls of each kind.
    #[derive(Debug, Default)]
    struct Asked {
        received: AtomicUsize,
        transmitted: AtomicUsize,
        flushed: AtomicUsize,
    }

    struct Counting(Arc<Asked>);

    impl Port for Counting {
        fn rx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
            Ok(self.0.received.fetch_add(1, Ordering::Relaxed))
        }

        fn tx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
            Ok(self.0.transmitted.fetch_add(1, Ordering::Relaxed))
        }

        fn flush(&mut self) -> Result<(), PortError> {
            self.0.flushed.fetch_add(1, Ordering::Relaxed);
            Err(PortError::Gone { name: "it".to_owned() })
        }

        fn readiness(&self) -> Readiness<'_> {
            Readiness::Always
        }

        fn stats(&self) -> Stats {
            Stats { rx_frames: 7, ..Stats::default() }
        }
    }

    #[test]
    fn one_receives_and_tells_of_the_port_and_all_transmit_and_flush() {
        let asked = Arc::<Asked>::default();
        let port: BoxedPort = Box::new(Counting(Arc::clone(&asked)));
        let mut parts = SharedPort::of(port, 3, Order::Flow).expect("nothing to duplicate");
        let mut burst = Burst::default();
        for part in &mut parts {
            part.rx_burst(&mut burst).expect("received");
            part.tx_burst(&mut burst).expect("transmitted");
            assert!(part.flush().is_err(), "what the port says of it is told");
        }
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let counts = [&asked.received, &asked.transmitted, &asked.flushed].map(count);
        assert_eq!(counts, [1, 3, 3]);
        let frames: Vec<_> = parts.iter().map(|part| part.stats().rx_frames).collect();
        assert_eq!(frames, [7, 0, 0]);
        let waits = parts.iter().map(|part| matches!(part.readiness(), Readiness::Never));
        assert_eq!(waits.collect::<Vec<_>>(), [false, true, true]);
    }
}
