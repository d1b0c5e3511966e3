//! [`Links`]: the control thread's look at devices: a device that has disappeared is waited for, and where a wire says
//! so, a port whose link is lost takes the other port down with it.
//!
//! Contract: the control thread's own; it looks every [`LOOK`]. A link that this took down does not count as lost.
//! Devices that it took down are taken up again when the link is back, and when the run ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pktio::{InProcess, Opener};
use tracing::info_span;

use crate::answers::{Port, PortState};
use crate::ports::device::Device;

/// How often devices are checked.
const LOOK: Duration = Duration::from_millis(100);

/// The system's devices: whether they have a link, and how they are taken up and down.
pub(crate) trait System {
    fn has_link(&self, device: &str) -> bool;
    fn set_up(&mut self, device: &str, is_up: bool) -> Result<(), String>;
    /// Whether devices that come back can be opened, as far as an [`Opener`] does that.
    fn can_open(&self) -> bool;
}

/// The devices of a run.
#[derive(Debug)]
pub(crate) struct Links<S: System = Kernel> {
    devices: Vec<Arc<Device>>,
    passed: Vec<Passed>,
    system: S,
    is_told_lost: bool,
    next: Option<Instant>,
}

/// Two devices, each of which is taken down with the other.
#[derive(Debug)]
struct Passed {
    ends: [Arc<Device>; 2],
    /// Which of them this took down.
    taken_down: [bool; 2],
}

impl<S: System> Links<S> {
    /// Watches these devices, and these pairs of devices that are the ends of wires that pass on the loss of a link.
    pub(crate) fn new(devices: Vec<Arc<Device>>, passed: Vec<[Arc<Device>; 2]>, system: S) -> Self {
        let passed = passed.into_iter().map(|ends| Passed { ends, taken_down: [false; 2] });
        Self { devices, passed: passed.collect(), system, is_told_lost: false, next: None }
    }

    /// Checks all devices, if it is time.
    pub(crate) fn look(&mut self, now: Instant, tell: &mut impl FnMut(&str)) {
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + LOOK);
        if !self.is_told_lost && !self.system.can_open() {
            self.is_told_lost = true;
            tell(
                "the process that opens devices again has ended: one that goes from now on stays gone",
            );
        }
        for device in &self.devices {
            device.ask();
            device.look(tell);
        }
        for passed in &mut self.passed {
            passed.look(&mut self.system, tell);
        }
    }

    /// The state of each device.
    pub(crate) fn status(&self) -> Vec<Port> {
        let status = |device: &Arc<Device>| {
            let name = device.name();
            let state = match () {
                () if device.is_gone() => PortState::Gone,
                () if self.system.has_link(&name) => PortState::Up,
                () => PortState::Down,
            };
            let idle_latency_us = device.idle_latency().as_micros() as u64;
            let (port, lost) = (device.port().to_owned(), device.lost());
            Port { port, device: name, state, idle_latency_us, lost }
        };
        self.devices.iter().map(status).collect()
    }

    /// Takes up the devices that it took down.
    pub(crate) fn restore(&mut self, tell: &mut impl FnMut(&str)) {
        for passed in &mut self.passed {
            for end in [0, 1] {
                if passed.taken_down[end] {
                    passed.set(end, true, &mut self.system, tell);
                }
            }
        }
    }
}

impl Passed {
    fn look(&mut self, system: &mut impl System, tell: &mut impl FnMut(&str)) {
        for (end, other) in [(0, 1), (1, 0)] {
            if self.taken_down[end] {
                continue;
            }
            let device = &self.ends[end];
            let is_lost = device.is_gone() || !system.has_link(&device.name());
            if is_lost != self.taken_down[other] {
                self.set(other, !is_lost, system, tell);
            }
        }
    }

    fn set(
        &mut self,
        end: usize,
        is_up: bool,
        system: &mut impl System,
        tell: &mut impl FnMut(&str),
    ) {
        let device = &self.ends[end];
        let what = match (system.set_up(&device.name(), is_up), is_up) {
            (Ok(()), true) => "is taken up again: the other port of its wire has its link back",
            (Ok(()), false) => "is taken down: the other port of its wire has lost its link",
            // Logged once: a device that cannot be taken down counts as taken down.
            (Err(_), _) => "cannot be taken up or down as the other port of its wire is",
        };
        let port = device.port();
        info_span!("port", port).in_scope(|| tell(&format!("{port}: {what}")));
        self.taken_down[end] = !is_up;
    }
}

/// The kernel's devices.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// The opener, which takes devices up and down.
    opener: Arc<dyn Opener>,
}

impl Kernel {
    pub(crate) fn by(opener: &Arc<dyn Opener>) -> Self {
        Self { opener: Arc::clone(opener) }
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Self { opener: Arc::new(InProcess) }
    }
}

impl System for Kernel {
    #[cfg(target_os = "linux")]
    fn has_link(&self, device: &str) -> bool {
        pktio::device::has_link(device).unwrap_or(false)
    }

    #[cfg(not(target_os = "linux"))]
    fn has_link(&self, _: &str) -> bool {
        false
    }

    fn set_up(&mut self, device: &str, is_up: bool) -> Result<(), String> {
        self.opener.set_up(device, is_up).map_err(|error| error.to_string())
    }

    fn can_open(&self) -> bool {
        self.opener.is_there()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::device::Opened;
    use std::collections::BTreeSet;

    /// Cables that are pulled, and devices that are down.
    #[derive(Default)]
    struct Model {
        pulled: BTreeSet<String>,
        down: BTreeSet<String>,
        /// Whether devices are no longer opened.
        is_alone: bool,
    }

    impl System for Model {
        fn has_link(&self, device: &str) -> bool {
            !self.pulled.contains(device) && !self.down.contains(device)
        }

        fn set_up(&mut self, device: &str, is_up: bool) -> Result<(), String> {
            let changed = match is_up {
                true => self.down.remove(device),
                false => self.down.insert(device.to_owned()),
            };
            changed.then_some(()).ok_or_else(|| "as it was".to_owned())
        }

        fn can_open(&self) -> bool {
            !self.is_alone
        }
    }

    fn device(name: &'static str) -> Arc<Device> {
        let opened = move || {
            let (name, idle_latency) = (name.to_owned(), Duration::ZERO);
            Ok(Opened { name, queues: Vec::new(), idle_latency })
        };
        Device::new(name, opened().unwrap(), Box::new(opened)).0
    }

    #[test]
    fn a_link_that_is_lost_takes_the_other_port_down_and_up_again() {
        let ends = [device("a"), device("b")];
        let mut links = Links::new(ends.to_vec(), vec![ends], Model::default());
        let (mut now, mut told) = (Instant::now(), 0);
        let mut look = |links: &mut Links<Model>| {
            now += LOOK;
            links.look(now, &mut |_: &str| told += 1);
            told
        };
        let down = |links: &Links<Model>| links.system.down.iter().cloned().collect::<String>();
        assert_eq!((look(&mut links), down(&links)), (0, String::new()));
        links.system.pulled.insert("a".to_owned());
        assert_eq!((look(&mut links), look(&mut links)), (1, 1));
        assert_eq!(down(&links), "b", "and b's loss is not passed back");
        links.system.pulled.clear();
        assert_eq!((look(&mut links), look(&mut links)), (2, 2));
        assert_eq!(down(&links), "");
        links.system.pulled.insert("b".to_owned());
        look(&mut links);
        assert_eq!(down(&links), "a");
        links.restore(&mut |_: &str| {});
        assert_eq!(down(&links), "", "nothing stays down after the run");
    }

    #[test]
    fn that_nobody_opens_devices_any_more_is_told_once() {
        let mut links = Links::new(Vec::new(), Vec::new(), Model::default());
        let (mut now, mut told) = (Instant::now(), 0);
        let mut look = |links: &mut Links<Model>| {
            now += LOOK;
            links.look(now, &mut |_: &str| told += 1);
            told
        };
        assert_eq!(look(&mut links), 0);
        links.system.is_alone = true;
        assert_eq!((look(&mut links), look(&mut links)), (1, 1));
    }

    #[test]
    fn both_links_may_be_lost_and_come_back_in_any_order() {
        for order in [["a", "b"], ["b", "a"]] {
            let ends = [device("a"), device("b")];
            let mut links = Links::new(ends.to_vec(), vec![ends], Model::default());
            let mut now = Instant::now();
            let mut look = |links: &mut Links<Model>| {
                for _ in 0..4 {
                    now += LOOK;
                    links.look(now, &mut |_: &str| {});
                }
            };
            links.system.pulled.extend(["a".to_owned(), "b".to_owned()]);
            look(&mut links);
            for back in order {
                links.system.pulled.remove(back);
                look(&mut links);
            }
            assert!(links.system.down.is_empty(), "{order:?}: {:?}", links.system.down);
        }
    }
}
