//! Where an overlay runs: hosts in namespaces of their own, links of 1,500 bytes between them, and an end on each host.
//!
//! Contract: a site is made anew for each run of each overlay, and everything of it goes with it. Only the ends' own
//! devices reach inner addresses, so nothing is measured that has not come through the overlay.

mod pair;
mod star;

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tunnel::{PrivateKey, SystemEntropy};

use super::namespace::{Namespace, program};
use super::overlay::{Daemon, End, Overlay};
pub(super) use pair::Pair;
pub(super) use star::Star;

/// Where every end that others call listens.
pub(super) const PORT: u16 = 51900;
/// The outer device of each host.
pub(super) const UNDER: &str = "under";
/// Until a packet has come through a fresh overlay.
const PATIENCE: Duration = Duration::from_secs(20);

/// A host with an end on it.
pub(super) struct Host {
    pub(super) place: Namespace,
    pub(super) end: End,
    daemon: Option<Daemon>,
}

impl Host {
    fn new(place: Namespace, address: Ipv4Addr, listen: u16, way: String) -> io::Result<Self> {
        let key = PrivateKey::generate(&mut SystemEntropy::new()).map_err(io::Error::other)?;
        let end = End { device: device(), key, address, listen, way, peers: Vec::new() };
        Ok(Self { place, end, daemon: None })
    }

    /// Starts its end, anew if it runs.
    pub(super) fn start(&mut self, overlay: &dyn Overlay) -> io::Result<()> {
        drop(self.daemon.take());
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", overlay.name()));
        self.daemon = Some(overlay.start(&self.end, &self.place).map_err(named)?);
        Ok(())
    }

    /// Ends its end, as a power cut would.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.daemon.take().map_or(Ok(()), Daemon::kill)
    }

    /// Ends its end.
    pub(super) fn stop(&mut self) {
        drop(self.daemon.take());
    }

    /// Its running end.
    pub(super) fn daemon(&self) -> io::Result<&Daemon> {
        self.daemon.as_ref().ok_or_else(|| io::Error::other("the end is not running"))
    }

    /// Waits until packets go from here to an inner address and back.
    pub(super) fn reach(&self, address: Ipv4Addr) -> io::Result<()> {
        let since = Instant::now();
        loop {
            let mut ping = program("ping");
            ping.args(["-n", "-q", "-c", "1", "-W", "0.2", &address.to_string()]);
            ping.stdout(Stdio::null()).stderr(Stdio::null());
            if self.place.spawn(ping)?.wait()?.success() {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("no answer from {address}")));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("device", &self.end.device).finish_non_exhaustive()
    }
}

/// A name of a device that no other process has: daemons listen at sockets of their devices' names.
fn device() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("tb{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed) % 10_000)
}

/// The inner address of a host by its number.
fn inner(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, number)
}

/// Links two namespaces by a pair of devices, each with its name and address.
fn link(one: (&Namespace, &str, &str), other: (&Namespace, &str, &str)) -> io::Result<()> {
    let (place, device, address) = one;
    let (far, far_device, far_address) = other;
    place.ip(&format!(
        "link add {device} mtu 1500 type veth peer name {far_device} mtu 1500 netns {}\n\
        addr add {address} dev {device}\nlink set {device} up\n",
        far.task()
    ))?;
    far.ip(&format!("addr add {far_address} dev {far_device}\nlink set {far_device} up\n"))
}

/// Why nothing can be measured here, if so.
pub(super) fn cannot() -> Option<String> {
    for tool in ["ip", "nft", "setpriv", "ping", "iperf3"] {
        let asked = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
        if !asked.is_ok_and(|output| output.status.success()) {
            return Some(format!("{tool} is not installed (make lab-deps)"));
        }
    }
    Namespace::new().err().map(|error| format!("no network namespace: {error} (it needs root)"))
}
