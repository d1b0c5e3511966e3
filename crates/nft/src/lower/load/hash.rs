//! `numgen` and `jhash`: numbers below a modulus, counted, drawn or hashed.
//!
//! What the kernel drew for a recorded packet is not known. A hash with a seed is Bob Jenkins' `lookup3` over the key's
//! bytes as they are on the wire, each part filled up to whole words. Source: kernel `net/netfilter/nft_numgen.c`,
//! `nft_hash.c`, `include/linux/jhash.h`.

use super::{Load, bytes};
use crate::lower::word::{Loaded, Word};
use rules::Transit;

/// Numbers that are listed one by one; of more, only their span is known.
const FEW: u32 = 16;

/// A number that is drawn.
#[derive(Debug)]
pub(crate) struct Random {
    /// The number is that of the packet among all that came here (`inc`), which is not counted: it may be any.
    pub counted: bool,
    pub modulus: u32,
    pub offset: u32,
}

impl Load for Random {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        let (first, count) = (u128::from(self.offset), u128::from(self.modulus));
        match transit.chance {
            _ if self.modulus == 0 => Loaded::anything(32),
            Some(chance) if !self.counted => {
                Loaded::known(first + u128::from(chance.draw()) % count)
            }
            _ if self.modulus <= FEW => {
                Loaded { words: (first..first + count).map(Word::known).collect(), breaks: false }
            }
            _ => Loaded::word(Word::between(first, first + count - 1)),
        }
    }

    fn repeats(&self) -> bool {
        false
    }

    fn asks_for(&self) -> Option<&'static str> {
        Some("which number the kernel drew or counted is not known")
    }

    fn bytecode(&self, _show: &mut dyn FnMut(String)) {}
}

/// A number that is hashed.
#[derive(Debug)]
pub(crate) struct Jhash {
    /// The key, with the widths of its parts in bits.
    pub key: Box<[(Box<dyn Load>, u32)]>,
    pub modulus: u32,
    pub seed: u32,
    pub offset: u32,
}

impl Load for Jhash {
    fn load(&self, transit: &Transit<'_, '_>) -> Loaded {
        let mut key = Vec::new();
        let (mut breaks, mut vague) = (false, self.modulus == 0);
        let several = self.key.len() > 1;
        for (part, bits) in &self.key {
            let loaded = part.load(transit);
            if loaded.words.is_empty() {
                return Loaded::nothing();
            }
            breaks |= loaded.breaks;
            let only = match &loaded.words[..] {
                [word] => word.as_known(),
                _ => None,
            };
            let len = bytes(*bits) as usize;
            match only {
                Some(value) => key.extend(value.to_be_bytes().iter().skip(16 - len.min(16))),
                None => vague = true,
            }
            if several {
                key.resize(key.len().next_multiple_of(4), 0);
            }
        }
        let (first, count) = (u128::from(self.offset), u128::from(self.modulus));
        let loaded = match vague {
            true => Loaded::word(Word::between(first, first + count.saturating_sub(1))),
            false => {
                let scaled = (u128::from(jhash(&key, self.seed)) * count) >> 32;
                Loaded::known(scaled + first)
            }
        };
        Loaded { breaks, ..loaded }
    }

    fn tracks(&self) -> bool {
        self.key.iter().any(|(part, _)| part.tracks())
    }

    fn lacks(&self) -> Option<&str> {
        self.key.iter().find_map(|(part, _)| part.lacks())
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.key.iter().for_each(|(part, _)| part.bytecode(show));
    }
}

/// The hash of bytes.
fn jhash(key: &[u8], seed: u32) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32).wrapping_add(seed);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = key;
    let word = |from: &[u8], at: usize| {
        let byte = |index: usize| u32::from(from.get(at * 4 + index).copied().unwrap_or(0));
        byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
    };
    while rest.len() > 12 {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 1));
        c = c.wrapping_add(word(rest, 2));
        for [first, second, third] in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(first);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(second);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(third);
            b = b.wrapping_add(a);
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(rest, 0));
    b = b.wrapping_add(word(rest, 1));
    c = c.wrapping_add(word(rest, 2));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes that the driver of `lookup3.c` prints.
    #[test]
    fn the_hash_is_that_of_lookup3() {
        assert_eq!(jhash(b"", 0), 0xdead_beef);
        assert_eq!(jhash(b"", 0xdead_beef), 0xbd5b_7dde);
        assert_eq!(jhash(b"Four score and seven years ago", 0), 0x1777_0551);
        assert_eq!(jhash(b"Four score and seven years ago", 1), 0xcd62_8161);
    }
}
