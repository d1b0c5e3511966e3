//! A device with a UDP socket, whose end of the tunnel has one peer, the cloud.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use overlay::{Carrier, JoinUrl, PORT};
use tunnel::{Config, Offer, PeerConfig, Prefix, PrivateKey, SystemEntropy, Tunnel};

pub(crate) struct Device {
    socket: UdpSocket,
    carrier: Carrier,
    clock: Instant,
    own: SocketAddr,
    directory: SocketAddr,
}

impl Device {
    /// A device at this address inside the tunnel; the cloud is at the other one.
    pub(crate) fn new(
        url: &JoinUrl,
        secret: PrivateKey,
        (own, directory): (IpAddr, IpAddr),
        clock: Instant,
    ) -> Self {
        let endpoint = url.endpoints[0].parse().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(endpoint).unwrap();
        socket.set_nonblocking(true).unwrap();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let config = Config {
            key: secret,
            offer: Offer::of_this_machine(),
            started: clock.elapsed().as_nanos() as u64,
            started_unix: unix.as_nanos() as u64,
            mtu: 1_420,
        };
        let mut tunnel = Tunnel::new(config, Box::new(SystemEntropy::new())).unwrap();
        let whole = Prefix::new(directory, if directory.is_ipv4() { 32 } else { 128 }).unwrap();
        let peer = PeerConfig {
            endpoint: Some(endpoint),
            allowed: vec![whole],
            ..PeerConfig::new(url.key)
        };
        tunnel.add_peer(&peer).unwrap();
        let [own, directory] = [own, directory].map(|at| SocketAddr::new(at, PORT));
        Self { socket, carrier: Carrier::new(tunnel), clock, own, directory }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        self.carrier.send(self.own, self.directory, message, self.now());
    }

    /// Does what is due, and returns the messages that came.
    pub(crate) fn turn(&mut self) -> Vec<Vec<u8>> {
        self.carrier.tick(self.now());
        let (mut came, mut buffer) = (Vec::new(), [0; 2_048]);
        // An error is that of a datagram that was sent to a killed cloud.
        while let Some(length) = match self.socket.recv(&mut buffer) {
            Ok(length) => Some(length),
            Err(error) => (error.kind() != std::io::ErrorKind::WouldBlock).then_some(0),
        } {
            let (from, now) = (self.socket.peer_addr().unwrap(), self.now());
            let carried = self.carrier.receive(&mut buffer[..length], from, now).message();
            came.extend(carried.map(|it| buffer[it.payload].to_vec()));
        }
        while let Some((_, datagram)) = self.carrier.take() {
            // What is lost is sent again.
            let _ = self.socket.send(&datagram);
        }
        came
    }
}
