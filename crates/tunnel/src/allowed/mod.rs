//! Whose addresses are whose: the longest prefix says which peer a packet goes to, and which one it may come from.
//! A tree of prefixes for each family, in which a node has at most two below it, and which skips bits that decide
//! nothing; a lookup takes as many steps as prefixes contain the address, and one more. Held to a list that is
//! searched from end to end (`tests`).

#[cfg(test)]
mod tests;

use std::net::IpAddr;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

/// A prefix is longer than its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixTooLong {
    /// Bits of the prefix.
    pub len: u8,
    /// Bits of an address of its family.
    pub most: u8,
}

impl std::fmt::Display for PrefixTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a prefix of {} bits, and an address has {}", self.len, self.most)
    }
}

impl std::error::Error for PrefixTooLong {}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// A text that is no prefix: `ADDRESS/BITS`, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPrefix;

impl std::str::FromStr for Prefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotAPrefix)?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let len = len.map_or(Ok(whole), str::parse).map_err(|_| NotAPrefix)?;
        Self::new(address, len).map_err(|_| NotAPrefix)
    }
}

impl Prefix {
    /// The first `len` bits of `address`; what follows them is cleared.
    ///
    /// # Errors
    /// If the address has fewer bits.
    pub fn new(address: IpAddr, len: u8) -> Result<Self, PrefixTooLong> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        if len > most {
            return Err(PrefixTooLong { len, most });
        }
        let bits = bits(address) & mask(len);
        let address = match address {
            IpAddr::V4(_) => IpAddr::V4(((bits >> 96) as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(bits.into()),
        };
        Ok(Self { address, len })
    }

    /// Returns the prefix's first address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the number of its bits.
    #[must_use]
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Whether every address of its family is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// An address, its first bit the highest.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

/// Prefixes, and what each is given to.
#[derive(Clone, Debug)]
pub struct Allowed<T> {
    v4: Tree<T>,
    v6: Tree<T>,
}

impl<T: Copy + PartialEq> Default for Allowed<T> {
    fn default() -> Self {
        Self { v4: Tree(None), v6: Tree(None) }
    }
}

impl<T: Copy + PartialEq> Allowed<T> {
    /// Gives `prefix` to `owner`, and takes it from its previous owner.
    pub fn insert(&mut self, prefix: Prefix, owner: T) {
        let (bits, len) = (bits(prefix.address), prefix.len);
        self.tree(prefix.address).insert(bits, len, owner);
    }

    /// Takes all prefixes of `owner` away.
    pub fn remove(&mut self, owner: T) {
        for tree in [&mut self.v4, &mut self.v6] {
            let mut left = Vec::new();
            tree.drain(&mut left);
            for (bits, len, of) in left.into_iter().filter(|(_, _, of)| *of != owner) {
                tree.insert(bits, len, of);
            }
        }
    }

    /// The owner of the longest prefix that contains `address`.
    #[must_use]
    pub fn find(&self, address: IpAddr) -> Option<T> {
        let tree = if address.is_ipv4() { &self.v4 } else { &self.v6 };
        tree.find(bits(address))
    }

    fn tree(&mut self, address: IpAddr) -> &mut Tree<T> {
        if address.is_ipv4() { &mut self.v4 } else { &mut self.v6 }
    }
}

#[derive(Clone, Debug)]
struct Tree<T>(Option<Box<Node<T>>>);

/// A prefix; one without an owner is where two others part.
#[derive(Clone, Debug)]
struct Node<T> {
    bits: u128,
    len: u8,
    owner: Option<T>,
    below: [Tree<T>; 2],
}

impl<T: Copy> Node<T> {
    fn leaf(bits: u128, len: u8, owner: Option<T>) -> Box<Self> {
        Box::new(Self { bits, len, owner, below: [Tree(None), Tree(None)] })
    }

    fn contains(&self, bits: u128) -> bool {
        (self.bits ^ bits) & mask(self.len) == 0
    }

    /// Which of the two below goes on with `bits`. Nobody asks a node of all bits.
    fn side(&self, bits: u128) -> usize {
        usize::from(bits << self.len >> 127 != 0)
    }
}

impl<T: Copy> Tree<T> {
    fn find(&self, bits: u128) -> Option<T> {
        let (mut tree, mut found) = (self, None);
        while let Some(node) = tree.0.as_ref().filter(|node| node.contains(bits)) {
            found = node.owner.or(found);
            if node.len == 128 {
                break;
            }
            tree = &node.below[node.side(bits)];
        }
        found
    }

    /// As deep as bits are many, 128 at most.
    fn insert(&mut self, bits: u128, len: u8, owner: T) {
        let Some(node) = &mut self.0 else {
            self.0 = Some(Node::leaf(bits, len, Some(owner)));
            return;
        };
        let common = ((node.bits ^ bits).leading_zeros() as u8).min(len).min(node.len);
        if common == node.len && common == len {
            node.owner = Some(owner);
        } else if common == node.len {
            let side = node.side(bits);
            node.below[side].insert(bits, len, owner);
        } else {
            self.part(common);
            self.insert(bits, len, owner);
        }
    }

    /// Puts a node of the first `common` bits over the one there is.
    fn part(&mut self, common: u8) {
        if let Some(old) = self.0.take() {
            let mut over = Node::leaf(old.bits & mask(common), common, None);
            let side = over.side(old.bits);
            over.below[side] = Tree(Some(old));
            self.0 = Some(over);
        }
    }

    /// Takes everything out.
    fn drain(&mut self, out: &mut Vec<(u128, u8, T)>) {
        if let Some(mut node) = self.0.take() {
            out.extend(node.owner.map(|owner| (node.bits, node.len, owner)));
            node.below.iter_mut().for_each(|below| below.drain(out));
        }
    }
}
