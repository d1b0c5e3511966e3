//! The kernel as judge of how superframes are cut: a device receives one, it is routed, and has to be cut on its way
//! out through another that takes none. What comes out is what [`Superframe`] makes of it, byte for byte.

use std::fs;
use std::time::{Duration, Instant};

use packet::craft::{Addresses, Craft, Message};
use packet::tcp::Flags;
use packet::{Checksums, Headers, L4, Link, Superframe, checksum, parse, tcp, udp};
use pktio::{Burst, ChecksumState, LiveMeta, Port, SegmentKind, Segments, TunConfig, TunPort};

use super::joined::pool;
use super::namespace::Namespace;

const V4: Addresses = Addresses::V4 { source: [10, 77, 0, 5], destination: [10, 88, 0, 9] };

fn v6() -> Addresses {
    let address = |network: u8, host: u8| {
        let mut address = [0; 16];
        (address[0], address[1], address[15]) = (0xfd, network, host);
        address
    };
    Addresses::V6 { source: address(0x77, 5), destination: address(0x88, 9) }
}

fn router() -> Option<(Namespace, [TunPort; 2])> {
    let router = Namespace::new()?;
    let pool = pool(256);
    let ports = router.run(move || {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        ["tun0", "tun1"].map(|name| {
            let name = name.to_string();
            let config =
                TunConfig { name, queues: 1, offload: false, burst_frames: 64, lanes: None };
            TunPort::open(&config, &pool).unwrap().pop().unwrap()
        })
    });
    for (device, network) in [("tun0", 77), ("tun1", 88)] {
        router.command(&format!("ip addr add 10.{network}.0.1/24 dev {device}"));
        router.command(&format!("ip addr add fd{network}::1/64 dev {device} nodad"));
        router.command(&format!("ip link set {device} mtu 1400 up"));
    }
    Some((router, ports))
}

fn headers(frame: &[u8]) -> Headers {
    parse(Link::Raw, frame, frame.len(), Checksums::Ignore)
}

/// A superframe as a sender hands it over, and what its vnet header says of it.
fn superframe(
    addresses: Addresses,
    message: Message,
    len: usize,
    size: u16,
) -> (Vec<u8>, LiveMeta) {
    let is_tcp = matches!(message, Message::Tcp { .. });
    let mut craft = Craft::new(addresses, message);
    (craft.ethernet, craft.payload_len, craft.id) = (None, len, 0xfffe);
    let mut frame = craft.frame();
    let L4::Upper(upper) = headers(&frame).l4 else { panic!("a transport header") };
    let rest = (frame.len() - upper.offset) as u16;
    let pseudo = match addresses {
        Addresses::V4 { source, destination } => {
            checksum::pseudo_v4(source, destination, upper.protocol, rest)
        }
        Addresses::V6 { source, destination } => {
            checksum::pseudo_v6(source, destination, upper.protocol, rest.into())
        }
    };
    let field = if is_tcp { tcp::CHECKSUM } else { udp::CHECKSUM };
    frame[upper.offset..][field.clone()].copy_from_slice(&pseudo.to_be_bytes());
    let kind = match (is_tcp, addresses) {
        (true, Addresses::V4 { .. }) => SegmentKind::TcpV4,
        (true, Addresses::V6 { .. }) => SegmentKind::TcpV6,
        (false, _) => SegmentKind::UdpDatagrams,
    };
    let (start, offset) = (upper.offset as u16, field.start as u16);
    let live = LiveMeta {
        checksum: ChecksumState::Unfinished { start, offset },
        segments: Some(Segments { size, kind }),
        ..LiveMeta::default()
    };
    (frame, live)
}

/// What this crate's callers cut it to, after a router has lowered its time to live.
fn ours(mut frame: Vec<u8>, size: u16) -> Vec<Vec<u8>> {
    let at = if frame[0] >> 4 == 4 { 8 } else { 7 };
    frame[at] -= 1;
    let cut = Superframe::new(&frame, &headers(&frame), size).unwrap();
    let write = |index| {
        let mut room = vec![0; cut.piece_len(index).unwrap()];
        cut.write(index, &mut room).unwrap();
        room
    };
    (0..cut.count()).map(write).collect()
}

/// What the kernel cuts it to.
fn kernel(ports: &mut [TunPort; 2], frame: &[u8], live: LiveMeta, wanted: usize) -> Vec<Vec<u8>> {
    let mut made = pool(1).take().unwrap();
    assert!(made.extend(frame));
    *made.live_mut() = live;
    let mut burst = Burst::with_capacity(0);
    burst.push_frame(made);
    assert_eq!(ports[0].tx_burst(&mut burst).unwrap(), 1);
    assert_eq!(ports[0].stats().tx_refused, 0, "{live:?} {}", frame.len());
    let began = Instant::now();
    let mut cut = Vec::new();
    while cut.len() < wanted && began.elapsed() < Duration::from_secs(10) {
        ports[1].rx_burst(&mut burst).unwrap();
        // What the router says of itself is neither TCP nor UDP.
        let is_cut = |bytes: &&[u8]| match headers(bytes).l4 {
            L4::Upper(upper) => matches!(upper.protocol, tcp::PROTOCOL | udp::PROTOCOL),
            _ => false,
        };
        cut.extend(burst.iter().map(|frame| frame.bytes).filter(is_cut).map(<[u8]>::to_vec));
    }
    cut
}

#[test]
fn the_kernel_cuts_as_we_do() {
    let Some((_router, mut ports)) = router() else { return };
    let all = Flags(!(Flags::SYN.0 | Flags::RST.0 | Flags::URG.0));
    for addresses in [V4, v6()] {
        // The kernel takes no more than 128 datagrams at once.
        for (len, size) in [(1001, 1000), (30_000, 1300), (4000, 1000), (120, 1), (61, 7)] {
            for message in [Message::tcp(80, 4000, all), Message::udp(53, 4000)] {
                let (frame, live) = superframe(addresses, message, len, size);
                let expected = ours(frame.clone(), size);
                let cut = kernel(&mut ports, &frame, live, expected.len());
                assert_eq!(cut, expected, "{len} bytes to {size}");
            }
        }
    }
}
