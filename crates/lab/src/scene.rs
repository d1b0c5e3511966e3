//! [`Scene`]: the stage on which a packet meets a ruleset, the same for the kernel and for tamis.
//!
//! Three ways in: a TUN device (bare packets, fast), or a TAP device or a veth pair (Ethernet frames, for what depends on
//! the link layer). Two places: raw PREROUTING, which sees everything that the stack lets in, and FORWARD
//! (mangle, then filter), which sees only packets that route forwards.

use crate::layouts::Kind;
use host::routes::Routes;
use host::{Host, Kernel, Network, QueueVerdict, Queues};
use packet::{Headers, L3, Link, Packet, Read};
use rules::model::{Family, Hook};

use crate::device::Device;

/// How packets get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// A TUN device, `t0`, and `t1` for what is forwarded.
    Tun,
    /// A TAP device, `t0`, by which Ethernet frames come in, and the TUN device `t1` for what is forwarded.
    Tap,
    /// A veth pair whose near end is `r0`, and one that ends in `r1` for what is forwarded.
    Veth,
}

/// Where the rules stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Table raw, chain PREROUTING.
    Raw,
    /// Tables mangle and filter, chain FORWARD.
    Forward,
}

/// A family, a wire and a placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scene {
    /// Family of the rules.
    pub family: Family,
    /// How packets get in.
    pub wire: Wire,
    /// Where the rules stand.
    pub placement: Placement,
    /// The devices that packets come in by, and go out by when they are forwarded.
    pub devices: [Device; 2],
    /// What tamis walks the rules as; `None` as they were read.
    pub layout: Option<Kind>,
    /// The kernel whose answers are wanted.
    pub kernel: Kernel,
}

/// Ethernet address of `r0`, to which frames are sent.
pub const NEAR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// The firewall's own addresses.
pub const LOCAL_V4: [&str; 2] = ["10.255.0.1", "10.255.1.1"];
/// The same, IPv6.
pub const LOCAL_V6: [&str; 2] = ["fd00:ffff::1", "fd00:ffff:1::1"];

/// Where packets go that do not stay: the neighbour behind the outgoing device.
pub const GATEWAY_V4: &str = "10.255.1.2";
/// The same, IPv6.
pub const GATEWAY_V6: &str = "fd00:ffff:1::2";

const ROUTES_V4: &str = "default VIA dev FAR
10.255.0.0/24 dev NEAR proto kernel scope link src 10.255.0.1
10.255.1.0/24 dev FAR proto kernel scope link src 10.255.1.1
local 10.255.0.1 dev NEAR table local proto kernel scope host src 10.255.0.1
broadcast 10.255.0.255 dev NEAR table local proto kernel scope link src 10.255.0.1
local 10.255.1.1 dev FAR table local proto kernel scope host src 10.255.1.1
broadcast 10.255.1.255 dev FAR table local proto kernel scope link src 10.255.1.1
local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1
local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1
broadcast 127.255.255.255 dev lo table local proto kernel scope link src 127.0.0.1
";

const ROUTES_V6: &str = "::1 dev lo proto kernel metric 256 pref medium
fd00:ffff::/64 dev NEAR proto kernel metric 256 pref medium
fd00:ffff:1::/64 dev FAR proto kernel metric 256 pref medium
default VIA dev FAR metric 1024 pref medium
local ::1 dev lo table local proto kernel metric 0 pref medium
anycast fd00:ffff:: dev NEAR table local proto kernel metric 0 pref medium
local fd00:ffff::1 dev NEAR table local proto kernel metric 0 pref medium
anycast fd00:ffff:1:: dev FAR table local proto kernel metric 0 pref medium
local fd00:ffff:1::1 dev FAR table local proto kernel metric 0 pref medium
multicast ff00::/8 dev NEAR table local proto kernel metric 256 pref medium
multicast ff00::/8 dev FAR table local proto kernel metric 256 pref medium
";

impl Scene {
    /// A scene with the usual devices: `t0` and `t1`, or `r0` and `r1`.
    #[must_use]
    pub fn new(family: Family, wire: Wire, placement: Placement) -> Self {
        let devices = match wire {
            Wire::Tun | Wire::Tap => [Device::usual(b"t0"), Device::usual(b"t1")],
            Wire::Veth => [Device::usual(b"r0"), Device::usual(b"r1")],
        };
        let (layout, kernel) = (Some(Kind::default()), Kernel::default());
        Self { family, wire, placement, devices, layout, kernel }
    }

    /// The tables that the packet walks, with the hook.
    #[must_use]
    pub fn tables(&self) -> &'static [&'static str] {
        match self.placement {
            Placement::Raw => &["raw"],
            Placement::Forward => &["mangle", "filter"],
        }
    }

    /// The hook of those tables' built-in chain.
    #[must_use]
    pub fn hook(&self) -> Hook {
        match self.placement {
            Placement::Raw => Hook::Prerouting,
            Placement::Forward => Hook::Forward,
        }
    }

    /// How the first byte of a frame is read.
    #[must_use]
    pub fn link(&self) -> Link {
        match self.wire {
            Wire::Tun => Link::Raw,
            Wire::Tap | Wire::Veth => Link::Ethernet,
        }
    }

    /// The device that forwarded packets leave by; none at PREROUTING.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        (self.placement == Placement::Forward).then(|| self.devices[1].name())
    }

    /// The device that the stack receives a frame from; `None` if it does not deliver it to IP.
    #[must_use]
    pub fn input(&self, packet: &Packet<'_>) -> Option<&str> {
        let near = self.devices[0].name();
        if self.wire == Wire::Tun {
            return Some(near);
        }
        let Read::Known(to) = packet.read::<6>(0) else { return None };
        if to[0] & 1 == 0 && to != NEAR_MAC {
            return None;
        }
        match packet.headers().link.vlan.map(|tci| tci & 0xfff) {
            // A priority tag is taken off; a VLAN without a device of its own is somebody else's.
            None | Some(0) => Some(near),
            Some(_) => None,
        }
    }

    /// Whether a packet whose headers these are is of the scene's family and gets past the stack's own
    /// tests. A total length of 0 is an offload artefact in a capture and refused on a wire.
    #[must_use]
    pub fn enters(&self, headers: &Headers) -> bool {
        match self.family {
            Family::Ipv6 => headers.l3 == L3::Ipv6,
            _ => matches!(headers.l3, L3::Ipv4 { .. }) && !headers.offload,
        }
    }

    /// The host as tamis is told of it.
    #[must_use]
    pub fn host(&self) -> Host {
        let local = match self.family {
            Family::Ipv6 => LOCAL_V6.iter().chain(["::1"].iter()),
            _ => LOCAL_V4.iter().chain(["127.0.0.0/8"].iter()),
        };
        let local = local.filter_map(|text| Network::parse(text)).collect();
        Host {
            local: Some(local),
            routes: Routes::parse(&self.routes()).ok(),
            kernel: Some(self.kernel),
            // Nobody listens in the namespace.
            queues: Queues::of(&[(None, QueueVerdict::Nobody)]).unwrap_or_default(),
            ..Host::default()
        }
    }

    /// The routes of the namespace that the oracle sets up, as `ip route show table all` prints them.
    #[must_use]
    pub fn routes(&self) -> String {
        let [near, far] = self.devices.each_ref().map(Device::name);
        let via = match (self.wire, self.family) {
            (Wire::Tun | Wire::Tap, _) => "",
            (Wire::Veth, Family::Ipv6) => " via fd00:ffff:1::2",
            (Wire::Veth, _) => " via 10.255.1.2",
        };
        let text = if self.family == Family::Ipv6 { ROUTES_V6 } else { ROUTES_V4 };
        text.replace("NEAR", near).replace("FAR", far).replace(" VIA", via)
    }

    /// `ip tun raw`, as cases are headed; followed by the devices where they have other names than usual.
    #[must_use]
    pub fn words(&self) -> String {
        let wire = match self.wire {
            Wire::Tun => "tun",
            Wire::Tap => "tap",
            Wire::Veth => "veth",
        };
        let placement = if self.placement == Placement::Raw { "raw" } else { "forward" };
        let mut words = format!("{} {wire} {placement}", self.family.name());
        if self.devices != Self::new(self.family, self.wire, self.placement).devices {
            let [near, far] = self.devices.each_ref().map(Device::name);
            words += &format!(" {near} {far}");
        }
        words
    }

    /// The line of a case about another kernel than the usual one, `kernel 6.1.192`.
    #[must_use]
    pub fn kernel_line(&self) -> String {
        match self.kernel == Kernel::default() {
            true => String::new(),
            false => format!("kernel {}\n", self.kernel),
        }
    }

    /// Reads [`Scene::words`].
    #[must_use]
    pub fn parse(words: &str) -> Option<Self> {
        let mut words = words.split_ascii_whitespace();
        let family = Family::from_name(words.next()?)?;
        let wire = match words.next()? {
            "tun" => Wire::Tun,
            "tap" => Wire::Tap,
            "veth" => Wire::Veth,
            _ => return None,
        };
        let placement = match words.next()? {
            "raw" => Placement::Raw,
            "forward" => Placement::Forward,
            _ => return None,
        };
        let scene = Self::new(family, wire, placement);
        match (words.next(), words.next()) {
            (Some(near), Some(far)) => {
                Some(Self { devices: [Device::new(near)?, Device::new(far)?], ..scene })
            }
            _ => Some(scene),
        }
    }
}

/// The number that a packet carries so that it is told from others: the IPv4 identification, or the low
/// 16 bits of the IPv6 flow label. `packet` starts at the network header.
#[must_use]
pub fn serial(packet: &[u8]) -> Option<u16> {
    let at = match packet.first()? >> 4 {
        4 => 4,
        6 => 2,
        _ => return None,
    };
    packet.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Whether the stack routes the packet forwards in the oracle's namespace, rules apart.
#[must_use]
pub fn forwards(packet: &Packet<'_>) -> bool {
    if packet.headers().link.packet_type.unwrap_or(0) != 0 {
        return false;
    }
    match packet.headers().l3 {
        L3::Ipv4 { header_len } => forwards_v4(packet, header_len),
        L3::Ipv6 => forwards_v6(packet),
        _ => false,
    }
}

fn forwards_v4(packet: &Packet<'_>, header_len: usize) -> bool {
    let (Read::Known([ttl]), Read::Known(source), Read::Known(destination)) =
        (packet.net::<1>(8), packet.net::<4>(12), packet.net::<4>(16))
    else {
        return false;
    };
    let plain = |addr: [u8; 4]| !matches!(addr[0], 0 | 127 | 224..=255) && addr[..2] != [10, 255];
    // Options are compiled, and some rewritten, before FORWARD.
    header_len == 20 && ttl > 1 && plain(source) && plain(destination) && source != destination
}

fn forwards_v6(packet: &Packet<'_>) -> bool {
    let (Read::Known([next, hops]), Read::Known(source), Read::Known(destination)) =
        (packet.net::<2>(6), packet.net::<16>(8), packet.net::<16>(24))
    else {
        return false;
    };
    let plain = |addr: [u8; 16]| addr[0] & 0xe0 == 0x20;
    // A router alert among hop-by-hop options would be handed to whoever listens.
    next != 0 && hops > 1 && plain(source) && plain(destination) && source != destination
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_named_alike_whatever_rules_are_walked_as() {
        for (wire, words) in [(Wire::Tun, "ip6 tun raw"), (Wire::Veth, "ip6 veth raw")] {
            let scene = Scene::new(Family::Ipv6, wire, Placement::Raw);
            for layout in Kind::ALL.into_iter().map(Some).chain([None]) {
                assert_eq!(Scene { layout, ..scene }.words(), words);
            }
            assert_eq!(Scene::parse(words), Some(scene));
        }
    }

    #[test]
    fn other_devices_are_named() {
        let scene = Scene::parse("ip tun forward eth0 ppp0").unwrap();
        assert_eq!(scene.devices.each_ref().map(Device::name), ["eth0", "ppp0"]);
        assert_eq!(scene.words(), "ip tun forward eth0 ppp0");
    }
}
