//! Reads the tests that need no extension: `-s -d -i -o -p -f`.
//!
//! Source: iptables(8) "PARAMETERS"; `xtables_parse_interface` for names.

use smallvec::{SmallVec, smallvec};

use super::{What, Word};
use crate::ext::value;
use crate::family::protocol_number;
use crate::model::{Family, IfaceTest, MaskedAddr, ProtocolTest};

/// `IFNAMSIZ` - 1.
const MAX_IFACE: usize = 15;

/// A comma list of addresses, nearly always one.
pub(super) type Addresses = SmallVec<[Option<MaskedAddr>; 1]>;

/// A comma list of addresses; `None` stands for every address, which tests nothing.
pub(super) fn addresses(word: &Word<'_>, invert: bool, family: Family) -> Result<Addresses, What> {
    if memchr::memchr(b',', word.text.as_bytes()).is_none() {
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
    let (addr, mask) = value::network(text.trim(), family.addr_len()).ok_or_else(|| {
        let what = format!("an {} address or address/mask, found \"{text}\"", kind_of(family));
        let hint = if looks_like_name(text) { " (host names are not resolved)" } else { "" };
        What::new(word.column, what + hint)
    })?;
    let everything = mask == [0; 16] && !invert;
    Ok((!everything).then_some(MaskedAddr { addr, mask, invert }))
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
