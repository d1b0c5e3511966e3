//! An address with an optional mask, as options such as `--ctorigsrc` and `--tunnel-src` hold it.
//!
//! Unlike `-s` and `-d` the address keeps the bits outside its mask, and a full mask is not printed.
//! Source: iptables `XTTYPE_HOSTMASK`.

use std::fmt;
use std::net::IpAddr;

use crate::error::What;
use crate::ext::Given;
use crate::family::Family;
use crate::value;

/// Address and mask in network byte order; IPv4 uses the first 4 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostMask {
    addr: [u8; 16],
    mask: [u8; 16],
    len: u8,
}

impl HostMask {
    /// Reads `address[/mask]`; the mask is a prefix length or an address.
    pub(crate) fn parse(given: &Given<'_>, family: Family) -> Result<Self, What> {
        Self::read(given.text(), family.addr_len())
            .ok_or_else(|| given.expected("an address, or address/mask"))
    }

    /// Whether an address lies in it.
    pub(crate) fn holds(&self, addr: IpAddr) -> bool {
        let same = |addr: &[u8]| {
            addr.iter().zip(self.addr).zip(self.mask).all(|((a, b), mask)| (a ^ b) & mask == 0)
        };
        match addr {
            IpAddr::V4(addr) => self.len == 4 && same(&addr.octets()),
            IpAddr::V6(addr) => self.len == 16 && same(&addr.octets()),
        }
    }

    fn read(text: &str, len: usize) -> Option<Self> {
        let (addr, mask) = match text.split_once('/') {
            Some((addr, mask)) => (addr, value::mask(mask, len)?),
            None => (text, value::prefix_mask(len * 8)),
        };
        Some(Self { addr: value::address(addr, len)?, mask, len: len as u8 })
    }
}

impl fmt::Display for HostMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = usize::from(self.len);
        f.write_str(&value::address_text(&self.addr, len))?;
        match value::prefix_len(&self.mask, len) {
            Some(bits) if bits == len * 8 => Ok(()),
            Some(bits) => write!(f, "/{bits}"),
            None => write!(f, "/{}", value::address_text(&self.mask, len)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_not_masked_and_a_full_mask_is_silent() {
        let print = |text, len| HostMask::read(text, len).unwrap().to_string();
        assert_eq!(print("1.2.3.4", 4), "1.2.3.4");
        assert_eq!(print("1.2.3.4/255.255.255.0", 4), "1.2.3.4/24");
        assert_eq!(print("1.2.3.4/255.0.255.0", 4), "1.2.3.4/255.0.255.0");
        assert_eq!(print("2001:db8::1/128", 16), "2001:db8::1");
        assert_eq!(print("2001:db8::1/0", 16), "2001:db8::1/0");
        assert_eq!(HostMask::read("1.2.3.4/33", 4), None);
    }
}
