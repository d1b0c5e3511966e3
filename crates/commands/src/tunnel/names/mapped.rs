//! [`Mapped`]: the socket by which this host's router is asked to map a port to the tunnel, and where that router is.
//!
//! Contract: what it needs is opened before privileges are given up. Asked is the router of the default route, if this
//! host's address of IPv4 is not routed on the internet; that is looked up again each 10 s. A mapping is
//! ended with this, or ends by itself within two hours.
//!
//! Source: `/proc/net/route`, as Linux 6.18 `net/ipv4/fib_trie.c` (`fib_route_seq_show`) prints it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use nix::ifaddrs::getifaddrs;
use overlay::{LONGEST_ANSWER, PortMapping, ROUTER_PORT};
use rustix::event::{PollFd, PollFlags};
use tunnel::{Entropy, SystemEntropy};

/// Flags of a route that is up, and leads to a router.
const UP_BY_ROUTER: u32 = 3;
/// Datagrams that are taken in a turn.
const BURST: usize = 32;
/// Bytes of the kernel's table that are read.
const LONGEST_TABLE: u64 = 1 << 20;

/// The client of this host's router.
pub(super) struct Mapped {
    socket: UdpSocket,
    routes: File,
    router: Option<Ipv4Addr>,
    client: PortMapping,
}

impl Mapped {
    /// Opens what is needed.
    ///
    /// # Errors
    /// There is no socket of IPv4, no table of routes, or no randomness.
    pub(super) fn open() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_nonblocking(true)?;
        let mut nonce = [0; 12];
        SystemEntropy::new().fill(&mut nonce).map_err(io::Error::other)?;
        let routes = File::open("/proc/net/route")?;
        Ok(Self { socket, routes, router: None, client: PortMapping::new(nonce) })
    }

    pub(super) fn source(&self) -> PollFd<'_> {
        PollFd::new(&self.socket, PollFlags::IN)
    }

    /// Looks where the router is, for a tunnel at this port.
    pub(super) fn look(&mut self, port: u16, now: u64) {
        let way = self.default_route().and_then(|(device, router)| {
            let own = address_of(&device).filter(|own| is_inner(*own))?;
            Some((router, SocketAddrV4::new(own, port)))
        });
        self.router = way.map(|(router, _)| router);
        self.client.set_inner(way.map(|(_, inner)| inner), now);
    }

    /// Hears the router, and asks it what is due.
    pub(super) fn turn(&mut self, now: u64) {
        let Some(router) = self.router.map(|it| SocketAddr::from((it, ROUTER_PORT))) else {
            return;
        };
        let mut buffer = [0; LONGEST_ANSWER];
        for _ in 0..BURST {
            let Ok((length, from)) = self.socket.recv_from(&mut buffer) else { break };
            if from == router {
                self.client.receive(&buffer[..length], now);
            }
        }
        for request in self.client.requests(now) {
            let _ = self.socket.send_to(&request, router);
        }
    }

    /// Where the tunnel is reached by the mapping.
    pub(super) fn outer(&self, now: u64) -> Option<SocketAddr> {
        self.client.outer(now).map(SocketAddr::V4)
    }

    /// The device and the router of the default route with the lowest metric.
    fn default_route(&mut self) -> Option<(String, Ipv4Addr)> {
        let mut table = String::new();
        self.routes.seek(SeekFrom::Start(0)).ok()?;
        Read::by_ref(&mut self.routes).take(LONGEST_TABLE).read_to_string(&mut table).ok()?;
        default_route(&table)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let Some(router) = self.router else { return };
        for request in self.client.farewell() {
            let _ = self.socket.send_to(&request, (router, ROUTER_PORT));
        }
    }
}

/// The device and the router of the default route with the lowest metric, of a table as the kernel prints it: addresses are
/// numbers in the machine's byte order.
fn default_route(table: &str) -> Option<(String, Ipv4Addr)> {
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [device, to, router, flags, _, _, metric, mask, ..] = words[..] else { return None };
        let number = |word| u32::from_str_radix(word, 16).ok();
        let leads = number(flags)? & UP_BY_ROUTER == UP_BY_ROUTER;
        let router = Ipv4Addr::from(number(router)?.to_ne_bytes());
        let is_default = leads && number(to)? == 0 && number(mask)? == 0;
        is_default.then(|| Some((metric.parse::<u32>().ok()?, device.to_owned(), router)))?
    };
    let best = table.lines().filter_map(of_line).min_by_key(|(metric, ..)| *metric)?;
    Some((best.1, best.2))
}

/// The first address of a device.
fn address_of(device: &str) -> Option<Ipv4Addr> {
    let mut all = getifaddrs().ok()?.filter(|it| it.interface_name == device);
    all.find_map(|it| Some(it.address?.as_sockaddr_in()?.ip()))
}

/// Whether an address is one behind a router (RFC 1918, RFC 6598).
fn is_inner(address: Ipv4Addr) -> bool {
    address.is_private() || address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        wlan0\t00000000\t0101A8C0\t0003\t0\t0\t20\t00000000\t0\t0\t0\n\
        tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth1\t0000000A\t0201A8C0\t0003\t0\t0\t0\t000000FF\t0\t0\t0\n\
        eth2\t00000000\t0301A8C0\t0002\t0\t0\t0\t00000000\t0\t0\t0\n";

    #[test]
    fn the_router_is_that_of_the_default_route_with_the_lowest_metric() {
        let (device, router) = default_route(TABLE).unwrap();
        let expected =
            if cfg!(target_endian = "little") { [192, 168, 1, 1] } else { [1, 1, 168, 192] };
        assert_eq!((device.as_str(), router.octets()), ("wlan0", expected));
        for table in ["", "Iface\n", "eth0\t0\tzz\t3\t0\t0\t0\t0", &TABLE[..100]] {
            assert_eq!(default_route(table), None, "{table}");
        }
    }

    #[test]
    fn addresses_behind_routers_are_told_from_others() {
        for inner in ["10.1.2.3", "172.31.0.1", "192.168.7.7", "100.64.0.1", "100.127.255.255"] {
            assert!(is_inner(inner.parse().unwrap()), "{inner}");
        }
        for outer in ["100.63.0.1", "100.128.0.1", "203.0.113.1", "172.32.0.1", "9.9.9.9"] {
            assert!(!is_inner(outer.parse().unwrap()), "{outer}");
        }
    }
}
