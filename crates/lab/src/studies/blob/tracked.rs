//! `-m conntrack` and `-m state`, which is the same struct with a bit that says so.
//!
//! Source: `struct xt_conntrack_mtinfo3` of `linux/netfilter/xt_conntrack.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::bytes::{get, put, put_u16, put_u32, u16_at, u32_at};
use super::options::{Options, bit_names, bits, number, range, range_text, say, small};

pub(super) const LEN: usize = 164;

const EXPIRES: usize = 128;
const PROTOCOL: usize = 136;
const PORTS: usize = 138;
const TESTS: usize = 146;
const INVERTED: usize = 148;
const STATES: usize = 150;
const STATUS: usize = 152;
const HIGH_PORTS: usize = 154;

const OF_STATE: u16 = 1 << 0;
const OF_PROTOCOL: u16 = 1 << 1;
const OF_STATUS: u16 = 1 << 6;
const OF_EXPIRES: u16 = 1 << 7;
const OF_DIRECTION: u16 = 1 << 12;
const IS_STATE: u16 = 1 << 13;

/// In the order of their places; the bit of the first is 1 << 2.
const ADDRESSES: [&str; 4] = ["--ctorigsrc", "--ctorigdst", "--ctreplsrc", "--ctrepldst"];
/// Likewise; the bit of the first is 1 << 8.
const PORT_OPTIONS: [&str; 4] =
    ["--ctorigsrcport", "--ctorigdstport", "--ctreplsrcport", "--ctrepldstport"];

const STATE_NAMES: [(&str, u32); 7] = [
    ("INVALID", 1 << 0),
    ("NEW", 1 << 3),
    ("RELATED", 1 << 2),
    ("ESTABLISHED", 1 << 1),
    ("UNTRACKED", 1 << 8),
    ("SNAT", 1 << 6),
    ("DNAT", 1 << 7),
];
const STATUS_NAMES: [(&str, u32); 5] = [
    ("NONE", 0),
    ("EXPECTED", 1 << 0),
    ("SEEN_REPLY", 1 << 1),
    ("ASSURED", 1 << 2),
    ("CONFIRMED", 1 << 3),
];

/// Which tests there are, and which of them are inverted.
#[derive(Default)]
struct Tests {
    are: u16,
    inverted: u16,
}

impl Tests {
    fn add(&mut self, bit: u16, invert: bool) {
        self.are |= bit;
        self.inverted |= if invert { bit } else { 0 };
    }

    fn write(&self, to: &mut [u8]) {
        put_u16(to, TESTS, self.are);
        put_u16(to, INVERTED, self.inverted);
    }
}

pub(super) fn state(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let (invert, said) = options.take("--state").ok_or("state: which?")?;
    let mut tests = Tests::default();
    tests.add(OF_STATE, invert);
    tests.are |= IS_STATE;
    put_u16(to, STATES, bits(&said, &STATE_NAMES)? as u16);
    tests.write(to);
    Ok(())
}

pub(super) fn state_text(from: &[u8]) -> Result<Option<String>, String> {
    if u16_at(from, TESTS) != OF_STATE | IS_STATE {
        return Ok(None);
    }
    let mut said = String::new();
    say(&mut said, u16_at(from, INVERTED) & OF_STATE != 0, "--state");
    said.push(' ');
    said.push_str(&bit_names(u16_at(from, STATES).into(), &STATE_NAMES, "")?);
    Ok(Some(said))
}

pub(super) fn conntrack(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let mut tests = Tests::default();
    if let Some((invert, said)) = options.take("--ctstate") {
        tests.add(OF_STATE, invert);
        put_u16(to, STATES, bits(&said, &STATE_NAMES)? as u16);
    }
    if let Some((invert, said)) = options.take("--ctproto") {
        tests.add(OF_PROTOCOL, invert);
        let number =
            rules::protocol_number(&said).map_or_else(|| small(&said), |one| Ok(one.into()));
        put_u16(to, PROTOCOL, number?);
    }
    for (index, option) in ADDRESSES.into_iter().enumerate() {
        let Some((invert, said)) = options.take(option) else { continue };
        tests.add(1 << (2 + index), invert);
        let (address, mask) = network(&said)?;
        put(to, 32 * index, &address);
        put(to, 32 * index + 16, &mask);
    }
    for (index, option) in PORT_OPTIONS.into_iter().enumerate() {
        let Some((invert, said)) = options.take(option) else { continue };
        tests.add(1 << (8 + index), invert);
        let (low, high) = range(&said)?;
        put_u16(to, PORTS + 2 * index, low);
        put_u16(to, HIGH_PORTS + 2 * index, high);
    }
    if let Some((invert, said)) = options.take("--ctstatus") {
        tests.add(OF_STATUS, invert);
        put_u16(to, STATUS, bits(&said, &STATUS_NAMES)? as u16);
    }
    if let Some((invert, said)) = options.take("--ctexpire") {
        tests.add(OF_EXPIRES, invert);
        let (low, high) = said.split_once(':').unwrap_or((&said, &said));
        put_u32(to, EXPIRES, number(low)?);
        put_u32(to, EXPIRES + 4, number(high)?);
    }
    if let Some((_, said)) = options.take("--ctdir") {
        tests.add(OF_DIRECTION, said == "REPLY");
    }
    tests.write(to);
    Ok(())
}

pub(super) fn conntrack_text(from: &[u8], is_v6: bool) -> Result<Option<String>, String> {
    let (are, inverted) = (u16_at(from, TESTS), u16_at(from, INVERTED));
    if are & !((OF_DIRECTION << 1) - 1) != 0 {
        return Err(format!("conntrack: tests {are:#x}"));
    }
    let mut said = String::new();
    let mut add = |bit: u16, option: &str, value: String| {
        if are & bit != 0 {
            say(&mut said, inverted & bit != 0 && bit != OF_DIRECTION, option);
            said.push(' ');
            said.push_str(&value);
        }
    };
    add(OF_STATE, "--ctstate", bit_names(u16_at(from, STATES).into(), &STATE_NAMES, "")?);
    add(OF_PROTOCOL, "--ctproto", u16_at(from, PROTOCOL).to_string());
    for (index, option) in ADDRESSES.into_iter().enumerate() {
        let bit = 1 << (2 + index);
        if are & bit != 0 {
            add(bit, option, network_text(from, 32 * index, is_v6));
        }
    }
    for (index, option) in PORT_OPTIONS.into_iter().enumerate() {
        let [low, high] = [PORTS, HIGH_PORTS].map(|place| u16_at(from, place + 2 * index));
        add(1 << (8 + index), option, range_text(low, high));
    }
    add(OF_STATUS, "--ctstatus", bit_names(u16_at(from, STATUS).into(), &STATUS_NAMES, "NONE")?);
    let [low, high] = [EXPIRES, EXPIRES + 4].map(|at| u32_at(from, at));
    let between = if low == high { low.to_string() } else { format!("{low}:{high}") };
    add(OF_EXPIRES, "--ctexpire", between);
    let way = if inverted & OF_DIRECTION != 0 { "REPLY" } else { "ORIGINAL" };
    add(OF_DIRECTION, "--ctdir", way.to_owned());
    Ok(Some(said))
}

/// An address, masked, and its mask; of IPv4 in the first four bytes.
fn network(said: &str) -> Result<([u8; 16], [u8; 16]), String> {
    let (address, mask) = said.split_once('/').unwrap_or((said, ""));
    let address: IpAddr = address.parse().map_err(|why| format!("{said}: {why}"))?;
    let len = if address.is_ipv4() { 4 } else { 16 };
    let bytes = |address: IpAddr| {
        let mut bytes = [0; 16];
        match address {
            IpAddr::V4(address) => put(&mut bytes, 0, &address.octets()),
            IpAddr::V6(address) => put(&mut bytes, 0, &address.octets()),
        }
        bytes
    };
    let mut of_mask = [0; 16];
    match (mask, mask.parse::<IpAddr>()) {
        (_, Ok(mask)) => of_mask = bytes(mask),
        (mask, _) => {
            let prefix = if mask.is_empty() { 8 * len as u32 } else { number(mask)? };
            for bit in 0..(prefix as usize).min(8 * len) {
                of_mask[bit / 8] |= 0x80 >> (bit % 8);
            }
        }
    }
    let mut address = bytes(address);
    address.iter_mut().zip(of_mask).for_each(|(byte, mask)| *byte &= mask);
    // A whole address has every bit of the union in its mask.
    if of_mask[..len] == [u8::MAX; 16][..len] {
        of_mask = [u8::MAX; 16];
    }
    Ok((address, of_mask))
}

fn network_text(from: &[u8], at: usize, is_v6: bool) -> String {
    if is_v6 {
        let [address, mask] = [at, at + 16].map(|at| Ipv6Addr::from(get::<16>(from, at)));
        return format!("{address}/{mask}");
    }
    let [address, mask] = [at, at + 16].map(|at| Ipv4Addr::from(get::<4>(from, at)));
    format!("{address}/{mask}")
}
