//! The beginning of an entry of arptables, `struct arpt_arp`, and its target `mangle`.
//!
//! Text is that of arptables-nft, which tests the length and type of hardware addresses where a rule says nothing of
//! them: so text that is read from an entry says both, with a mask of 0 where the entry does not look.
//! Source: `linux/netfilter_arp/arp_tables.h`, `arpt_mangle.h`, and what arptables 0.0.5 fills in.

use std::fmt::Write;
use std::net::Ipv4Addr;

use rules::model::{Field, FieldTest, Header};

use super::bytes::{byte, get, put, put_iface, put_u16, put_u32, text, u16_at, u32_at};
use super::options::{Options, say};

/// Bytes of it.
pub(super) const LEN: usize = 164;

const IFACE: usize = 94;
const INVERTED: usize = 160;

/// A field: its option, the bytes it has, where value and mask are, and its bit of `!`.
type Place = (Field, &'static str, usize, usize, usize, u16);

const FIELDS: [Place; 6] = [
    (Field::SenderHardware, "--src-mac", 6, 18, 34, 0x010),
    (Field::TargetHardware, "--dst-mac", 6, 50, 66, 0x020),
    (Field::HardwareLen, "--h-length", 1, 16, 17, 0x200),
    (Field::Operation, "--opcode", 2, 82, 84, 0x040),
    (Field::HardwareType, "--h-type", 2, 86, 88, 0x080),
    (Field::ProtocolType, "--proto-type", 2, 90, 92, 0x100),
];

/// Options of addresses, with their bits of `!`.
const ADDRESSES: [(&str, u16); 2] = [("-s", 0x004), ("-d", 0x008)];
/// Of interfaces.
const IFACES: [(&str, u16); 2] = [("-i", 0x001), ("-o", 0x002)];

/// Writes the tests of a rule.
pub(super) fn encode(tests: Option<&Header>) -> Vec<u8> {
    let mut bytes = vec![0; LEN];
    let Some(tests) = tests else { return bytes };
    let mut inverted = 0;
    let addresses = [tests.source(), tests.destination()];
    for ((side, test), (_, bit)) in addresses.into_iter().enumerate().zip(ADDRESSES) {
        let Some(test) = test else { continue };
        put(&mut bytes, 4 * side, &test.addr[..4]);
        put(&mut bytes, 8 + 4 * side, &test.mask[..4]);
        inverted |= if test.invert { bit } else { 0 };
    }
    let ifaces = [tests.input(), tests.output()];
    for ((side, test), (_, bit)) in ifaces.into_iter().enumerate().zip(IFACES) {
        let Some(test) = test else { continue };
        put_iface(&mut bytes, IFACE, side, test);
        inverted |= if test.invert { bit } else { 0 };
    }
    for FieldTest { field, value, mask, invert } in tests.fields() {
        let place = FIELDS.iter().find(|(one, ..)| one == field);
        let Some((_, _, len, at, at_mask, bit)) = place else { continue };
        put(&mut bytes, *at, &value[..*len]);
        put(&mut bytes, *at_mask, &mask[..*len]);
        inverted |= if *invert { *bit } else { 0 };
    }
    put_u16(&mut bytes, INVERTED, inverted);
    bytes
}

/// Reads the tests of an entry as text.
///
/// # Errors
/// A name is no text.
pub(super) fn decode(bytes: &[u8]) -> Result<String, String> {
    let inverted = u16_at(bytes, INVERTED);
    let mut said = String::new();
    for (side, (option, bit)) in ADDRESSES.into_iter().enumerate() {
        let [value, mask] = [4 * side, 8 + 4 * side].map(|at| Ipv4Addr::from(get::<4>(bytes, at)));
        if !mask.is_unspecified() || inverted & bit != 0 {
            say(&mut said, inverted & bit != 0, option);
            let _ = write!(said, " {value}/{mask}");
        }
    }
    for (side, (option, bit)) in IFACES.into_iter().enumerate() {
        let name = text(bytes, IFACE + 16 * side, 16)?;
        if !name.is_empty() {
            say(&mut said, inverted & bit != 0, option);
            let _ = write!(said, " {name}");
        }
    }
    for (field, option, len, at, at_mask, bit) in FIELDS {
        let [value, mask] = [at, at_mask].map(|at| get::<6>(bytes, at));
        let is_tested = mask[..len].iter().any(|byte| *byte != 0) || inverted & bit != 0;
        if is_tested || matches!(field, Field::HardwareLen | Field::HardwareType) {
            say(&mut said, inverted & bit != 0, option);
            let [value, mask] = [value, mask].map(|bytes| field_text(field, bytes));
            let _ = write!(said, " {value}/{mask}");
        }
    }
    Ok(said)
}

/// A field in its option's notation.
fn field_text(field: Field, bytes: [u8; 6]) -> String {
    let number = u16::from_be_bytes([bytes[0], bytes[1]]);
    match field {
        Field::SenderHardware | Field::TargetHardware => mac_text(bytes),
        Field::HardwareLen => bytes[0].to_string(),
        Field::HardwareType => format!("{number:x}"),
        _ => number.to_string(),
    }
}

fn mac_text(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// Bytes of `struct arpt_mangle`.
pub(super) const MANGLE: usize = 48;

const FLAGS: usize = 40;
const TARGET: usize = 44;
/// Options, where they are, and their bits.
const MACS: [(&str, usize, u8); 2] = [("--mangle-mac-s", 0, 1), ("--mangle-mac-d", 16, 2)];
const IPS: [(&str, usize, u8); 2] = [("--mangle-ip-s", 32, 4), ("--mangle-ip-d", 36, 8)];
const VERDICTS: [(&str, u32); 3] = [("DROP", 0), ("ACCEPT", 1), ("CONTINUE", u32::MAX)];

pub(super) fn mangle(options: &mut Options, to: &mut [u8]) -> Result<(), String> {
    let mut flags = 0;
    for (option, at, bit) in IPS {
        let Some((_, said)) = options.take(option) else { continue };
        let address: Ipv4Addr = said.parse().map_err(|why| format!("{said}: {why}"))?;
        put(to, at, &address.octets());
        flags |= bit;
    }
    for (option, at, bit) in MACS {
        let Some((_, said)) = options.take(option) else { continue };
        let bytes: Result<Vec<u8>, _> =
            said.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
        put(to, at, &bytes.map_err(|why| format!("{said}: {why}"))?);
        flags |= bit;
    }
    let target = options.take("--mangle-target").map_or("ACCEPT".to_owned(), |(_, said)| said);
    let verdict = VERDICTS.iter().find(|(name, _)| *name == target);
    put(to, FLAGS, &[flags]);
    put_u32(to, TARGET, verdict.ok_or_else(|| format!("{target}: not translated"))?.1);
    Ok(())
}

pub(super) fn mangle_text(from: &[u8]) -> Result<Option<String>, String> {
    let flags = byte(from, FLAGS);
    let mut said = String::new();
    for (option, at, _) in IPS.into_iter().filter(|(.., bit)| flags & bit != 0) {
        let _ = write!(said, " {option} {}", Ipv4Addr::from(get::<4>(from, at)));
    }
    for (option, at, _) in MACS.into_iter().filter(|(.., bit)| flags & bit != 0) {
        let _ = write!(said, " {option} {}", mac_text(get(from, at)));
    }
    let verdict = VERDICTS.iter().find(|(_, number)| *number == u32_at(from, TARGET));
    let (name, _) = verdict.ok_or_else(|| format!("mangle: verdict {}", u32_at(from, TARGET)))?;
    let _ = write!(said, " --mangle-target {name}");
    Ok(Some(said))
}
