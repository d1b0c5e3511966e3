//! The beginning of an entry: `struct ipt_ip`, `struct ip6t_ip6`; that of ARP is [`arp`]'s.
//!
//! An interface's mask covers its name with the NUL at its end, or what stands before a `+`, which stays in the name.
//!
//! Source: `linux/netfilter_ipv4/ip_tables.h`, `linux/netfilter_ipv6/ip6_tables.h`, and what iptables 1.8 fills in.

use std::net::{Ipv4Addr, Ipv6Addr};

use rules::model::{Action, Family, Header, MaskedAddr};

use super::arp;
use super::bytes::{NAME, byte, get, put, put_iface, put_u16, text, u16_at};
use super::options::say;

/// Where the fields of a family's header are; addresses, then their masks, then names of interfaces and theirs.
struct Place {
    len: usize,
    address: usize,
    iface: usize,
    protocol: usize,
    flags: usize,
    goto: u8,
}

const V4: Place = Place { len: 84, address: 4, iface: 16, protocol: 80, flags: 82, goto: 0x02 };
const V6: Place = Place { len: 136, address: 16, iface: 64, protocol: 128, flags: 131, goto: 0x04 };

/// `IPT_F_FRAG`.
const FRAGMENT: u8 = 0x01;
/// `IP6T_F_PROTO`.
const PROTOCOL: u8 = 0x01;
/// Bits of `!`, in the byte after the flags.
const NOT_INPUT: u8 = 0x01;
const NOT_OUTPUT: u8 = 0x02;
const NOT_SOURCE: u8 = 0x08;
const NOT_DESTINATION: u8 = 0x10;
const NOT_FRAGMENT: u8 = 0x20;
const NOT_PROTOCOL: u8 = 0x40;

fn place(family: Family) -> Place {
    if family == Family::Ipv6 { V6 } else { V4 }
}

/// Writes the tests of a rule; bytes without a test are 0.
pub(super) fn encode(family: Family, header: Option<&Header>, action: &Action) -> Vec<u8> {
    if family == Family::Arp {
        return arp::encode(header);
    }
    let Place { len, address, iface, protocol, flags, goto } = place(family);
    let mut bytes = vec![0; len];
    let mut inverted = 0;
    let mut invert = |is: bool, bit: u8| inverted |= if is { bit } else { 0 };
    let addresses = [header.and_then(Header::source), header.and_then(Header::destination)];
    for ((side, test), not) in addresses.into_iter().enumerate().zip([NOT_SOURCE, NOT_DESTINATION])
    {
        let Some(MaskedAddr { addr, mask, invert: is }) = test else { continue };
        put(&mut bytes, side * address, &addr[..address]);
        put(&mut bytes, (2 + side) * address, &mask[..address]);
        invert(is, not);
    }
    let ifaces = [header.and_then(Header::input), header.and_then(Header::output)];
    for ((side, test), not) in ifaces.into_iter().enumerate().zip([NOT_INPUT, NOT_OUTPUT]) {
        let Some(test) = test else { continue };
        put_iface(&mut bytes, iface, side, test);
        invert(test.invert, not);
    }
    let mut flag = 0;
    if let Some(test) = header.and_then(Header::protocol) {
        put_u16(&mut bytes, protocol, test.number.into());
        invert(test.invert, NOT_PROTOCOL);
        if family == Family::Ipv6 {
            flag |= PROTOCOL;
        }
    }
    if let Some(is) = header.and_then(Header::fragment) {
        flag |= FRAGMENT;
        invert(is, NOT_FRAGMENT);
    }
    if matches!(action, Action::Goto(_)) {
        flag |= goto;
    }
    put(&mut bytes, flags, &[flag, inverted]);
    bytes
}

/// Reads the tests of an entry as text, and whether its jump is a goto.
///
/// # Errors
/// A name is no text, or a bit is set that no option sets.
pub(super) fn decode(family: Family, bytes: &[u8]) -> Result<(String, bool), String> {
    if family == Family::Arp {
        return Ok((arp::decode(bytes)?, false));
    }
    let Place { address, iface, protocol, flags, goto, .. } = place(family);
    let [flag, inverted] = get(bytes, flags);
    let mut said = String::new();
    let sides = [("-s", NOT_SOURCE), ("-d", NOT_DESTINATION)];
    for (side, (option, not)) in sides.into_iter().enumerate() {
        let is = inverted & not != 0;
        let field = |at: usize| bytes.get(at * address..(at + 1) * address).unwrap_or_default();
        if field(2 + side).iter().any(|byte| *byte != 0) || is {
            say(&mut said, is, option);
            let [value, mask] = [field(side), field(2 + side)].map(address_text);
            said.push_str(&format!(" {value}/{mask}"));
        }
    }
    let sides = [("-i", NOT_INPUT), ("-o", NOT_OUTPUT)];
    for (side, (option, not)) in sides.into_iter().enumerate() {
        let name = text(bytes, iface + side * NAME, NAME)?;
        if !name.is_empty() {
            say(&mut said, inverted & not != 0, option);
            said.push_str(&format!(" {name}"));
        }
    }
    let number = u16_at(bytes, protocol);
    if number != 0 || inverted & NOT_PROTOCOL != 0 {
        say(&mut said, inverted & NOT_PROTOCOL != 0, "-p");
        said.push_str(&format!(" {number}"));
    }
    let is_v6 = family == Family::Ipv6;
    if !is_v6 && flag & FRAGMENT != 0 {
        say(&mut said, inverted & NOT_FRAGMENT != 0, "-f");
    }
    let known = goto | if is_v6 { PROTOCOL } else { FRAGMENT };
    if flag & !known != 0 || (is_v6 && byte(bytes, flags - 1) != 0) {
        return Err(format!("flags {flag:#x}: not known"));
    }
    Ok((said, flag & goto != 0))
}

fn address_text(bytes: &[u8]) -> String {
    match bytes.len() {
        4 => Ipv4Addr::from(get::<4>(bytes, 0)).to_string(),
        _ => Ipv6Addr::from(get::<16>(bytes, 0)).to_string(),
    }
}
