//! Fields of the link header, which frames have that come in by a TAP device.

use super::Drawing;
use super::field::{Field, Kind, field, near, nothing};
use crate::scene::NEAR_MAC;

const ETHER_TYPES: Kind = Kind::Words(&["ip", "ip6", "arp", "vlan"]);

/// One of the addresses that frames have.
fn address(d: &mut Drawing<'_>) -> u128 {
    let known = [NEAR_MAC, NEAR_MAC, [2, 0, 0, 0, 0, 1], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]];
    let mut address = d.draw.pick(&known);
    if d.draw.one_in(6) {
        address[5] = d.draw.byte();
    }
    address.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

fn bytes(value: u128) -> [u8; 6] {
    let [.., a, b, c, d, e, f] = value.to_be_bytes();
    [a, b, c, d, e, f]
}

fn ether_type(d: &mut Drawing<'_>) -> u128 {
    near(d, &[0, 0, 1], 2)
}

/// Fields of Ethernet's header, and of a tag, which is taken off before any of these tables.
pub(super) const LINK: &[Field] = &[
    field("payload ether", "ether saddr", Kind::Mac, address, |p, v| p.macs[1] = bytes(v)),
    field("payload ether", "ether daddr", Kind::Mac, address, |p, v| p.macs[0] = bytes(v)),
    field("payload ether", "ether type", ETHER_TYPES, ether_type, nothing),
    field("payload raw link", "@ll,0,48", Kind::Hex(48), address, |p, v| p.macs[0] = bytes(v)),
    field("payload raw link", "@ll,48,48", Kind::Hex(48), address, |p, v| p.macs[1] = bytes(v)),
    field(
        "payload raw link",
        "@ll,96,16",
        Kind::Hex(16),
        |d| near(d, &[0x800, 0x86dd], 16),
        nothing,
    ),
    field(
        "payload vlan",
        "vlan id",
        Kind::Number(12),
        |d| near(d, &[0, 7], 12),
        |p, _| p.vlan = Some(0x6000),
    ),
    field(
        "payload vlan",
        "vlan pcp",
        Kind::Number(3),
        |d| near(d, &[0, 3], 3),
        |p, _| p.vlan = Some(0x6000),
    ),
];
