//! Two ends of a tunnel over the loopback device, whose ports and workers the tests drive by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;

use pktio::{Burst, Envelope, FrameMeta, LinkType, LiveMeta, Lost, Pool, Port, Timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(super) use super::super::hostile::cut;
pub(super) use super::super::hostile::settings::{MTU, inside, peer, settings};
use super::super::worker::Worker;
use super::super::{Site, TunnelPort};
use crate::config::tunnel::TunnelSettings;

/// After that what is waited for does not come.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// One end of a tunnel.
pub(super) struct End {
    pub(super) site: Arc<Site>,
    pub(super) port: TunnelPort,
    pub(super) worker: Worker,
}

/// The numbers of offered frames that were sent, wait, or were lost.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Offered {
    pub(super) sent: usize,
    pub(super) waiting: usize,
    pub(super) lost: Vec<Lost>,
}

/// The frames that came, out of their envelopes.
#[derive(Default)]
pub(super) struct Came {
    pub(super) frames: Vec<(Vec<u8>, LiveMeta)>,
    pub(super) lost: Vec<Lost>,
    /// The opened packets among the lost frames.
    pub(super) lost_packets: Vec<Vec<u8>>,
}

impl Came {
    /// Packets, superframes cut.
    pub(super) fn packets(&self) -> Vec<Vec<u8>> {
        self.frames.iter().flat_map(|(bytes, live)| cut(bytes, Some(live))).collect()
    }
}

impl End {
    pub(super) fn new(settings: &TunnelSettings) -> Self {
        let site = Arc::new(Site::open(&settings.name, settings).expect("a socket"));
        Self {
            port: TunnelPort::new(Arc::clone(&site)),
            worker: Worker::new(Arc::clone(&site)),
            site,
        }
    }

    /// Where it is on the loopback device.
    pub(super) fn place(&self, is_v6: bool) -> SocketAddr {
        let ip: IpAddr =
            if is_v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
        SocketAddr::new(ip, self.site.socket.port())
    }

    /// Seals a burst.
    pub(super) fn seal(&mut self, burst: &mut Burst) -> Offered {
        let mut offered = Offered::default();
        offered.waiting = self.worker.seal(burst, &mut |why, _| offered.lost.push(why));
        offered
    }

    /// Seals a burst and sends it.
    pub(super) fn send(&mut self, mut burst: Burst) -> Offered {
        let mut offered = self.seal(&mut burst);
        offered.sent = self.port.tx_burst(&mut burst).expect("a socket");
        assert!(burst.is_empty(), "there is room in the kernel");
        offered
    }

    pub(super) fn send_packets(&mut self, packets: &[Vec<u8>]) -> Offered {
        let mut burst = Burst::new();
        packets.iter().for_each(|packet| burst.push(packet, raw(packet.len())));
        self.send(burst)
    }

    /// Receives one burst, which may be empty.
    pub(super) fn receive(&mut self, came: &mut Came) {
        let mut burst = Burst::new();
        self.port.rx_burst(&mut burst).expect("a socket");
        self.open(&mut burst, came);
    }

    pub(super) fn open(&mut self, burst: &mut Burst, came: &mut Came) {
        self.worker.open(burst, &mut |why, frame| {
            came.lost.push(why);
            if frame.meta.link_type == LinkType::RAW {
                came.lost_packets.push(frame.bytes.to_vec());
            }
        });
        let frames = (0..burst.len()).filter_map(|at| {
            Some((burst.get(at)?.bytes.to_vec(), burst.live(at).copied().unwrap_or_default()))
        });
        came.frames.extend(frames);
    }

    /// Waits until there is something to receive.
    pub(super) fn wait(&self) {
        let mut polled = [PollFd::from_borrowed_fd(self.site.own.as_fd(), PollFlags::IN)];
        let ready = poll(&mut polled, Some(&PATIENCE)).expect("poll");
        assert!(ready > 0, "nothing comes");
    }

    /// Receives until there are `count` packets.
    pub(super) fn receive_packets(&mut self, count: usize) -> Came {
        let mut came = Came::default();
        while came.packets().len() < count {
            self.wait();
            self.receive(&mut came);
        }
        came
    }
}

pub(super) fn raw(len: usize) -> FrameMeta {
    FrameMeta {
        link_type: LinkType::RAW,
        wire_length: len as u32,
        timestamp: Some(Timestamp::now()),
        ..FrameMeta::default()
    }
}

/// Two ends that know each other; only the first knows where the other is.
pub(super) struct Pair {
    pub(super) a: End,
    pub(super) b: End,
}

impl Pair {
    pub(super) fn new(is_v6: bool) -> Self {
        let b = End::new(&settings(2, vec![peer(1, None)]));
        let a = End::new(&settings(1, vec![peer(2, Some(b.place(is_v6)))]));
        Self { a, b }
    }

    /// A pair with a session that both use.
    pub(super) fn established(is_v6: bool) -> Self {
        let mut pair = Self::new(is_v6);
        pair.establish();
        pair
    }

    /// Makes the first end begin a session.
    pub(super) fn establish(&mut self) {
        let probe = [super::packets::ping(1, 2, 0)];
        assert_eq!(self.a.send_packets(&probe).waiting, 1);
        self.shake_hands();
        assert_eq!(self.b.receive_packets(1).packets(), probe);
    }

    /// Carries the initiation of the first end there, and the response back.
    pub(super) fn shake_hands(&mut self) {
        let mut came = Came::default();
        self.b.wait();
        self.b.receive(&mut came);
        self.a.wait();
        self.a.receive(&mut came);
        assert!(came.frames.is_empty() && came.lost.is_empty(), "{:?}", came.lost);
    }
}

/// Asserts that all chunks of a pool are back, except for `kept` that a port keeps.
#[track_caller]
pub(super) fn assert_whole(pool: &Pool, kept: usize) {
    assert_eq!(pool.free() + kept, pool.chunks());
}
