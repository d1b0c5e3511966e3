//! [`Pair`]: two hosts beside each other, who know where the other one is; and a third, who has no end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use super::{Host, Namespace, Overlay, PORT, UNDER, inner, link};
use crate::bench::tunnel::overlay::Peer;

/// Outer addresses of both hosts on their link.
const OUTER: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
/// Where the first one moves to.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);
/// The second host's address on its link to the third.
const TOWARDS_THIRD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// Seconds of silence after which each end says something.
const KEEPALIVE: u16 = 25;

/// Both hosts, running.
pub(in crate::bench::tunnel) struct Pair {
    pub(in crate::bench::tunnel) near: Host,
    pub(in crate::bench::tunnel) far: Host,
    /// Somebody else, who reaches the far host.
    pub(in crate::bench::tunnel) third: Namespace,
}

impl Pair {
    /// Both ends up, and packets going.
    pub(in crate::bench::tunnel) fn new(overlay: &dyn Overlay) -> io::Result<Self> {
        let way = || format!("dev {UNDER}");
        let mut near = Host::new(Namespace::new()?, inner(1), PORT, way())?;
        let mut far = Host::new(Namespace::new()?, inner(2), PORT, way())?;
        let third = Namespace::new()?;
        let [one, other] = OUTER.map(|address| format!("{address}/24"));
        link((&near.place, UNDER, &one), (&far.place, UNDER, &other))?;
        link((&third, UNDER, "198.51.100.1/24"), (&far.place, "third", "198.51.100.2/24"))?;
        near.end.peers = vec![peer(&far, OUTER[1])];
        far.end.peers = vec![peer(&near, OUTER[0])];
        let mut pair = Self { near, far, third };
        pair.far.start(overlay)?;
        pair.near.start(overlay)?;
        pair.near.reach(pair.far.end.address)?;
        Ok(pair)
    }

    /// Where the third host finds the far one.
    pub(in crate::bench::tunnel) fn target(&self) -> Ipv4Addr {
        TOWARDS_THIRD
    }

    /// Gives the near host another outer address in place of its own.
    pub(in crate::bench::tunnel) fn move_near(&self) -> io::Result<()> {
        let [from, _] = OUTER;
        self.near
            .place
            .ip(&format!("addr del {from}/24 dev {UNDER}\naddr add {ELSEWHERE}/24 dev {UNDER}\n"))
    }
}

fn peer(host: &Host, outer: Ipv4Addr) -> Peer {
    Peer {
        key: host.end.key.public(),
        endpoint: Some(SocketAddr::V4(SocketAddrV4::new(outer, PORT))),
        address: host.end.address,
        keepalive: KEEPALIVE,
    }
}
