//! `net_af_packet` and `net_af_xdp` over veth pairs, in a network namespace of the test's own: what one end of a line
//! is sent comes out of the other. The kernel sends frames of its own there, too, which are ignored.

use std::thread;
use std::time::Duration;

use pktio::{AfPacketConfig, AfPacketPort, Burst, FrameMeta, LinkType, Pool, Port};

use crate::child::{Draw, open, with_devices_in};

const FRAMES: usize = 200;
const LONGEST: usize = 1514;
/// An EtherType for experiments (IEEE 802).
const KIND: [u8; 2] = [0x88, 0xb5];

/// Two pairs: DPDK receives from `near0` what a test sends to `far0`, and sends it to `near1`, whose other end is
/// `far1`.
const LINKS: &str = "for at in 0 1; do \
    ip link add near$at type veth peer name far$at && \
    ip link set near$at up && ip link set far$at up || exit 1; done";

/// How often an end is asked for what has not come yet, and how long it is left alone in between.
const PATIENCE: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(1);

#[test]
fn frames_cross_two_veth_pairs_by_packet_sockets() {
    let test = "veth::frames_cross_two_veth_pairs_by_packet_sockets";
    crosses(test, ["net_af_packet0,iface=near0", "net_af_packet1,iface=near1"], 0);
}

#[test]
fn frames_cross_two_veth_pairs_by_af_xdp() {
    let test = "veth::frames_cross_two_veth_pairs_by_af_xdp";
    // A device that is closed does not free what the kernel was to receive into (22.11, `eth_dev_close`).
    crosses(test, ["net_af_xdp0,iface=near0", "net_af_xdp1,iface=near1"], 2 * FILL_RING);
}

/// Mbufs that a device of `net_af_xdp` has the kernel receive into, and some under way.
const FILL_RING: usize = 2048 + 64;

fn crosses(test: &str, devices: [&str; 2], kept: usize) {
    with_devices_in(Some(LINKS), test, &devices, |eal| {
        let [mut from, mut to] = devices.map(|device| {
            let (name, _) = device.split_once(',').unwrap();
            open(eal, name, |config| config.drain = Duration::ZERO)
        });
        let mbufs = from.mbufs();
        let pool = Pool::new(512, 2048, 0);
        let [mut source, mut sink] = ["far0", "far1"]
            .map(|interface| AfPacketPort::open(&AfPacketConfig::new(interface), &pool).unwrap());
        let sent = frames();
        let (mut burst, mut came) = (Burst::new(), Vec::new());
        let mut waiting = sent.iter();
        for _ in 0..PATIENCE {
            // Few at a time: no ring on the way is to overflow.
            for bytes in waiting.by_ref().take(8) {
                burst.push(bytes, meta_of(bytes));
            }
            source.tx_burst(&mut burst).unwrap();
            assert!(burst.is_empty(), "a socket that is idle takes eight frames");
            from.rx_burst(&mut burst).unwrap();
            to.tx_burst(&mut burst).unwrap();
            assert!(burst.is_empty(), "a device that is idle takes what came");
            to.rx_burst(&mut burst).unwrap();
            sink.rx_burst(&mut burst).unwrap();
            came.extend(
                burst.iter().filter(|frame| is_ours(frame.bytes)).map(|f| f.bytes.to_vec()),
            );
            burst.clear();
            if came.len() >= FRAMES {
                break;
            }
            thread::sleep(PAUSE);
        }
        assert_eq!(came.len(), sent.len());
        assert!(came == sent, "frames came, but other ones");
        assert_eq!((from.stats().rx_lost, to.stats().tx_copied), (0, 0));
        drop((from, to, burst));
        let missing = mbufs.all() - mbufs.free();
        assert!(missing <= kept, "{missing} mbufs of frames are missing");
    });
}

fn frames() -> Vec<Vec<u8>> {
    let mut draw = Draw(7);
    let frame = |_| {
        let length = 46 + draw.below(LONGEST - 60 + 1);
        [&[2, 0, 0, 0, 0, 1], &[2, 0, 0, 0, 0, 2], &KIND[..], &draw.bytes(length)].concat()
    };
    (0..FRAMES).map(frame).collect()
}

fn is_ours(bytes: &[u8]) -> bool {
    bytes.get(12..14) == Some(&KIND)
}

fn meta_of(bytes: &[u8]) -> FrameMeta {
    FrameMeta {
        link_type: LinkType::ETHERNET,
        wire_length: bytes.len() as u32,
        ..FrameMeta::default()
    }
}
