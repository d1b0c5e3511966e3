//! [`DevicePort`]: a queue of a device that may go away and come back. [`Device`] is what its queues and the control
//! thread know of it.
//!
//! Contract: a queue that finds its device gone lets go of it, and receives nothing until the control thread has opened the
//! device again ([`Device::look`]), by its name or by the pattern that it was named by; what is to leave by it meanwhile
//! is refused as [`PortError::Gone`]. What was lost is told when the control thread asks, and at a queue's end. All queues are opened together, by the one function that opened them at first. Whether
//! a device is there costs one load for a burst.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pktio::{Bell, Burst, Port, PortError, Readiness, Stats};
use tracing::info_span;

use super::wire::BoxedPort;

/// The queues of a device, and the name that it has.
pub(super) struct Opened {
    pub(super) name: String,
    pub(super) queues: Vec<BoxedPort>,
    /// How long a frame on an idle link may wait in the kernel.
    pub(super) idle_latency: Duration,
}

/// Opens a device each time that it has come back.
pub(super) type Open = Box<dyn Fn() -> Result<Opened, PortError> + Send + Sync>;

/// A device of the kernel's that is a port.
pub(super) struct Device {
    /// The port's name.
    port: String,
    open: Open,
    is_gone: AtomicBool,
    is_told_gone: AtomicBool,
    /// How often it was opened again.
    opened: AtomicU64,
    /// How often the control thread asked what its queues lost.
    asked: AtomicU64,
    /// Frames that they lost, as far as they have told.
    lost: AtomicU64,
    again: Mutex<Again>,
    /// Rings when it was.
    bell: Bell,
}

struct Again {
    /// The device's own name.
    name: String,
    idle_latency: Duration,
    /// Queues that were opened again, each until its worker takes it.
    queues: Vec<Option<BoxedPort>>,
}

/// One worker's queue of a device.
pub(super) struct DevicePort {
    device: Arc<Device>,
    queue: usize,
    /// None while the device is gone.
    port: Option<BoxedPort>,
    /// How often the device had been opened again when this was.
    opened: u64,
    /// How often it has told what it lost.
    told: u64,
    /// Frames that this port lost, and has told of.
    lost: u64,
}

impl Device {
    /// A device that is the port of this name, as it was opened first; with its queues.
    pub(super) fn new(port: &str, opened: Opened, open: Open) -> (Arc<Self>, Vec<DevicePort>) {
        let Opened { name, queues, idle_latency } = opened;
        let device = Arc::new(Self {
            port: port.to_owned(),
            open,
            is_gone: AtomicBool::new(false),
            is_told_gone: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            again: Mutex::new(Again { name, idle_latency, queues: Vec::new() }),
            bell: Bell::default(),
        });
        let queue = |(queue, port)| DevicePort {
            device: Arc::clone(&device),
            queue,
            port: Some(port),
            opened: 0,
            told: 0,
            lost: 0,
        };
        let queues = queues.into_iter().enumerate().map(queue).collect();
        (device, queues)
    }

    /// The port's name.
    pub(super) fn port(&self) -> &str {
        &self.port
    }

    /// The device's own name.
    pub(super) fn name(&self) -> String {
        self.again().name.clone()
    }

    /// How long a frame on an idle link may wait in the kernel.
    pub(super) fn idle_latency(&self) -> Duration {
        self.again().idle_latency
    }

    /// Frames that came and were lost before a worker had them, as far as its queues have told.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Has each queue tell with its next burst what it lost.
    pub(super) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Opens it again if it is gone, and has come back.
    pub(super) fn look(&self, tell: &mut impl FnMut(&str)) {
        if !self.is_gone() {
            return;
        }
        let port = &self.port;
        let _span = info_span!("port", port).entered();
        if !self.is_told_gone.swap(true, Ordering::Relaxed) {
            tell(&format!("{port}: {} is gone, and waited for", self.name()));
        }
        // Whatever keeps it from being opened may pass.
        let Ok(Opened { name, queues, idle_latency }) = (self.open)() else { return };
        tell(&format!("{port}: {name} is back"));
        let queues = queues.into_iter().map(Some).collect();
        *self.again() = Again { name, idle_latency, queues };
        self.is_told_gone.store(false, Ordering::Relaxed);
        self.is_gone.store(false, Ordering::Release);
        self.opened.fetch_add(1, Ordering::AcqRel);
        self.bell.ring();
    }

    fn again(&self) -> MutexGuard<'_, Again> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DevicePort {
    /// The queue as it was opened last, if the device is there.
    fn port(&mut self) -> Option<&mut BoxedPort> {
        let opened = self.device.opened.load(Ordering::Acquire);
        if opened != self.opened {
            self.opened = opened;
            self.tell();
            self.lost = 0;
            self.port = self.device.again().queues.get_mut(self.queue).and_then(Option::take);
        }
        self.port.as_mut()
    }

    /// Lets go of a queue whose device is gone.
    fn lose(&mut self) {
        self.tell();
        self.lost = 0;
        self.port = None;
        // One that was opened again meanwhile is not gone: it is taken with the next burst.
        if self.device.opened.load(Ordering::Acquire) == self.opened {
            self.device.is_gone.store(true, Ordering::Release);
        }
    }

    /// Tells what it lost since it told last.
    fn tell(&mut self) {
        let Some(port) = &self.port else { return };
        let lost = port.stats().rx_lost;
        self.device.lost.fetch_add(lost.saturating_sub(self.lost), Ordering::Relaxed);
        self.lost = lost;
    }

    fn gone(&self) -> PortError {
        PortError::Gone { name: self.device.port.clone() }
    }
}

impl Port for DevicePort {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let asked = self.device.asked.load(Ordering::Relaxed);
        if asked != self.told {
            self.told = asked;
            self.tell();
        }
        let Some(port) = self.port() else {
            burst.clear();
            return Ok(0);
        };
        match port.rx_burst(burst) {
            Err(error) if error.is_gone() => {
                self.lose();
                Ok(0)
            }
            received => received,
        }
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let Some(port) = self.port() else { return Err(self.gone()) };
        let sent = port.tx_burst(burst);
        if sent.as_ref().is_err_and(PortError::is_gone) {
            self.lose();
        }
        sent
    }

    fn readiness(&self) -> Readiness<'_> {
        self.port.as_ref().map_or(Readiness::Bell(&self.device.bell), |port| port.readiness())
    }

    fn stats(&self) -> Stats {
        self.port.as_ref().map_or_else(Stats::default, |port| port.stats())
    }

    fn finishes(&self) -> bool {
        self.port.as_ref().is_some_and(|port| port.finishes())
    }
}

impl Drop for DevicePort {
    fn drop(&mut self) {
        self.tell();
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("port", &self.port).finish_non_exhaustive()
    }
}

/// The device of this name, or the first one that is like it.
#[cfg(target_os = "linux")]
pub(super) fn found(device: &str) -> Result<String, PortError> {
    if !device.contains(['*', '?']) {
        return Ok(device.to_owned());
    }
    let failed = |source| PortError::Io { name: device.to_owned(), offset: 0, source };
    let mut names = pktio::device::names().map_err(failed)?.into_iter();
    let first = names.find(|name| is_like(name, device));
    first.ok_or_else(|| failed(io::Error::new(io::ErrorKind::NotFound, "no such device")))
}

/// Whether a name is what a shell pattern of `*` and `?` says.
#[must_use]
pub fn is_like(name: &str, pattern: &str) -> bool {
    let (mut name, mut pattern) = (name.chars(), pattern.chars());
    let Some(first) = pattern.next() else { return name.next().is_none() };
    let rest = pattern.as_str();
    match first {
        '*' => {
            is_like(name.as_str(), rest)
                || name.next().is_some_and(|_| is_like(name.as_str(), &format!("*{rest}")))
        }
        '?' => name.next().is_some_and(|_| is_like(name.as_str(), rest)),
        own => name.next() == Some(own) && is_like(name.as_str(), rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pktio::{FrameMeta, MemoryPort, Pool};
    use std::sync::atomic::AtomicUsize;

    /// A queue that is gone as soon as this is raised, and receives one frame at a time before.
    struct Queue(MemoryPort, Arc<AtomicBool>);

    impl Queue {
        fn check(&self) -> Result<(), PortError> {
            match self.1.load(Ordering::Relaxed) {
                true => Err(PortError::Gone { name: "eth0".to_owned() }),
                false => Ok(()),
            }
        }
    }

    impl Port for Queue {
        fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
            self.check().and_then(|()| self.0.rx_burst(burst))
        }
        fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
            self.check().and_then(|()| self.0.tx_burst(burst))
        }
        fn readiness(&self) -> Readiness<'_> {
            self.0.readiness()
        }
        fn stats(&self) -> Stats {
            Stats { rx_lost: 3, ..self.0.stats() }
        }
    }

    fn one(burst: &mut Burst) -> &mut Burst {
        burst.clear();
        burst.push(&[1; 60], FrameMeta::default());
        burst
    }

    #[test]
    fn a_device_that_is_gone_is_opened_again_once_it_is_back() {
        let [gone, is_missing] = [(), ()].map(|()| Arc::new(AtomicBool::new(false)));
        let opens = Arc::new(AtomicUsize::new(0));
        let pool = Pool::new(16, 64, 0);
        let open: Open = Box::new({
            let (gone, is_missing, opens) =
                (Arc::clone(&gone), Arc::clone(&is_missing), Arc::clone(&opens));
            move || {
                if is_missing.load(Ordering::Relaxed) {
                    return Err(PortError::Gone { name: "eth0".to_owned() });
                }
                opens.fetch_add(1, Ordering::Relaxed);
                let queue = || Box::new(Queue(MemoryPort::looped(&pool, 8, 8), Arc::clone(&gone)));
                let queues = (0..2).map(|_| queue() as BoxedPort).collect();
                Ok(Opened { name: "eth0".to_owned(), queues, idle_latency: Duration::ZERO })
            }
        });
        let (device, mut queues) = Device::new("left", open().unwrap(), open);
        let mut burst = Burst::new();
        let mut told = Vec::new();
        let mut look = || {
            device.look(&mut |what: &str| told.push(what.to_owned()));
            told.len()
        };
        assert_eq!((queues[0].tx_burst(one(&mut burst)).unwrap(), look()), (1, 0));

        gone.store(true, Ordering::Relaxed);
        is_missing.store(true, Ordering::Relaxed);
        assert_eq!(queues[0].rx_burst(&mut burst).unwrap(), 0);
        assert!(queues[0].tx_burst(one(&mut burst)).unwrap_err().is_gone());
        assert!(device.is_gone() && matches!(queues[0].readiness(), Readiness::Bell(_)));
        assert_eq!((look(), look(), opens.load(Ordering::Relaxed)), (1, 1, 1));

        gone.store(false, Ordering::Relaxed);
        is_missing.store(false, Ordering::Relaxed);
        assert_eq!((look(), opens.load(Ordering::Relaxed)), (2, 2));
        // The second queue had not noticed.
        for queue in &mut queues {
            assert_eq!(queue.tx_burst(one(&mut burst)).unwrap(), 1);
            assert_eq!(queue.rx_burst(&mut burst).unwrap(), 1);
        }
        assert!(!device.is_gone());
        assert_eq!((look(), opens.load(Ordering::Relaxed)), (2, 2));
        assert_eq!(told, ["left: eth0 is gone, and waited for", "left: eth0 is back"]);
        // What the first of them lost that is gone; what the second had lost by then; and the two of now once they are asked.
        assert_eq!(device.lost(), 3 + 3);
        device.ask();
        queues[0].rx_burst(&mut burst).unwrap();
        queues[0].rx_burst(&mut burst).unwrap();
        assert_eq!(device.lost(), 3 + 3 + 3);
        drop(queues);
        assert_eq!(device.lost(), 3 + 3 + 3 + 3);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn patterns_are_those_of_a_shell() {
        for (name, pattern) in
            [("veth0", "veth*"), ("veth0", "veth?"), ("a", "*"), ("", "*"), ("abcbd", "a*b?")]
        {
            assert!(is_like(name, pattern), "{name} {pattern}");
        }
        for (name, pattern) in [("eth0", "veth*"), ("veth", "veth?"), ("ab", "a"), ("a", "ab*")] {
            assert!(!is_like(name, pattern), "{name} {pattern}");
        }
    }
}
