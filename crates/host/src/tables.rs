//! Routing tables laid out for the longest prefix that holds an address.
//!
//! The prefixes of a table are cut at each other's ends into ranges of addresses, each of which knows the longest
//! prefix over it; every prefix knows the next shorter prefix that holds it. So one binary search finds the longest,
//! and one step for each prefix around it the others: O(log n + depth), however large the table is.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::Network;
use crate::route::{LOCAL, MAIN, Route, RouteKind};

/// The tables of both families.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    v4: BTreeMap<Box<str>, Table>,
    v6: BTreeMap<Box<str>, Table>,
    /// IPv4's tables `local` and `main` in one, which is how they are searched until somebody makes a policy rule.
    merged: Table,
    has_local: [bool; 2],
    /// Somebody made an IPv4 route of type local, besides the routes of addresses.
    has_custom_local: bool,
}

/// One table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    prefixes: Vec<Prefix>,
    /// First addresses of ranges, ascending: IPv4's in few bytes, for the search to stay in the cache.
    v4: Vec<u32>,
    v6: Vec<u128>,
    /// The longest prefix that holds each range.
    longest: Vec<Option<u32>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Prefix {
    /// Routes to it, in the order in which they are tried.
    routes: Vec<u32>,
    /// The next shorter prefix that holds it.
    parent: Option<u32>,
}

fn number(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

impl Tables {
    pub(crate) fn of(all: &[Route]) -> Self {
        let mut by_name: BTreeMap<(bool, &str), Vec<u32>> = BTreeMap::new();
        let mut merged = Vec::new();
        let mut has_local = [false; 2];
        let is_custom = |route: &Route| {
            let is_local = route.kind == RouteKind::Local && route.destination.addr.is_ipv4();
            is_local && route.by_kernel == Some(false)
        };
        let has_custom_local = all.iter().any(is_custom);
        for (place, route) in (0..).zip(all) {
            let is_v6 = route.destination.addr.is_ipv6();
            by_name.entry((is_v6, &route.table)).or_default().push(place);
            if !is_v6 && matches!(&*route.table, LOCAL | MAIN) {
                merged.push(place);
            }
            let is_group = is_v6 && route.destination.addr.is_multicast();
            has_local[usize::from(is_v6)] |= &*route.table == LOCAL && !is_group;
        }
        let mut tables =
            Self { has_local, has_custom_local, merged: Table::of(all, merged), ..Self::default() };
        for ((is_v6, name), places) in by_name {
            let of_family = if is_v6 { &mut tables.v6 } else { &mut tables.v4 };
            of_family.insert(name.into(), Table::of(all, places));
        }
        tables
    }

    /// The table of that name.
    pub(crate) fn of_name(&self, is_v6: bool, name: &str) -> Option<&Table> {
        if is_v6 { self.v6.get(name) } else { self.v4.get(name) }
    }

    /// Names of the tables of a family.
    pub(crate) fn names(&self, is_v6: bool) -> impl Iterator<Item = &str> {
        let of_family = if is_v6 { &self.v6 } else { &self.v4 };
        of_family.keys().map(|name| &**name)
    }

    pub(crate) fn merged(&self) -> &Table {
        &self.merged
    }

    pub(crate) fn has_custom_local(&self) -> bool {
        self.has_custom_local
    }

    pub(crate) fn has_local(&self, is_v6: bool) -> bool {
        self.has_local[usize::from(is_v6)]
    }
}

impl Table {
    fn of(all: &[Route], mut places: Vec<u32>) -> Self {
        let network = |place: &u32| all[*place as usize].destination;
        // The order of the kernel's tries: of equal prefixes, local routes first, then routes with a type of service,
        // then by metric.
        places.sort_by_key(|place| {
            let route = &all[*place as usize];
            let from = Reverse(route.from.map_or(0, |from| from.bits));
            let rank = (&*route.table != LOCAL, from, Reverse(route.tos), route.metric);
            (number(route.destination.addr), route.destination.bits, rank)
        });
        let mut table = Building::default();
        let mut around: Vec<(Network, u32)> = Vec::new();
        for group in places.chunk_by(|a, b| network(a) == network(b)) {
            let Some(net) = group.first().map(network) else { continue };
            while let Some((outer, _)) = around.last().filter(|(outer, _)| !outer.holds(net.addr)) {
                let last = number(outer.last());
                around.pop();
                table.cut(last, around.last().map(|(_, prefix)| *prefix));
            }
            let prefix = u32::try_from(table.prefixes.len()).unwrap_or(u32::MAX);
            let parent = around.last().map(|(_, prefix)| *prefix);
            table.prefixes.push(Prefix { routes: group.to_vec(), parent });
            table.begin(number(net.addr), Some(prefix));
            around.push((net, prefix));
        }
        while let Some((outer, _)) = around.pop() {
            table.cut(number(outer.last()), around.last().map(|(_, prefix)| *prefix));
        }
        let is_v4 = places.first().is_some_and(|place| network(place).addr.is_ipv4());
        let firsts = table.ranges.iter().map(|(first, _)| *first);
        let v4 = firsts.clone().filter(|_| is_v4).filter_map(|first| first.try_into().ok());
        Self {
            v4: v4.collect(),
            v6: firsts.filter(|_| !is_v4).collect(),
            longest: table.ranges.iter().map(|(_, longest)| *longest).collect(),
            prefixes: table.prefixes,
        }
    }

    /// Routes to the prefixes that hold an address, the longest first.
    pub(crate) fn holding(&self, addr: IpAddr) -> impl Iterator<Item = &[u32]> {
        let ranges = match addr {
            IpAddr::V4(v4) => self.v4.partition_point(|first| *first <= u32::from(v4)),
            IpAddr::V6(v6) => self.v6.partition_point(|first| *first <= u128::from(v6)),
        };
        let longest = ranges.checked_sub(1).and_then(|place| self.longest[place]);
        let chain = std::iter::successors(longest, |prefix| self.prefixes[*prefix as usize].parent);
        chain.map(|prefix| &*self.prefixes[prefix as usize].routes)
    }
}

/// A table that is laid out.
#[derive(Debug, Default)]
struct Building {
    prefixes: Vec<Prefix>,
    /// First addresses of ranges, ascending, and the longest prefix that holds them.
    ranges: Vec<(u128, Option<u32>)>,
}

impl Building {
    /// A range begins after this address.
    fn cut(&mut self, last: u128, prefix: Option<u32>) {
        if let Some(next) = last.checked_add(1) {
            self.begin(next, prefix);
        }
    }

    fn begin(&mut self, first: u128, prefix: Option<u32>) {
        match self.ranges.last_mut() {
            Some(range) if range.0 == first => range.1 = prefix,
            _ => self.ranges.push((first, prefix)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Routes;
    use proptest::prelude::*;

    /// Addresses that often lie in each other's prefixes.
    fn addr(is_v6: bool) -> impl Strategy<Value = IpAddr> {
        let few = prop_oneof![Just(0u8), Just(1), Just(0x80), Just(0xff), any::<u8>()];
        proptest::collection::vec(few, 16).prop_map(move |bytes| {
            let bytes: [u8; 16] = bytes.try_into().unwrap();
            if is_v6 { bytes.into() } else { [bytes[0], bytes[1], bytes[2], bytes[3]].into() }
        })
    }

    fn scan(routes: &Routes, addr: IpAddr) -> Vec<u8> {
        let holding = routes.all().iter().filter(|route| route.destination.holds(addr));
        let mut bits: Vec<u8> = holding.map(|route| route.destination.bits).collect();
        bits.sort_by(|a, b| b.cmp(a));
        bits
    }

    proptest! {
        #[test]
        fn tables_find_what_a_scan_finds(
            (is_v6, prefixes, wanted) in any::<bool>().prop_flat_map(|is_v6| {
                let bits = if is_v6 { 0u8..=128 } else { 0..=32 };
                (Just(is_v6), proptest::collection::vec((addr(is_v6), bits), 0..60),
                 proptest::collection::vec(addr(is_v6), 1..40))
            })
        ) {
            let lines = prefixes.iter().map(|(addr, bits)| format!("{addr}/{bits} dev a\n"));
            let routes = Routes::parse(&lines.collect::<String>()).unwrap();
            let ends = routes.all().iter().flat_map(|r| [r.destination.addr, r.destination.last()]);
            for addr in wanted.into_iter().chain(ends.collect::<Vec<_>>()) {
                // IPv6 groups are put into the local table.
                let tables = [MAIN, LOCAL].map(|name| routes.tables().of_name(is_v6, name));
                let places = tables.into_iter().flatten().flat_map(|table| table.holding(addr)).flatten();
                let mut found: Vec<u8> =
                    places.map(|place| routes.all()[*place as usize].destination.bits).collect();
                let sorted = found.windows(2).filter(|pair| pair[0] < pair[1]).count();
                prop_assert!(sorted <= 1);
                found.sort_by(|a, b| b.cmp(a));
                prop_assert_eq!(found, scan(&routes, addr), "{}", addr);
            }
        }
    }
}
