//! [`Paths`]: the paths through the relay, each between two nodes, by a port of the relay. A port serves many paths, but
//! no two of one node: the source of a datagram and the port say which path it is of, so nothing is added to it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::RangeInclusive;

use crate::limits::{PUNCH_FRESH, RELAYS};
use crate::name::Name;

/// The two nodes of a path, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair(pub Name, pub Name);

impl Pair {
    /// The pair of two nodes.
    #[must_use]
    pub fn of(one: &Name, other: &Name) -> Self {
        let (first, second) = if one < other { (one, other) } else { (other, one) };
        Self(first.clone(), second.clone())
    }

    /// The other node of the pair, if this one is of it.
    #[must_use]
    pub fn other(&self, name: &Name) -> Option<&Name> {
        match (*name == self.0, *name == self.1) {
            (true, _) => Some(&self.1),
            (false, true) => Some(&self.0),
            _ => None,
        }
    }
}

/// Paths by their pairs.
#[derive(Debug)]
pub(crate) struct Paths {
    ports: RangeInclusive<u16>,
    paths: HashMap<Pair, Path>,
    /// The ports that each node's paths have, and the other node of each.
    taken: HashMap<Name, BTreeMap<u16, Name>>,
    /// When each path is looked at whether it is idle: so nobody looks at all of them. A path that ended may be in it.
    order: VecDeque<(u64, Pair)>,
}

/// A node's word on how it reaches the other one, and when it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) at: u64,
    pub(crate) is_direct: bool,
    pub(crate) micros: Option<u32>,
}

#[derive(Debug)]
struct Path {
    port: u16,
    touched: u64,
    /// Attempts of the two to reach each other directly, and when the last one began.
    attempts: u32,
    attempted: Option<u64>,
    /// One of the two has begun again since, and routers have nothing of its socket, or has not heard of the last attempt.
    is_fresh: bool,
    /// The version of the policy from which on the two may begin what they may.
    since: u64,
    /// The orders by which relays apart carry the path; the last number of all if there is none yet.
    orders: [u64; RELAYS],
    /// Nodes were shown the way, and none of them has begun again since.
    is_shown: bool,
    /// What the two nodes said last of how they reach each other.
    said: [Option<Said>; 2],
}

impl Path {
    fn new(port: u16, touched: u64, since: u64) -> Self {
        let (attempts, attempted, is_fresh) = (0, None, false);
        let (orders, is_shown, said) = ([u64::MAX; RELAYS], false, [None; 2]);
        Self { port, touched, attempts, attempted, is_fresh, since, orders, is_shown, said }
    }
}

impl Paths {
    pub(crate) fn new(ports: RangeInclusive<u16>) -> Self {
        let (paths, taken, order) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self { ports, paths, taken, order }
    }

    /// The port of the path between two nodes, which is made under this version of the policy if there is none; nothing if no
    /// port is left.
    pub(crate) fn touch(&mut self, pair: &Pair, now: u64, version: u64) -> Option<u16> {
        if let Some(path) = self.paths.get_mut(pair) {
            path.touched = now;
            return Some(path.port);
        }
        let mut ports = self.ports.clone();
        let port = ports.find(|port| self.is_free(pair, *port))?;
        self.insert(pair, Path::new(port, now, version));
        Some(port)
    }

    /// Takes up a path that was kept, under this version of the policy; returns whether there is such a port, and neither node
    /// has another path by it.
    pub(crate) fn restore(&mut self, pair: &Pair, port: u16, version: u64) -> bool {
        let can = self.ports.contains(&port) && self.is_free(pair, port);
        if can {
            self.insert(pair, Path::new(port, 0, version));
        }
        can
    }

    fn is_free(&self, pair: &Pair, port: u16) -> bool {
        !self.has_port(&pair.0, port) && !self.has_port(&pair.1, port)
    }

    fn insert(&mut self, pair: &Pair, path: Path) {
        for (name, other) in [(&pair.0, &pair.1), (&pair.1, &pair.0)] {
            self.taken.entry(name.clone()).or_default().insert(path.port, other.clone());
        }
        self.order.push_back((path.touched, pair.clone()));
        self.paths.insert(pair.clone(), path);
    }

    /// The port of the path between two nodes.
    pub(crate) fn port(&self, pair: &Pair) -> Option<u16> {
        self.paths.get(pair).map(|path| path.port)
    }

    /// Whether a node has a path by this port.
    pub(crate) fn has_port(&self, name: &Name, port: u16) -> bool {
        self.taken.get(name).is_some_and(|ports| ports.contains_key(&port))
    }

    /// Counts another attempt of two nodes to reach each other: returns how many there were, unless there is no path or
    /// the last one is not that long ago.
    pub(crate) fn attempt(&mut self, pair: &Pair, pause: u64, now: u64) -> Option<u32> {
        let path = self.paths.get_mut(pair)?;
        let pause = if path.is_fresh { pause.min(PUNCH_FRESH) } else { pause };
        if path.attempted.is_some_and(|at| now < at.saturating_add(pause)) {
            return None;
        }
        let before = if path.is_fresh { 0 } else { path.attempts };
        path.is_fresh = false;
        (path.attempts, path.attempted) = (before.wrapping_add(1), Some(now));
        Some(before)
    }

    /// What was said to one of two nodes since then has not arrived: returns whether an attempt was.
    pub(crate) fn lost(&mut self, pair: &Pair, since: u64) -> bool {
        let path = self.paths.get_mut(pair);
        let Some(path) = path.filter(|it| it.attempted.is_some_and(|at| at >= since)) else {
            return false;
        };
        path.is_fresh = true;
        true
    }

    /// Whether one of two nodes has begun again, or has not heard of the last attempt, and no attempt began since.
    pub(crate) fn is_fresh(&self, pair: &Pair) -> bool {
        self.paths.get(pair).is_some_and(|path| path.is_fresh)
    }

    /// One of two nodes has begun again.
    pub(crate) fn restarted(&mut self, pair: &Pair) {
        if let Some(path) = self.paths.get_mut(pair) {
            (path.is_fresh, path.is_shown, path.said) = (true, false, [None; 2]);
        }
    }

    /// The version of the policy from which on two nodes may begin what they may.
    pub(crate) fn since(&self, pair: &Pair) -> Option<u64> {
        self.paths.get(pair).map(|path| path.since)
    }

    /// From this version of the policy on two nodes may begin something else.
    pub(crate) fn changed(&mut self, pair: &Pair, version: u64) {
        if let Some(path) = self.paths.get_mut(pair) {
            path.since = version;
        }
    }

    /// The order by which a relay apart carries a path.
    pub(crate) fn order(&self, pair: &Pair, relay: usize) -> Option<u64> {
        self.paths.get(pair)?.orders.get(relay).copied()
    }

    /// This is the order by which a relay apart carries a path.
    pub(crate) fn set_order(&mut self, pair: &Pair, relay: usize, order: u64) {
        let orders = self.paths.get_mut(pair).map(|path| &mut path.orders);
        if let Some(known) = orders.and_then(|orders| orders.get_mut(relay)) {
            *known = order;
        }
    }

    /// Whether the nodes of a path were shown the way.
    pub(crate) fn is_shown(&self, pair: &Pair) -> bool {
        self.paths.get(pair).is_some_and(|path| path.is_shown)
    }

    /// The nodes of a path were shown the way.
    pub(crate) fn set_shown(&mut self, pair: &Pair) {
        if let Some(path) = self.paths.get_mut(pair) {
            path.is_shown = true;
        }
    }

    /// The pairs of a node.
    pub(crate) fn of(&self, name: &Name) -> Vec<Pair> {
        let others = self.taken.get(name).into_iter().flat_map(BTreeMap::values);
        others.map(|other| Pair::of(name, other)).collect()
    }

    /// A node of a pair says how it reaches the other one.
    pub(crate) fn says(&mut self, by: &Name, pair: &Pair, said: Said) {
        if let Some(path) = self.paths.get_mut(pair) {
            path.said[usize::from(*by == pair.1)] = Some(said);
        }
    }

    /// When a path was asked for last, and what its nodes said.
    pub(crate) fn said(&self, pair: &Pair) -> Option<(u64, [Option<Said>; 2])> {
        self.paths.get(pair).map(|path| (path.touched, path.said))
    }

    /// All pairs.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.paths.keys()
    }

    /// The next pair that nobody has asked for since `before`; the others are looked at again when pairs are old that
    /// are younger now. The caller ends the path.
    pub(crate) fn next_idle(&mut self, before: u64) -> Option<Pair> {
        while self.order.front().is_some_and(|(at, _)| *at < before) {
            let (_, pair) = self.order.pop_front()?;
            match self.paths.get(&pair).map(|path| path.touched) {
                Some(touched) if touched < before => return Some(pair),
                Some(touched) => self.order.push_back((touched, pair)),
                None => {}
            }
        }
        None
    }

    /// Ends a path.
    pub(crate) fn end(&mut self, pair: &Pair) {
        let Some(path) = self.paths.remove(pair) else { return };
        for name in [&pair.0, &pair.1] {
            if let Some(taken) = self.taken.get_mut(name) {
                taken.remove(&path.port);
                if taken.is_empty() {
                    self.taken.remove(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_serves_many_paths_but_no_two_of_one_node() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|it| it.parse::<Name>().unwrap());
        let mut paths = Paths::new(10..=11);
        assert_eq!(paths.touch(&Pair::of(&b, &a), 1, 1), Some(10));
        assert_eq!(paths.touch(&Pair::of(&c, &d), 2, 1), Some(10));
        assert_eq!(paths.touch(&Pair::of(&a, &c), 3, 1), Some(11));
        assert_eq!(paths.touch(&Pair::of(&a, &b), 4, 1), Some(10));
        assert_eq!(paths.touch(&Pair::of(&a, &d), 5, 1), None);
        assert_eq!(paths.next_idle(3), Some(Pair::of(&c, &d)));
        assert_eq!(paths.next_idle(3), None);
        paths.end(&Pair::of(&c, &d));
        paths.end(&Pair::of(&a, &b));
        assert_eq!(paths.touch(&Pair::of(&d, &a), 6, 1), Some(10));
        assert_eq!(paths.of(&a), [Pair::of(&a, &d), Pair::of(&a, &c)]);
    }

    #[test]
    fn a_path_that_was_kept_has_its_port_if_that_is_free() {
        let [a, b, c] = ["a", "b", "c"].map(|it| it.parse::<Name>().unwrap());
        let mut paths = Paths::new(10..=11);
        assert!(paths.restore(&Pair::of(&a, &b), 11, 1));
        assert!(
            !paths.restore(&Pair::of(&a, &c), 11, 1) && !paths.restore(&Pair::of(&a, &c), 12, 1)
        );
        assert_eq!(paths.touch(&Pair::of(&a, &b), 1, 1), Some(11));
        assert_eq!(paths.touch(&Pair::of(&a, &c), 1, 1), Some(10));
    }
}
