//! Two stacks of the kernel, and between them a namespace with two ports and a thread that hands frames across.

use std::mem;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use pktio::{AfPacketConfig, AfPacketPort, Burst, ChecksumState, Port, Readiness, Stats, VlanTag};

use super::wire::{join, no_pool, open, quiet_namespace};
use crate::tun::namespace::Namespace;
use crate::tun::sys;

/// What the thread saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Frames that stood for several.
    pub(super) superframes: u64,
    /// Frames whose checksum was not finished.
    pub(super) unfinished: u64,
    /// Bytes of the longest frame.
    pub(super) longest: usize,
    pub(super) stats: [Stats; 2],
}

/// What lies between the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// One namespace that hands frames across.
    One,
    /// Two, and between them a wire where every frame has this tag; its devices cut and sum frames, or do not.
    Tagged(VlanTag, bool),
}

pub(super) struct Forwarder {
    pub(super) ends: [Namespace; 2],
    /// Kept for their devices.
    _between: Vec<Namespace>,
    is_over: Arc<AtomicBool>,
    loops: Vec<JoinHandle<Seen>>,
}

impl Forwarder {
    /// `None`, where the user cannot; that was said. Each end has a device `p0`, with offloads or without.
    pub(super) fn new(between: Between, is_offloaded: bool) -> Option<Self> {
        let ends = [Namespace::new()?, Namespace::new()?];
        let is_over = Arc::<AtomicBool>::default();
        let (mut namespaces, mut loops) = (vec![quiet_namespace()?], Vec::new());
        join((&namespaces[0], "e0"), (&ends[0], "p0"));
        let mut tag = None;
        if let Between::Tagged(vlan, is_finished) = between {
            tag = Some(vlan);
            namespaces.push(quiet_namespace()?);
            join((&namespaces[1], "e0"), (&ends[1], "p0"));
            join((&namespaces[0], "e1"), (&namespaces[1], "e1"));
            if vlan.tpid != 0x8100 {
                // The kernel lets only 802.1Q's tag exceed the MTU.
                namespaces.iter().for_each(|one| drop(one.command("ip link set e1 mtu 1504")));
            }
            if is_finished {
                namespaces.iter().for_each(|namespace| switch_off(namespace, "e1"));
            }
        } else {
            join((&namespaces[0], "e1"), (&ends[1], "p0"));
        }
        if !is_offloaded {
            ends.iter().for_each(|end| switch_off(end, "p0"));
        }
        for namespace in &namespaces {
            let port = |name| open(namespace, &AfPacketConfig::new(name), &no_pool()).unwrap();
            let (mut ports, is_over) = (["e0", "e1"].map(port), Arc::clone(&is_over));
            loops.push(thread::spawn(move || forward(&mut ports, tag, &is_over)));
        }
        Some(Self { ends, _between: namespaces, is_over, loops })
    }

    /// Gives the devices their addresses: `10.77.0.HOST` and `fd77::HOST`.
    pub(super) fn set_up(&self) {
        for (host, end) in (1..).zip(&self.ends) {
            end.command(&format!("ip addr add 10.77.0.{host}/24 dev p0"));
            end.command(&format!("ip addr add fd77::{host}/64 dev p0 nodad"));
        }
    }

    /// Ends the threads; what each saw.
    pub(super) fn end(self) -> Vec<Seen> {
        self.is_over.store(true, Ordering::Relaxed);
        self.loops.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

/// Frames leave the device as they would be on a wire.
fn switch_off(namespace: &Namespace, device: &str) {
    namespace.command(&format!("ethtool -K {device} tx off tso off gso off gro off"));
}

/// Forwards frames until it is over. Frames that leave through the second port get the tag; frames that come in there
/// had it.
fn forward(ports: &mut [AfPacketPort; 2], tag: Option<VlanTag>, is_over: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut burst = Burst::with_capacity(0);
    while !is_over.load(Ordering::Relaxed) {
        let mut is_idle = true;
        for from in 0..2 {
            is_idle &= ports[from].rx_burst(&mut burst).unwrap() == 0;
            note(&burst, &mut seen);
            let (had, has) = if from == 0 { (None, tag) } else { (tag, None) };
            for at in 0..burst.len() {
                let vlan = &mut burst.live_mut(at).unwrap().vlan;
                assert_eq!(mem::replace(vlan, has), had);
            }
            while !burst.is_empty() {
                ports[1 - from].tx_burst(&mut burst).unwrap();
            }
        }
        if is_idle {
            let fds: Vec<_> = ports.iter().map(descriptor).collect();
            sys::wait(&fds, 20).unwrap();
        }
    }
    seen.stats = ports.each_ref().map(Port::stats);
    seen
}

fn descriptor(port: &AfPacketPort) -> BorrowedFd<'_> {
    let Readiness::Descriptor(fd) = port.readiness() else { panic!("it has one") };
    fd
}

fn note(burst: &Burst, seen: &mut Seen) {
    for (index, frame) in burst.iter().enumerate() {
        let live = burst.live(index).unwrap();
        seen.superframes += u64::from(live.segments.is_some());
        seen.unfinished += u64::from(matches!(live.checksum, ChecksumState::Unfinished { .. }));
        seen.longest = seen.longest.max(frame.bytes.len());
    }
}
