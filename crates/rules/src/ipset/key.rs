//! [`Key`]: an element, or what a packet looks for, in words of 32 bits.
//!
//! Words 0-3 and 4-7 are the two addresses, word 8 holds what is neither address nor prefix, word 9 the
//! prefix lengths and the rest of a MAC address. A set of IPv4 addresses needs four of the ten.

/// An element without its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Key(pub(super) [u32; 10]);

/// A key of a set whose addresses have one word.
pub(super) type Narrow = [u32; 4];

const REST: usize = 8;
const PREFIXES: usize = 9;

impl Key {
    /// The key without its unused words.
    pub(super) fn narrow(&self) -> Narrow {
        [self.0[0], self.0[4], self.0[REST], self.0[PREFIXES]]
    }

    /// Returns the wide key of a narrow one.
    pub(super) fn wide([first, second, rest, prefixes]: Narrow) -> Self {
        Self([first, 0, 0, 0, second, 0, 0, 0, rest, prefixes])
    }

    /// Address `index` (0 or 1): 4 or 16 bytes in network order.
    pub(super) fn set_addr(&mut self, index: usize, addr: &[u8; 16]) {
        for (word, bytes) in self.0[index * 4..][..4].iter_mut().zip(addr.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
    }

    /// Keeps the first `bits` of address `index` and names them as its prefix length.
    pub(super) fn set_prefix(&mut self, index: usize, bits: u8) {
        let mut left = u32::from(bits);
        for word in &mut self.0[index * 4..][..4] {
            let here = left.min(32);
            *word &= u32::MAX.checked_shl(32 - here).unwrap_or(0);
            left -= here;
        }
        let shift = index * 8;
        self.0[PREFIXES] = self.0[PREFIXES] & !(0xff << shift) | u32::from(bits) << shift;
    }

    /// The prefix length of address `index`.
    pub(super) fn prefix(&self, index: usize) -> u8 {
        (self.0[PREFIXES] >> (index * 8)) as u8
    }

    /// Keeps these bits of address `index`.
    pub(super) fn mask_addr(&mut self, index: usize, mask: &[u8; 16]) {
        for (word, bytes) in self.0[index * 4..][..4].iter_mut().zip(mask.as_chunks::<4>().0) {
            *word &= u32::from_be_bytes(*bytes);
        }
    }

    /// Whether address `index` is all zero.
    pub(super) fn is_zero_addr(&self, index: usize) -> bool {
        self.0[index * 4..][..4].iter().all(|word| *word == 0)
    }

    /// The first word of the first address.
    pub(super) fn first_word(&self) -> u32 {
        self.0[0]
    }

    /// Protocol and port; or 0 and a bare port.
    pub(super) fn set_port(&mut self, protocol: u8, port: u16) {
        self.0[REST] = u32::from(protocol) << 16 | u32::from(port);
    }

    /// The port that [`Key::set_port`] wrote.
    pub(super) fn port(&self) -> u16 {
        self.0[REST] as u16
    }

    /// Address `index`, as [`Key::set_addr`] took it.
    pub(super) fn addr(&self, index: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&self.0[index * 4..]) {
            *bytes = word.to_be_bytes();
        }
        bytes
    }

    /// The protocol that [`Key::set_port`] wrote.
    pub(super) fn protocol(&self) -> u8 {
        (self.0[REST] >> 16) as u8
    }

    /// What [`Key::set_rest`] wrote.
    pub(super) fn rest(&self) -> u32 {
        self.0[REST]
    }

    /// The MAC address that [`Key::set_mac`] wrote.
    pub(super) fn mac(&self) -> [u8; 6] {
        let [a, b, c, d] = self.0[REST].to_be_bytes();
        let [e, f, ..] = self.0[PREFIXES].to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// A mark, or the number of an interface name.
    pub(super) fn set_rest(&mut self, rest: u32) {
        self.0[REST] = rest;
    }

    /// A MAC address.
    pub(super) fn set_mac(&mut self, [a, b, c, d, e, f]: [u8; 6]) {
        self.0[REST] = u32::from_be_bytes([a, b, c, d]);
        self.0[PREFIXES] = self.0[PREFIXES] & 0xffff | u32::from(u16::from_be_bytes([e, f])) << 16;
    }

    /// The key without what is neither address nor prefix.
    pub(super) fn without_rest(mut self) -> Self {
        self.0[REST] = 0;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_mask_their_own_address_only() {
        let mut key = Key::default();
        key.set_addr(0, &[0xff; 16]);
        key.set_addr(1, &[0xff; 16]);
        key.set_prefix(0, 33);
        key.set_prefix(1, 0);
        assert_eq!(key.0, [u32::MAX, 1 << 31, 0, 0, 0, 0, 0, 0, 0, 33]);
        key.set_mac([1, 2, 3, 4, 5, 6]);
        assert_eq!(key.0[8..], [0x0102_0304, 0x0506_0021]);
    }

    #[test]
    fn narrow_keys_come_back_whole() {
        let mut key = Key::default();
        key.set_addr(0, &[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        key.set_prefix(0, 32);
        key.set_port(6, 80);
        assert_eq!(Key::wide(key.narrow()), key);
    }
}
