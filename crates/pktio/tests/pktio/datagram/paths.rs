//! Between network namespaces, as root: paths that take less than their ends, addresses and devices that go away.

use std::net::IpAddr;

use pktio::datagram::{DatagramConfig, DatagramSocket, Message, Refusal, Unsent};

use super::end::{Came, End, message};
use crate::af_packet::wire::join;
use crate::tun::namespace::Namespace;

/// `near` and `far`, and a router between them whose link to `far` takes 1,280 bytes.
struct Path {
    near: Namespace,
    _router: Namespace,
    far: Namespace,
}

const NEAR: [&str; 2] = ["10.1.0.1", "fd01::1"];
const FAR: [&str; 2] = ["10.2.0.1", "fd02::1"];
const MTU: usize = 1280;
/// Bytes of headers before a datagram's: of UDP, and of either IP.
const HEADERS: [usize; 2] = [28, 48];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Path {
    /// `None`, where the user cannot; that was said.
    fn new() -> Option<Self> {
        let (near, router, far) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        router.run(|| {
            for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                std::fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap();
            }
        });
        join((&near, "n0"), (&router, "r0"));
        join((&far, "f0"), (&router, "r1"));
        for (namespace, device, number) in [(&near, "n0", 1), (&far, "f0", 2)] {
            namespace.command("ip link set lo up");
            let router_device = if number == 1 { "r0" } else { "r1" };
            for (family, bits, host) in [("10.", 24, ".0."), ("fd0", 64, "::")] {
                let address = |end: u8| format!("{family}{number}{host}{end}");
                let add =
                    |end, device| format!("ip address add {}/{bits} dev {device}", address(end));
                let nodad = if bits == 64 { " nodad" } else { "" };
                namespace.command(&(add(1, device) + nodad));
                router.command(&(add(254, router_device).replace("::254", "::fe") + nodad));
                let gateway = address(254).replace("::254", "::fe");
                namespace.command(&format!("ip route add default via {gateway}"));
            }
        }
        router.command("ip link set r1 mtu 1280");
        far.command("ip link set f0 mtu 1280");
        Some(Self { near, _router: router, far })
    }

    fn ends(&self) -> [End; 2] {
        [open(&self.near, &DatagramConfig::default()), open(&self.far, &DatagramConfig::default())]
    }
}

fn open(namespace: &Namespace, config: &DatagramConfig) -> End {
    let config = config.clone();
    let socket = namespace.run(move || DatagramSocket::bind(&config)).unwrap();
    End::of(socket, 65_600)
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// Finding: one forged ICMP error had the kernel refuse all larger packets for ten minutes. A router's word is no better.
#[test]
fn what_an_icmp_error_says_of_a_path_keeps_nothing_back() {
    let Some(path) = Path::new() else { return };
    for (family, headers) in HEADERS.into_iter().enumerate() {
        let [mut near, mut far] = path.ends();
        let to = far.at(ip(FAR[family]));
        let (long, fits) = (bytes(MTU - headers + 1), bytes(MTU - headers));
        for _ in 0..20 {
            // One by one: together they would be one packet to the router.
            for one in [&long, &fits] {
                let sent = near.send([message(one, to)]);
                assert_eq!((sent.datagrams, sent.too_long, sent.refused), (1, 0, 0));
            }
            assert_eq!(far.one().bytes, fits);
        }
        // The kernel has heard: what asks it does not send that any more.
        let asks = if family == 0 { "ip route get 10.2.0.1" } else { "ip route get fd02::1" };
        assert!(path.near.command(asks).contains("mtu 1280"), "the router had its say");
    }
}

/// A device's own MTU, which needs nobody's word.
#[test]
fn what_a_device_does_not_take_is_told_at_once() {
    let Some(path) = Path::new() else { return };
    for (family, headers) in HEADERS.into_iter().enumerate() {
        let [mut near, mut far] = path.ends();
        let to = near.at(ip(NEAR[family]));
        let sent = bytes(MTU);
        let fits = Message { bytes: &sent[headers..], ..message(&sent, to) };
        let refused = far.send([message(&sent, to), fits]);
        assert_eq!((refused.datagrams, refused.too_long, refused.refused), (1, 1, 0));
        let told = Unsent { to, why: Refusal::TooLong, datagrams: 1 };
        assert_eq!(far.send.unsent(), [told]);
        assert_eq!(near.one().bytes, &sent[headers..]);
    }
}

#[test]
fn hundreds_cross_a_router_in_order() {
    let Some(path) = Path::new() else { return };
    for address in FAR {
        let [mut near, mut far] = path.ends();
        let to = far.at(ip(address));
        let given: Vec<_> = (0..400_usize).map(|at| bytes(1000 + at)[at..].to_vec()).collect();
        for some in given.chunks(100) {
            assert_eq!(near.send(some.iter().map(|one| message(one, to))).datagrams, 100);
            assert!(far.datagrams(100) == some);
        }
    }
}

/// The address that a peer knows is remembered; once it has been removed, another is taken.
#[test]
fn an_address_that_goes_away_is_forgotten() {
    let Some(path) = Path::new() else { return };
    for (family, second) in ["10.1.0.77/24", "fd01::77/64 nodad"].into_iter().enumerate() {
        path.near.command(&format!("ip address add {second} dev n0"));
        let other = ip(second.split('/').next().unwrap());
        let [mut near, mut far] = path.ends();
        far.send([message(b"to the second", near.at(other))]);
        let came = near.one();
        assert_eq!(came.arrived.at.map(|at| at.address), Some(other));
        let answer = |came: &Came| (came.arrived.from, came.arrived.at);
        let (to, from) = answer(&came);
        let back = Message { from, ..message(b"back", to) };
        near.send([back, back]);
        assert!(near.send.astray().is_empty());
        let came = far.messages(2);
        assert!(came.iter().all(|one| one.arrived.from == near.at(other)));
        let address = second.split(' ').next().unwrap();
        path.near.command(&format!("ip address del {address} dev n0"));
        let sent = near.send([back, back]);
        assert_eq!((sent.datagrams, sent.refused), (2, 0));
        assert_eq!(near.send.astray(), [to]);
        let came = far.messages(2);
        assert!(came.iter().all(|one| one.arrived.from == near.at(ip(NEAR[family]))));
    }
}

/// One destination that cannot be reached costs the others nothing.
#[test]
fn a_destination_without_a_way_costs_itself() {
    let Some(path) = Path::new() else { return };
    let [mut near, mut far] = path.ends();
    path.near.command("ip route add unreachable 192.0.2.0/24");
    path.near.command("ip -6 route add prohibit 2001:db8::/32");
    let nowhere = [near.at(ip("192.0.2.1")), near.at(ip("2001:db8::1"))];
    let to = far.at(ip(FAR[0]));
    let given: Vec<_> = (0..30).map(|at| bytes(at + 1)).collect();
    let to = |at: usize| if at.is_multiple_of(3) { to } else { nowhere[at % 3 - 1] };
    let sent = near.send(given.iter().enumerate().map(|(at, one)| message(one, to(at))));
    assert_eq!((sent.taken, sent.datagrams, sent.refused, sent.too_long), (30, 10, 20, 0));
    let told: Vec<_> = near.send.unsent().iter().map(|it| (it.why, it.datagrams)).collect();
    assert_eq!(told, [(Refusal::NoRoute, 10), (Refusal::NotPermitted, 10)]);
    let came = far.datagrams(10);
    assert!(came.iter().eq(given.iter().step_by(3)));
}

/// Marked datagrams follow the rules of their mark, so that a tunnel's own datagrams stay out of it.
#[test]
fn a_mark_is_on_what_is_sent() {
    let Some(path) = Path::new() else { return };
    path.near.command("ip rule add fwmark 0x7461 prohibit");
    path.near.command("ip -6 rule add fwmark 0x7461 prohibit");
    for address in FAR {
        let [mut plain, far] = path.ends();
        let config = DatagramConfig { mark: Some(0x7461), ..DatagramConfig::default() };
        let mut marked = open(&path.near, &config);
        let to = far.at(ip(address));
        assert_eq!(plain.send([message(b"plain", to)]).datagrams, 1);
        assert_eq!(marked.send([message(b"marked", to)]).refused, 1);
    }
}

#[test]
fn a_socket_of_a_device_hears_no_other() {
    let Some(path) = Path::new() else { return };
    let device = |name: &str| DatagramConfig { device: Some(name.into()), ..Default::default() };
    let mut bound = open(&path.near, &device("n0"));
    let [mut near, mut far] = path.ends();
    near.send([message(b"by lo", bound.at(ip("127.0.0.1")))]);
    far.send([message(b"by n0", bound.at(ip(NEAR[0])))]);
    let came = bound.one();
    assert_eq!(came.bytes, b"by n0");
    let said = path.near.command("ip -o link show n0");
    let index: u32 = said.split(':').next().unwrap().parse().unwrap();
    assert_eq!(came.arrived.at.unwrap().interface.map(u32::from), Some(index));
    let config = device("n9");
    let missing = path.near.run(move || DatagramSocket::bind(&config)).unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let Some(path) = Path::new() else { return };
    let [near, _far] = path.ends();
    let config = DatagramConfig { port: near.socket.port(), ..DatagramConfig::default() };
    let taken = path.near.run(move || DatagramSocket::bind(&config)).unwrap_err();
    assert_eq!(taken.raw_os_error(), Some(libc::EADDRINUSE));
}
