//! A socket that takes only some of a burst, as root: what it sent waits for a neighbour that says nothing for a while, and
//! there is room for little more.

use std::net::SocketAddr;

use pktio::{Burst, Port};

use super::ends::{End, Pair, peer, raw, settings};
use super::namespace::Namespace;
use super::packets::datagram;

/// Packets of a burst: of several messages, if the kernel cuts them.
const COUNT: usize = 90;
/// Bytes that may wait to be sent; the kernel makes it more.
const ROOM: usize = 1;

/// Two ends, and the namespaces that they are in.
pub(super) struct Apart {
    pub(super) near: Namespace,
    pub(super) far: Namespace,
    pub(super) pair: Pair,
}

impl Apart {
    /// Makes a pair with a session. `None`, with a message, where the user may not.
    pub(super) fn new() -> Option<Self> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        near.command(&format!("ip link add n0 type veth peer name f0 netns {}", far.thread));
        for (namespace, device, address) in [(&near, "n0", "10.9.0.1"), (&far, "f0", "10.9.0.2")] {
            namespace.command(&format!("ip address add {address}/24 dev {device}"));
            namespace.command(&format!("ip link set {device} up"));
        }
        let b = far.run(|| End::new(&settings(2, vec![peer(1, None)])));
        let place = SocketAddr::from(([10, 9, 0, 2], b.site.socket.port()));
        let a = near.run(move || End::new(&settings(1, vec![peer(2, Some(place))])));
        let mut pair = Pair { a, b };
        pair.establish();
        Some(Self { near, far, pair })
    }

    /// Makes the far end ignore neighbour requests of the near one.
    fn hush(&self) {
        self.far.command("ip link set f0 arp off");
        self.near.command("ip neighbour flush dev n0");
    }

    /// Makes the far end answer again.
    fn speak(&self) {
        self.far.command("ip link set f0 arp on");
    }
}

fn bytes(burst: &Burst) -> Vec<Vec<u8>> {
    burst.iter().map(|frame| frame.bytes.to_vec()).collect()
}

#[test]
fn what_a_socket_does_not_take_is_left_and_counted_and_nothing_is_sent_twice() {
    let Some(mut apart) = Apart::new() else { return };
    apart.pair.a.site.socket.set_buffer(ROOM).unwrap();
    apart.hush();
    let packets: Vec<_> = (0..COUNT).map(|at| datagram(1, 2, false, 900 - at).frame()).collect();
    let mut burst = Burst::new();
    packets.iter().for_each(|packet| burst.push(packet, raw(packet.len())));
    let before = apart.pair.a.port.stats();
    assert_eq!(apart.pair.a.seal(&mut burst).lost, []);
    let sealed = bytes(&burst);
    let mut taken = apart.pair.a.port.tx_burst(&mut burst).unwrap();
    assert!(0 < taken && taken < COUNT, "{taken}");
    assert_eq!(bytes(&burst), sealed[taken..], "what is left is what was not taken");
    let stats = apart.pair.a.port.stats();
    let counted = (stats.tx_frames - before.tx_frames, stats.tx_full - before.tx_full);
    assert_eq!(counted, (taken as u64, (COUNT - taken) as u64));
    apart.speak();
    let came = apart.pair.b.receive_packets(taken);
    assert_eq!((came.packets(), came.lost), (packets[..taken].to_vec(), vec![]));
    // A sender that offers the rest again gets each packet across once.
    while !burst.is_empty() {
        let more = apart.pair.a.port.tx_burst(&mut burst).unwrap();
        let came = apart.pair.b.receive_packets(more);
        assert_eq!(came.packets(), packets[taken..taken + more]);
        assert_eq!(came.lost, [], "none comes twice");
        taken += more;
    }
    assert_eq!(taken, COUNT);
}
