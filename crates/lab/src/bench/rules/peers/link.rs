//! [`Loop`]: datagrams over loopback, each of which runs INPUT once.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use rules::model::Family;

use crate::bench::rules::clock;

/// Datagrams from loopback to itself.
pub(super) struct Loop {
    socket: UdpSocket,
}

impl Loop {
    pub(super) fn new(family: Family) -> io::Result<Self> {
        let socket = match family {
            Family::Ipv6 => UdpSocket::bind("[::1]:0")?,
            _ => UdpSocket::bind("127.0.0.1:0")?,
        };
        socket.connect(socket.local_addr()?)?;
        socket.set_read_timeout(Some(Duration::from_secs(2)))?;
        Ok(Self { socket })
    }

    /// Seconds a datagram: the least of as many as there is time for.
    pub(super) fn seconds(&self) -> io::Result<f64> {
        let mut failed = None;
        let seconds = clock::least(Duration::from_millis(300), || {
            if failed.is_none() {
                failed = self.one().err();
            }
        });
        failed.map_or(Ok(seconds), Err)
    }

    fn one(&self) -> io::Result<()> {
        self.socket.send(&[0; 56])?;
        self.socket.recv(&mut [0; 128]).map(drop)
    }
}
