//! Reads the tests that need no extension: addresses, interfaces, protocols, single fields.
//!
//! Source: iptables(8), arptables-nft(8), ebtables-nft(8) "PARAMETERS"; `xtables_parse_interface` for names.

use smallvec::{SmallVec, smallvec};

use crate::error::What;
use crate::family::Family;
use crate::header::{Field, FieldTest, IfaceTest, MaskedAddr, ProtocolTest};
use crate::lexer::Word;
use crate::names::{ethertype_number, protocol_number};
use crate::value;

/// `IFNAMSIZ` - 1.
const MAX_IFACE: usize = 15;

/// A comma list of addresses, nearly always one.
pub(super) type Addresses = SmallVec<[Option<MaskedAddr>; 1]>;

/// A comma list of addresses; `None` stands for every address, which tests nothing.
pub(super) fn addresses(word: &Word<'_>, invert: bool, family: Family) -> Result<Addresses, What> {
    if word.text.bytes().all(|byte| byte != b',') {
        return Ok(smallvec![address(&word.text, word, invert, family)?]);
    }
    if invert {
        return Err(What::new(word.column, "one address after !, not a list"));
    }
    word.text.split(',').map(|text| address(text, word, invert, family)).collect()
}

fn address(
    text: &str,
    word: &Word<'_>,
    invert: bool,
    family: Family,
) -> Result<Option<MaskedAddr>, What> {
    let read = match family {
        Family::Bridge => {
            value::masked_mac(text).map(|(addr, mask)| (first_six(addr), first_six(mask)))
        }
        _ => value::network(trimmed(text), family.addr_len()),
    };
    let (addr, mask) = read.ok_or_else(|| {
        let what = format!("an {} address or address/mask, found \"{text}\"", kind_of(family));
        let hint = if looks_like_name(text) { " (host names are not resolved)" } else { "" };
        What::new(word.column, what + hint)
    })?;
    let everything = mask == [0; 16] && !invert;
    Ok((!everything).then_some(MaskedAddr { addr, mask, invert }))
}

/// Without blanks around it, which there seldom are.
fn trimmed(text: &str) -> &str {
    match text.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim(),
    }
}

fn first_six(bytes: [u8; 6]) -> [u8; 16] {
    let mut all = [0; 16];
    all[..6].copy_from_slice(&bytes);
    all
}

fn kind_of(family: Family) -> &'static str {
    match family {
        Family::Ipv4 | Family::Arp => "IPv4",
        Family::Ipv6 => "IPv6",
        Family::Bridge => "Ethernet",
    }
}

fn looks_like_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.contains(':')
}

/// An interface name; `None` for `+`, which tests nothing.
pub(super) fn interface(word: &Word<'_>, invert: bool) -> Result<Option<IfaceTest>, What> {
    let text = &*word.text;
    if text.is_empty() || text.len() > MAX_IFACE {
        let what = format!("an interface name of 1 to {MAX_IFACE} bytes, found \"{text}\"");
        return Err(What::new(word.column, what));
    }
    let (name, prefix) = match text.strip_suffix('+') {
        Some(name) => (name, true),
        None => (text, false),
    };
    let everything = name.is_empty() && !invert;
    Ok((!everything).then(|| IfaceTest { name: name.into(), prefix, invert }))
}

/// The tests of single fields that a rule makes without saying so.
pub(super) fn implied(family: Family) -> Vec<FieldTest> {
    match family {
        Family::Arp => {
            let value = [6, 0, 0, 0, 0, 0];
            let mask = [0xff, 0, 0, 0, 0, 0];
            let len = FieldTest { field: Field::HardwareLen, value, mask, invert: false };
            vec![len, FieldTest::number(Field::HardwareType, 1, false)]
        }
        _ => Vec::new(),
    }
}

/// A test of a single field.
pub(super) fn field(field: Field, word: &Word<'_>, invert: bool) -> Result<FieldTest, What> {
    let text = &*word.text;
    let expected = |what: &str| What::new(word.column, format!("{what}, found \"{text}\""));
    let (value, mask) = match field {
        Field::EtherType => return ethertype(word, invert),
        Field::SenderHardware | Field::TargetHardware => {
            value::masked_mac(text).ok_or_else(|| expected("an Ethernet address[/mask]"))?
        }
        _ => {
            let (value, mask) = masked(field, text)
                .ok_or_else(|| expected("a number[/mask] that fits the field, or its name"))?;
            (spread(field, value & mask), spread(field, mask))
        }
    };
    Ok(FieldTest { field, value, mask, invert })
}

/// A number in the first bytes of its field.
fn spread(field: Field, number: u16) -> [u8; 6] {
    let [high, low] = number.to_be_bytes();
    if field == Field::HardwareLen { [low, 0, 0, 0, 0, 0] } else { [high, low, 0, 0, 0, 0] }
}

/// Number and mask of an ARP field, each in the notation that the tool has for that field.
fn masked(field: Field, text: &str) -> Option<(u16, u16)> {
    let max = if field == Field::HardwareLen { 0xff } else { 0xffff };
    let number = |text: &str| match field {
        Field::HardwareType => {
            let hex = text.strip_prefix("0x").unwrap_or(text);
            u16::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+'))
        }
        _ => value::number(text, max).map(|number| number as u16),
    };
    let named = match field {
        Field::Operation => value::arp_operation(text),
        Field::HardwareType if text.eq_ignore_ascii_case("Ethernet") => Some(1),
        Field::ProtocolType if text.eq_ignore_ascii_case("ipv4") => Some(0x0800),
        _ => None,
    };
    if let Some(value) = named {
        return Some((value, max as u16));
    }
    match text.split_once('/') {
        Some((value, mask)) => Some((number(value)?, number(mask)?)),
        None => Some((number(text)?, max as u16)),
    }
}

/// An EtherType by number or name.
fn ethertype(word: &Word<'_>, invert: bool) -> Result<FieldTest, What> {
    let text = &*word.text;
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let number = || u16::from_str_radix(hex, 16).ok().filter(|number| *number >= 0x0600);
    let number = ethertype_number(text).or_else(number).ok_or_else(|| {
        let what = format!("an EtherType of 0600-ffff or its name, found \"{text}\"");
        What::new(word.column, what)
    })?;
    Ok(FieldTest::number(Field::EtherType, number, invert))
}

/// A protocol by number or name; `None` for `all`, which tests nothing.
pub(super) fn protocol(word: &Word<'_>, invert: bool) -> Result<Option<ProtocolTest>, What> {
    let number =
        value::u8(&word.text).or_else(|| protocol_number(&word.text)).ok_or_else(|| {
            let what = format!("a protocol number 0-255 or name, found \"{}\"", word.text);
            What::new(word.column, what)
        })?;
    if number == 0 && invert {
        return Err(What::new(word.column, "a protocol that some packet can have after !"));
    }
    Ok((number != 0).then_some(ProtocolTest { number, invert }))
}
