//! What the kernel says of its interfaces: their names, how long their packets are, and what else takes the frames that
//! they receive.
//!
//! Contract: reads, and changes nothing; what cannot be read is not known. `/sys` may show another network namespace
//! than this process's own, and is believed only where both give an interface the same number.
//!
//! Source: `getifaddrs(3)`, `if_nameindex(3)`; Linux `Documentation/ABI/testing/sysfs-class-net`,
//! `Documentation/networking/ip-sysctl.rst`.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nameindex, if_nametoindex};

/// Names of all interfaces, in the kernel's order.
pub(crate) fn names() -> Vec<String> {
    let Ok(all) = if_nameindex() else { return Vec::new() };
    all.iter().map(|interface| interface.name().to_string_lossy().into_owned()).collect()
}

/// Bytes of the longest packet that an interface carries.
pub(crate) fn mtu(name: &str) -> Option<u32> {
    attribute(name, "mtu")?.parse().ok()
}

/// Addresses at which its host takes packets from an interface: all but link-local IPv6 addresses, which every
/// interface has that is up.
pub(crate) fn addresses(name: &str) -> Vec<IpAddr> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    let own = all.filter(|interface| interface.interface_name == name);
    let addresses = own.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.filter(|address| !is_of_link(*address)).collect()
}

fn is_of_link(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if Ipv6Addr::is_unicast_link_local(&v6))
}

/// The bridge, bond or routing domain that takes the frames of an interface.
pub(crate) fn master(name: &str) -> Option<String> {
    let link = fs::read_link(folder(name)?.join("master")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

/// The settings under which its host routes packets from an interface.
pub(crate) fn forwarding(name: &str) -> Vec<String> {
    let settings =
        ["ipv4", "ipv6"].map(|family| format!("/proc/sys/net/{family}/conf/{name}/forwarding"));
    let is_on =
        |setting: &String| fs::read_to_string(setting).is_ok_and(|value| value.trim() == "1");
    settings.into_iter().filter(is_on).collect()
}

/// The other end of a virtual link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peer {
    Named(String),
    /// An interface in another network namespace.
    Elsewhere,
}

/// The other end of the virtual link that an interface is an end of, if it is one.
#[cfg(target_os = "linux")]
pub(crate) fn peer(name: &str) -> Option<Peer> {
    if !pktio::device::is_veth(name).ok()? {
        return None;
    }
    let [own, other] = ["ifindex", "iflink"].map(|what| attribute(name, what));
    let is_peer = |peer: &String| {
        let links = ["ifindex", "iflink"].map(|what| attribute(peer, what));
        // Numbers of another namespace may be the same as one's own.
        peer != name && links == [other.clone(), own.clone()]
    };
    Some(names().into_iter().find(is_peer).map_or(Peer::Elsewhere, Peer::Named))
}

fn attribute(name: &str, attribute: &str) -> Option<String> {
    let text = fs::read_to_string(folder(name)?.join(attribute)).ok()?;
    Some(text.trim().to_owned())
}

/// The folder in `/sys` of an interface of this network namespace.
fn folder(name: &str) -> Option<PathBuf> {
    let index = if_nametoindex(name).ok()?;
    let folder = PathBuf::from("/sys/class/net").join(name);
    let told = fs::read_to_string(folder.join("ifindex")).ok()?;
    (told.trim().parse() == Ok(index)).then_some(folder)
}
