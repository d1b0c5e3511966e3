//! One end: a socket with batches and frames, and what it received.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use pktio::Pool;
use pktio::datagram::{
    Arrived, DatagramConfig, DatagramSocket, Message, RecvBatch, SendBatch, Sent,
};

use crate::tun::sys;

/// Milliseconds that a datagram may take.
const PATIENCE: i32 = 10_000;

pub(super) struct End {
    pub(super) socket: DatagramSocket,
    pub(super) send: SendBatch,
    pub(super) receive: RecvBatch,
    pool: Pool,
}

/// A message that came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Came {
    pub(super) bytes: Vec<u8>,
    pub(super) arrived: Arrived,
}

impl Came {
    /// Returns the datagrams of the message.
    pub(super) fn datagrams(&self) -> Vec<Vec<u8>> {
        if self.bytes.is_empty() {
            return vec![Vec::new()];
        }
        self.bytes.chunks(self.arrived.segment).map(<[u8]>::to_vec).collect()
    }
}

impl End {
    pub(super) fn new() -> Self {
        Self::of(DatagramSocket::bind(&DatagramConfig::default()).unwrap(), 65_600)
    }

    /// With chunks of this many bytes, 16 of them headroom.
    pub(super) fn of(socket: DatagramSocket, chunk_bytes: usize) -> Self {
        let pool = Pool::new(64, chunk_bytes, 16);
        Self { socket, send: SendBatch::default(), receive: RecvBatch::new(32), pool }
    }

    pub(super) fn at(&self, ip: IpAddr) -> SocketAddr {
        SocketAddr::new(ip, self.socket.port())
    }

    pub(super) fn send<'a>(&mut self, messages: impl IntoIterator<Item = Message<'a>>) -> Sent {
        self.socket.send(&mut self.send, messages)
    }

    /// What is there now.
    pub(super) fn receive(&mut self) -> Vec<Came> {
        let (mut spare, mut came) = (Vec::new(), Vec::new());
        self.pool.fill(&mut spare, 32);
        let told = self.socket.recv(&mut self.receive, &mut spare, |frame, arrived| {
            assert_eq!(frame.headroom(), 16);
            came.push(Came { bytes: frame.bytes().to_vec(), arrived });
        });
        assert_eq!(told.unwrap(), came.len());
        came
    }

    /// Waits until `datagrams` datagrams came; returns the messages that they came in.
    pub(super) fn messages(&mut self, datagrams: usize) -> Vec<Came> {
        let (mut came, mut count) = (Vec::new(), 0);
        while count < datagrams {
            let fd = self.socket.as_fd();
            assert!(sys::wait(&[fd], PATIENCE).unwrap(), "{count} came of {datagrams}");
            let more = self.receive();
            count += more.iter().map(|one| one.datagrams().len()).sum::<usize>();
            came.extend(more);
        }
        came
    }

    /// Waits until `count` datagrams came.
    pub(super) fn datagrams(&mut self, count: usize) -> Vec<Vec<u8>> {
        self.messages(count).iter().flat_map(Came::datagrams).collect()
    }

    /// Waits for a message.
    pub(super) fn one(&mut self) -> Came {
        self.messages(1).swap_remove(0)
    }
}

/// One datagram.
pub(super) fn message(bytes: &[u8], to: SocketAddr) -> Message<'_> {
    Message { bytes, segment: 0, to, from: None, tos: 0 }
}
