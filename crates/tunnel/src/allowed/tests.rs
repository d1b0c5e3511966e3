//! The tree against a list, as the kernel's own test does (`drivers/net/wireguard/selftest/allowedips.c`), and the
//! cases that audits of others found.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// Searched from end to end.
#[derive(Default)]
struct Naive(Vec<(Prefix, u8)>);

impl Naive {
    fn insert(&mut self, prefix: Prefix, owner: u8) {
        self.0.retain(|(other, _)| *other != prefix);
        self.0.push((prefix, owner));
    }

    fn find(&self, address: IpAddr) -> Option<u8> {
        let contains = |prefix: &Prefix| Prefix::new(address, prefix.len) == Ok(*prefix);
        let same = |prefix: &Prefix| prefix.address.is_ipv4() == address.is_ipv4();
        let holding = self.0.iter().filter(|(prefix, _)| same(prefix) && contains(prefix));
        holding.max_by_key(|(prefix, _)| prefix.len).map(|(_, owner)| *owner)
    }
}

/// Addresses that have long beginnings in common.
fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = (any::<u32>(), 0..33_u32).prop_map(|(noise, at)| {
        let low = noise.checked_shr(at).unwrap_or(0);
        IpAddr::V4(Ipv4Addr::from_bits(0x0a80_ff01 ^ low))
    });
    let v6 = (any::<u128>(), 0..129_u32).prop_map(|(noise, at)| {
        let low = noise.checked_shr(at).unwrap_or(0);
        IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_80ff_0001 << 64 ^ low))
    });
    prop_oneof![v4, v6]
}

fn prefix() -> impl Strategy<Value = Prefix> {
    (address(), 0..129_u8).prop_map(|(address, len)| {
        Prefix::new(address, if address.is_ipv4() { len % 33 } else { len }).unwrap()
    })
}

proptest! {
    #[test]
    fn the_tree_finds_what_the_list_finds(
        entries in proptest::collection::vec((prefix(), 0..6_u8), 0..60),
        gone in proptest::option::of(0..6_u8),
        asked in proptest::collection::vec(address(), 40),
    ) {
        let (mut tree, mut naive) = (Allowed::default(), Naive::default());
        for (prefix, owner) in &entries {
            tree.insert(*prefix, *owner);
            naive.insert(*prefix, *owner);
        }
        if let Some(gone) = gone {
            tree.remove(gone);
            naive.0.retain(|(_, owner)| *owner != gone);
        }
        let edges = entries.iter().map(|(prefix, _)| prefix.address);
        for address in asked.iter().copied().chain(edges) {
            prop_assert_eq!(tree.find(address), naive.find(address), "{}", address);
        }
    }
}

fn of(text: &str) -> Prefix {
    let (address, len) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
}

/// Finding: an address in one peer's range was taken from another whose range contains that one.
#[test]
fn a_range_within_anothers_is_not_the_others() {
    let mut allowed = Allowed::default();
    allowed.insert(of("10.0.0.0/8"), 'a');
    allowed.insert(of("10.1.0.0/16"), 'b');
    assert_eq!(allowed.find([10, 1, 2, 3].into()), Some('b'));
    assert_eq!(allowed.find([10, 2, 2, 3].into()), Some('a'));
    assert_eq!(allowed.find([11, 0, 0, 1].into()), None);
    allowed.remove('b');
    assert_eq!(allowed.find([10, 1, 2, 3].into()), Some('a'));
}

#[test]
fn a_prefix_that_is_given_again_is_the_new_owners() {
    let mut allowed = Allowed::default();
    for owner in ['a', 'b'] {
        allowed.insert(of("0.0.0.0/0"), owner);
        allowed.insert(of("2001:db8::1/128"), owner);
    }
    assert_eq!(allowed.find([192, 0, 2, 1].into()), Some('b'));
    assert_eq!(allowed.find(of("2001:db8::1/128").address), Some('b'));
    assert_eq!(
        allowed.find(of("2001:db8::2/128").address),
        None,
        "IPv4's default is none of IPv6's"
    );
}

#[test]
fn prefixes_clear_what_follows_them_and_are_no_longer_than_addresses() {
    assert_eq!(of("10.1.2.3/8"), of("10.0.0.0/8"));
    let long = Prefix::new([10, 0, 0, 0].into(), 33);
    assert_eq!(long, Err(PrefixTooLong { len: 33, most: 32 }));
    assert!(of("::/0").is_empty() && of("::1/128").len() == 128);
}
