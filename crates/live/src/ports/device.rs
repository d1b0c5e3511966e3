//! [`DevicePort`]: a queue of a device that may disappear and come back. [`Device`] is what its queues and the control
//! thread share.
//!
//! Contract: a queue whose device has disappeared lets go of it, and receives nothing until the control thread has
//! opened the device again ([`Device::look`]), by its name or by the pattern that named it; frames to be transmitted
//! meanwhile are refused as [`PortError::Gone`]. Losses are reported when the control thread asks, and at a queue's
//! end. All queues are opened together, by the one function that opened them at first. Checking whether a device is
//! there costs one load per burst.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pktio::{Bell, Burst, Port, PortError, Readiness, Stats};
use tracing::info_span;

use pktio::BoxedPort;

/// The queues of a device, and the name that it has.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) queues: Vec<BoxedPort>,
    /// How long a frame on an idle link may wait in the kernel.
    pub(crate) idle_latency: Duration,
}

/// Opens a device each time that it has come back.
pub(crate) type Open = Box<dyn Fn() -> Result<Opened, PortError> + Send + Sync>;

/// A device of the kernel that is a port.
pub(crate) struct Device {
    /// The port's name.
    port: String,
    open: Open,
    is_gone: AtomicBool,
    is_told_gone: AtomicBool,
    /// How often the device was opened again.
    opened: AtomicU64,
    /// How often the control thread asked what the queues lost.
    asked: AtomicU64,
    /// Frames that the queues lost, as far as they have reported.
    lost: AtomicU64,
    again: Mutex<Again>,
    /// Rings when the device was opened again.
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
pub(crate) struct DevicePort {
    device: Arc<Device>,
    queue: usize,
    /// `None` while the device is missing.
    port: Option<BoxedPort>,
    /// How often the device had been opened again when this queue was.
    opened: u64,
    /// How often it has reported what it lost.
    told: u64,
    /// Frames that this port lost and has reported.
    lost: u64,
}

impl Device {
    /// A device that is the port of this name, as it was opened first; with its queues.
    pub(crate) fn new(port: &str, opened: Opened, open: Open) -> (Arc<Self>, Vec<DevicePort>) {
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
    pub(crate) fn port(&self) -> &str {
        &self.port
    }

    /// The device's own name.
    pub(crate) fn name(&self) -> String {
        self.again().name.clone()
    }

    /// How long a frame on an idle link may wait in the kernel.
    pub(crate) fn idle_latency(&self) -> Duration {
        self.again().idle_latency
    }

    /// Frames that came and were lost before a worker had them, as far as the queues have reported.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Makes each queue report with its next burst what it lost.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Opens the device again if it had disappeared and has come back.
    pub(crate) fn look(&self, tell: &mut impl FnMut(&str)) {
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

    /// Lets go of a queue whose device has disappeared.
    fn lose(&mut self) {
        self.tell();
        self.lost = 0;
        self.port = None;
        // A device that was opened again meanwhile is there: its queue is taken with the next burst.
        if self.device.opened.load(Ordering::Acquire) == self.opened {
            self.device.is_gone.store(true, Ordering::Release);
        }
    }

    /// Reports what it lost since it reported last.
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

/// The device of this name, or the first device that matches the pattern.
#[cfg(target_os = "linux")]
pub(crate) fn found(device: &str) -> Result<String, PortError> {
    if !device.contains(['*', '?']) {
        return Ok(device.to_owned());
    }
    let failed = |source| PortError::Io { name: device.to_owned(), offset: 0, source };
    let mut names = pktio::device::names().map_err(failed)?.into_iter();
    let first = names.find(|name| is_like(name, device));
    first.ok_or_else(|| failed(io::Error::new(io::ErrorKind::NotFound, "no such device")))
}

/// Whether a name matches a shell pattern of `*` and `?`.
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

    /// A queue that disappears as soon as this is raised, and receives one frame at a time before.
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
        // Losses of the first queue before the device disappeared; of the second by then; and of the two present ones
        // once they are asked.
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
