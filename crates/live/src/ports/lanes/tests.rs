//! The kernel's choice of lanes is that of plain code, and a flow that floods neither holds up nor loses another's packets.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use pktio::{Burst, Pool, Port, TunConfig, TunPort};

use super::*;
use crate::ports::tunnel::tests::namespace::Namespace;

const DEVICE: &str = "lanes0";
/// Packets of an IPv4 header, one of UDP, and this.
const NUMBER: usize = 4;
/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A device with these lanes in a namespace of its own.
fn open(lanes: Option<TunLanes>) -> Option<(Namespace, TunPort)> {
    let namespace = Namespace::new()?;
    let opened = namespace.run(move || {
        let pool = Pool::new(256, 64 + TunPort::FRAME_BYTES, 64);
        let name = DEVICE.to_owned();
        let config = TunConfig { name, queues: 1, offload: true, burst_frames: 32, lanes };
        TunPort::open(&config, &pool)
    });
    let port = opened.unwrap().pop().unwrap();
    for line in [
        "ip address add 10.77.0.1/24 dev lanes0",
        "ip -6 address add fd77::1/64 dev lanes0 nodad",
        "ip link set dev lanes0 mtu 1400 up",
    ] {
        namespace.command(line);
    }
    Some((namespace, port))
}

/// Whether the kernel takes the program, which takes rights that a container may not have.
fn has_lanes(port: &mut TunPort, namespace: &Namespace) -> bool {
    namespace.run(|| {
        for flow in 0..64 {
            send(flow, 1);
        }
    });
    let has = received(port).iter().any(|(_, lane)| *lane > 0);
    if !has {
        eprintln!("SKIPPED: the kernel takes no program for lanes here");
    }
    has
}

/// A socket of a flow at this address, which may take a while: a process that another test starts holds a socket that was closed
/// here until it runs its program.
fn bound(address: &str, flow: u16) -> UdpSocket {
    let until = Instant::now() + PATIENCE;
    loop {
        match UdpSocket::bind((address, 20_000 + flow)) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                thread::yield_now();
            }
            bound => return bound.unwrap(),
        }
    }
}

/// Sends `count` packets of a flow of UDP, each with its number.
fn send(flow: u16, count: u32) {
    let socket = bound("10.77.0.1", flow);
    for number in 0..count {
        socket.send_to(&number.to_be_bytes(), "10.77.0.9:9").unwrap();
    }
}

/// Packets that wait, as they are received, with their lanes.
fn received(port: &mut TunPort) -> Vec<(Vec<u8>, u16)> {
    let (mut burst, mut all) = (Burst::with_capacity(0), Vec::new());
    while port.rx_burst(&mut burst).unwrap() > 0 {
        for (at, frame) in burst.iter().enumerate() {
            all.push((frame.bytes.to_vec(), burst.live(at).unwrap().queue));
        }
    }
    all
}

/// The flow and the number of each packet that [`send`] has sent.
fn numbers(packets: &[(Vec<u8>, u16)]) -> Vec<(u16, u32)> {
    let number = |(bytes, _): &(Vec<u8>, u16)| {
        let [.., a, b, c, d] = bytes[..] else { return None };
        let port = u16::from_be_bytes([bytes[20], bytes[21]]);
        let is_ours = bytes.len() == 28 + NUMBER && bytes[9] == 17 && port >= 20_000;
        is_ours.then(|| (port - 20_000, u32::from_be_bytes([a, b, c, d])))
    };
    packets.iter().filter_map(number).collect()
}

/// The lane of a packet, in plain words.
fn expected(bytes: &[u8]) -> u16 {
    let word =
        |at: usize| bytes.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().unwrap()));
    let (mut words, protocol, ports): (Vec<_>, _, _) = match bytes[0] >> 4 {
        4 => {
            let whole = u16::from_be_bytes([bytes[6], bytes[7]]) & 0x3fff == 0;
            let at = usize::from(bytes[0] & 15) * 4;
            (vec![word(12), word(16)], bytes[9], whole.then_some(at))
        }
        6 => ((8..40).step_by(4).map(word).collect(), bytes[6], Some(40)),
        _ => return 0,
    };
    if let (Some(at), 6 | 17) = (ports, protocol) {
        words.push(word(at));
    }
    let Some(words) = words.into_iter().collect::<Option<Vec<u32>>>() else { return 0 };
    let hash = words.into_iter().fold(0_u64, |hash, word| hash.wrapping_mul(31) ^ u64::from(word));
    let hash = hash.wrapping_mul(0x61c8_8647) >> 16 & 0xffff;
    match protocol {
        6 => OTHERS + (hash % u64::from(LANES - OTHERS)) as u16,
        _ => (hash % u64::from(OTHERS)) as u16,
    }
}

#[test]
fn the_kernel_chooses_lanes_as_plain_code_does() {
    let Some((namespace, mut port)) = open(Some(lanes())) else { return };
    if !has_lanes(&mut port, &namespace) {
        return;
    }
    namespace.run(|| {
        for flow in 0..100_u16 {
            send(flow, 2);
            let socket = bound("fd77::1", flow);
            socket.send_to(&[1; 33], ("fd77::9", 9 + flow)).unwrap();
            // Fragments of both families.
            socket.send_to(&[1; 3000], ("fd77::a", 9)).unwrap();
            let to = (Ipv4Addr::new(10, 77, 0, 2 + flow as u8), 9);
            bound("10.77.0.1", flow).send_to(&[1; 3000], to).unwrap();
        }
    });
    let all = received(&mut port);
    let mut lanes = BTreeMap::new();
    for (bytes, lane) in &all {
        assert_eq!(*lane, expected(bytes), "{bytes:x?}");
        *lanes.entry(*lane).or_insert(0) += 1;
    }
    assert!(all.len() >= 700 && lanes.len() == usize::from(OTHERS), "{} {lanes:?}", all.len());
}

#[test]
fn tcp_has_lanes_of_its_own() {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
    use std::os::fd::AsRawFd;
    let Some((namespace, mut port)) = open(Some(lanes())) else { return };
    if !has_lanes(&mut port, &namespace) {
        return;
    }
    namespace.run(|| {
        for number in 0..200 {
            let flags = SockFlag::SOCK_NONBLOCK;
            let one = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
            let to = SockaddrIn::new(10, 77, 0, 9, 1000 + number);
            assert!(connect(one.as_raw_fd(), &to).is_err(), "nobody answers");
        }
    });
    let all = received(&mut port);
    let tcp: Vec<_> = all.iter().filter(|(bytes, _)| bytes[0] == 0x45 && bytes[9] == 6).collect();
    let mut seen = vec![0; usize::from(LANES)];
    for (bytes, lane) in &tcp {
        assert_eq!(*lane, expected(bytes));
        seen[usize::from(*lane)] += 1;
    }
    let (others, own) = seen.split_at(OTHERS.into());
    assert!(tcp.len() >= 200 && own.iter().all(|count| *count > 0), "{seen:?}");
    assert!(others.iter().all(|count| *count == 0), "{seen:?}");
}

/// What comes of a flow that floods, and then one packet of each of some others.
fn flooded(lanes: Option<TunLanes>) -> Option<Vec<(u16, u32)>> {
    let is_plain = lanes.is_none();
    let (namespace, mut port) = open(lanes)?;
    if !is_plain && !has_lanes(&mut port, &namespace) {
        return None;
    }
    received(&mut port);
    namespace.run(|| {
        send(0, 3000);
        (1..65).for_each(|flow| send(flow, 1));
    });
    let began = Instant::now();
    let mut all = Vec::new();
    while all.is_empty() && began.elapsed() < PATIENCE {
        all = numbers(&received(&mut port));
    }
    Some(all)
}

#[test]
fn a_flow_that_floods_holds_up_only_those_of_its_lane() {
    let Some(all) = flooded(Some(lanes())) else { return };
    let flood: Vec<u32> =
        all.iter().filter(|(flow, _)| *flow == 0).map(|(_, number)| *number).collect();
    // What fits into a lane, in order, and nothing twice.
    assert!((100..3000).contains(&flood.len()), "{}", flood.len());
    assert!(flood.is_sorted_by(|one, next| one < next), "{flood:?}");
    let others = || all.iter().enumerate().filter(|(_, (flow, _))| *flow != 0);
    // A quarter of the others share its lane, and are lost as they were before there were lanes.
    assert!((32..64).contains(&others().count()), "{}", others().count());
    let last = others().map(|(place, _)| place).max().unwrap();
    assert!(last < 256, "the last one of the others comes as number {last} of {}", all.len());
    let Some(all) = flooded(None) else { return };
    assert!(all.iter().all(|(flow, _)| *flow == 0), "one queue has no room for others");
}
