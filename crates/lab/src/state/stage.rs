//! [`Stage`]: the two devices, the networks behind the near one, and the host between them.

use conntrack::Mode;
use dataplane::Config;
use host::routes::Routes;
use host::{Host, Network, Sysctl};
use packet::Checksums;
use rules::model::Family;

use super::wire::Addr;
use crate::device::Device;
use crate::scene::{LOCAL_V4, LOCAL_V6, Placement, Scene, Wire};

/// Where a conversation plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Family and devices.
    pub scene: Scene,
    /// Networks behind the near device; everything else is behind the far one.
    pub inside: Vec<String>,
    /// Hosts behind the near device, and behind the far one.
    pub hosts: [Vec<Addr>; 2],
    /// Addresses that hosts outside also talk to: the firewall's own, and some that only rules know.
    pub fronts: Vec<Addr>,
}

const HOSTS: u8 = 3;

/// Settings of the namespace of the oracle, for each interface and all.
const SETTINGS: &str = "net.ipv4.conf.NAME.forwarding = 1
net.ipv4.conf.NAME.accept_local = 1
net.ipv4.conf.NAME.route_localnet = 1
net.ipv4.conf.NAME.accept_source_route = 1
net.ipv6.conf.NAME.forwarding = 1
";

impl Stage {
    /// Between `t0` and `t1`, with three hosts on each side.
    #[must_use]
    pub fn usual(family: Family) -> Self {
        let ipv6 = family == Family::Ipv6;
        let nets =
            if ipv6 { ["2001:db8:1::", "2001:db8:2::"] } else { ["192.0.2.", "198.51.100."] };
        let host = |net: &str, last: u8| addr(&format!("{net}{last}"));
        let fronts = match ipv6 {
            true => ["fd00:ffff:1::1", "2001:db8:3::2", "2001:db8:3::77"],
            false => ["10.255.1.1", "203.0.113.2", "203.0.113.77"],
        };
        Self {
            scene: Scene::new(family, Wire::Tun, Placement::Forward),
            inside: vec![format!("{}/{}", host_text(nets[0]), if ipv6 { 64 } else { 24 })],
            hosts: nets.map(|net| (1..=HOSTS).filter_map(|last| host(net, last)).collect()),
            fronts: fronts.iter().filter_map(|text| addr(text)).collect(),
        }
    }

    /// Makes the address that hosts inside are translated to one that hosts outside also talk to: there a helper
    /// expects connections.
    pub fn front_translated(&mut self) {
        let text = if self.ipv6() { "2001:db8:3::101" } else { "203.0.113.101" };
        self.fronts.extend(addr(text));
    }

    /// The same between other devices.
    #[must_use]
    pub fn between(self, devices: [Device; 2]) -> Self {
        Self { scene: Scene { devices, ..self.scene }, ..self }
    }

    /// IPv6?
    #[must_use]
    pub fn ipv6(&self) -> bool {
        self.scene.family == Family::Ipv6
    }

    /// The name of the device behind which a packet comes from.
    #[must_use]
    pub fn device(&self, far: bool) -> &str {
        self.scene.devices[usize::from(far)].name()
    }

    /// Routes to the networks behind the near device, as ip(8) prints them.
    fn inner_routes(&self) -> String {
        let rest = if self.ipv6() { "metric 1024 pref medium" } else { "scope link" };
        let near = self.device(false);
        self.inside.iter().map(|net| format!("{net} dev {near} {rest}\n")).collect()
    }

    /// The kernel's settings, as sysctl(8) prints them.
    fn settings(&self) -> String {
        ["all", self.device(false), self.device(true)]
            .map(|name| SETTINGS.replace("NAME", name))
            .concat()
    }

    /// The settings under which tamis stands where the kernel does.
    #[must_use]
    pub fn config(&self) -> Config {
        let net = |text: &str| Network::parse(text);
        let (near, far) = (self.device(false).to_owned(), self.device(true).to_owned());
        let inside = self.inside.iter().filter_map(|text| net(text));
        let outside = ["0.0.0.0/0", "::/0"].into_iter().filter_map(net);
        let own = |name: &str, text: &str| Some((name.to_owned(), text.parse().ok()?));
        let addresses =
            [(&near, LOCAL_V4[0]), (&far, LOCAL_V4[1]), (&near, LOCAL_V6[0]), (&far, LOCAL_V6[1])];
        Config {
            reference: self.scene.layout.is_none(),
            nets: inside
                .map(|net| (near.clone(), net))
                .chain(outside.map(|net| (far.clone(), net)))
                .collect(),
            checksums: Checksums::Verify,
            ct: conntrack::Config {
                mode: Mode::Kernel,
                checksums: Checksums::Verify,
                ..conntrack::Config::default()
            },
            host: Host {
                addresses: addresses.iter().filter_map(|(name, text)| own(name, text)).collect(),
                routes: Routes::parse(&(self.scene.routes() + &self.inner_routes())).ok(),
                sysctl: Sysctl::parse(&self.settings()).ok(),
                ..self.scene.host()
            },
            ..Config::default()
        }
    }
}

fn host_text(net: &str) -> String {
    if net.ends_with("::") { net.to_owned() } else { format!("{net}0") }
}

/// An address of either family, IPv4 in the first 4 bytes.
#[must_use]
pub fn addr(text: &str) -> Option<Addr> {
    let mut bytes = [0; 16];
    match text.parse().ok()? {
        std::net::IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
        std::net::IpAddr::V6(v6) => bytes = v6.octets(),
    }
    Some(bytes)
}

/// An address as text.
#[must_use]
pub fn addr_text(addr: Addr, ipv6: bool) -> String {
    match ipv6 {
        true => std::net::Ipv6Addr::from(addr).to_string(),
        false => std::net::Ipv4Addr::new(addr[0], addr[1], addr[2], addr[3]).to_string(),
    }
}
