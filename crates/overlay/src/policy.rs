//! [`Policy`]: which nodes may resolve each other, and what each may begin with which. What no line allows is denied.
//!
//! Contract: a path between two nodes carries packets both ways, so a pair resolves both ways as soon as one of them may begin
//! something; what it may carry is each node's to hold, by the [`Permits`] that come with the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::name::Name;
use crate::permits::{BYTES, LINES, Permit, Permits, plain};
use crate::service::{Protocol, Service};

/// The word for all nodes.
pub const ALL: &str = "*";

/// Lines of a policy, at most.
pub const MOST_LINES: usize = 256;

/// Groups of nodes, and what their nodes may begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The policy's version.
    pub version: u64,
    /// The members of each group.
    pub groups: BTreeMap<String, BTreeSet<Name>>,
    /// What is allowed; at most [`MOST_LINES`].
    pub lines: Vec<Line>,
}

/// A line: nodes, and what they may begin with others. A word is a group, the name of a node, or [`ALL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who may begin it.
    pub from: Vec<String>,
    /// With whom.
    pub to: Vec<String>,
    /// Those may begin it with these, too.
    pub both: bool,
    /// What may begin; everything where there are none.
    pub services: Vec<Service>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = if self.both { "<->" } else { "->" };
        write!(f, "{} {arrow} {}", self.from.join(","), self.to.join(","))?;
        self.services.iter().try_for_each(|service| write!(f, " {service}"))
    }
}

impl Policy {
    /// Whether two nodes may resolve and reach each other.
    #[must_use]
    pub fn allows(&self, one: &Name, other: &Name) -> bool {
        self.lines.iter().any(|line| {
            let (outward, inward) = self.begin(line, one, other);
            outward || inward
        })
    }

    /// Whether a node may begin something with another one.
    #[must_use]
    pub fn lets(&self, from: &Name, to: &Name, protocol: Protocol, port: u16) -> bool {
        self.permits(from, to).permits(false, protocol, port)
    }

    /// The lines that concern two nodes, as the first of them sees them.
    #[must_use]
    pub fn permits(&self, own: &Name, peer: &Name) -> Permits {
        let line = |line: &Line| {
            let (outward, inward) = self.begin(line, own, peer);
            (outward || inward).then(|| {
                let (services, text) = (line.services.clone(), plain(&line.to_string()));
                Permit { inward, outward, services, text }
            })
        };
        let lines = self.lines.iter().filter_map(line).collect();
        Permits { version: self.version, lines }
    }

    /// The lines that another policy does not have, or has for other nodes.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let is_same = |word: &String| self.groups.get(word) == other.groups.get(word);
        let is_kept = |line: &&Line| {
            !(other.lines.contains(line) && line.from.iter().chain(&line.to).all(is_same))
        };
        let lines = self.lines.iter().filter(is_kept).cloned().collect();
        Self { version: self.version, groups: self.groups.clone(), lines }
    }

    /// Whether the one node may begin what a line says, and whether the other may.
    fn begin(&self, line: &Line, one: &Name, other: &Name) -> (bool, bool) {
        let holds = |words: &[String], node: &Name| words.iter().any(|it| self.holds(it, node));
        let along = holds(&line.from, one) && holds(&line.to, other);
        let against = holds(&line.from, other) && holds(&line.to, one);
        (along || (line.both && against), against || (line.both && along))
    }

    /// Whether a word stands for a node. A group goes before a node of its name.
    fn holds(&self, word: &str, node: &Name) -> bool {
        match self.groups.get(word) {
            Some(members) => members.contains(node),
            None => word == ALL || word == node.as_str(),
        }
    }

    /// Two words whose nodes have more lines than a message to them takes, if there are any: `None` stands for a node that
    /// the policy does not name.
    #[must_use]
    pub fn crowded(&self) -> Option<[Option<Name>; 2]> {
        let bytes = |line: &Line| Permit::bytes(line.services.len(), &plain(&line.to_string()));
        let bytes: Vec<usize> = self.lines.iter().map(bytes).collect();
        let is_too_much = |count: usize, bytes: usize| count > LINES || bytes > BYTES;
        if !is_too_much(bytes.len(), bytes.iter().sum()) {
            return None;
        }
        let sorts: Vec<(Sides, Option<Name>)> = self.sorts().into_iter().collect();
        for (place, (one, name)) in sorts.iter().enumerate() {
            for (other, second) in &sorts[place..] {
                let mut sum = (0, 0);
                for (at, bytes) in bytes.iter().enumerate() {
                    if (one.from.has(at) && other.to.has(at))
                        || (one.to.has(at) && other.from.has(at))
                    {
                        sum = (sum.0 + 1, sum.1 + bytes);
                    }
                }
                if is_too_much(sum.0, sum.1) {
                    let mut pair = [name.clone(), second.clone()];
                    pair.sort();
                    return Some(pair);
                }
            }
        }
        None
    }

    /// Nodes by the sides of lines that they are on, one of each sort; among them a node that the policy does not name.
    fn sorts(&self) -> BTreeMap<Sides, Option<Name>> {
        let words = self.lines.iter().flat_map(|line| line.from.iter().chain(&line.to));
        let named = words.filter_map(|word| word.parse::<Name>().ok());
        let members = self.groups.values().flatten().cloned();
        let names: BTreeSet<Name> = named.chain(members).collect();
        let mut sorts = BTreeMap::new();
        for name in std::iter::once(None).chain(names.into_iter().map(Some)) {
            let holds = |word: &String| match &name {
                Some(name) => self.holds(word, name),
                None => word == ALL && !self.groups.contains_key(word),
            };
            let mut sides = Sides::default();
            for (at, line) in self.lines.iter().enumerate() {
                sides.from.set(at, line.from.iter().any(holds));
                sides.to.set(at, line.to.iter().any(holds));
            }
            sorts.entry(sides).or_insert(name);
        }
        sorts
    }
}

/// The sides of lines that a node is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Sides {
    from: Bits,
    to: Bits,
}

/// A bit for each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Bits([u64; MOST_LINES / 64]);

impl Bits {
    fn set(&mut self, at: usize, value: bool) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= u64::from(value) << (at % 64);
        }
    }

    fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: &str, arrow: &str, to: &str, services: &str) -> Line {
        let words = |text: &str| text.split(',').map(str::to_owned).collect();
        let services = services.split_whitespace().map(|it| it.parse().unwrap()).collect();
        Line { from: words(from), to: words(to), both: arrow == "<->", services }
    }

    fn named(names: [&str; 3]) -> [Name; 3] {
        names.map(|it| it.parse().unwrap())
    }

    fn policy(lines: Vec<Line>) -> Policy {
        let [laptop, phone, _] = named(["laptop", "phone", "nas"]);
        let groups = [("mobile".to_owned(), [laptop, phone].into())].into();
        Policy { version: 7, groups, lines }
    }

    #[test]
    fn what_no_line_allows_is_denied() {
        let [laptop, phone, nas] = named(["laptop", "phone", "nas"]);
        assert!(!Policy::default().allows(&laptop, &nas));
        let policy = policy(vec![line("mobile", "<->", "nas", "")]);
        assert!(policy.allows(&laptop, &nas) && policy.allows(&nas, &phone));
        assert!(!policy.allows(&laptop, &phone));
        let all = Policy { lines: vec![line("*", "<->", "*", "")], ..Policy::default() };
        assert!(all.allows(&laptop, &phone) && all.lets(&phone, &laptop, Protocol::Tcp, 1));
    }

    #[test]
    fn a_directed_line_resolves_both_ways_and_lets_one_begin() {
        let [laptop, phone, nas] = named(["laptop", "phone", "nas"]);
        let policy = policy(vec![line("mobile", "->", "nas,phone", "tcp/22 icmp")]);
        assert!(policy.allows(&laptop, &nas) && policy.allows(&nas, &laptop));
        assert!(policy.lets(&laptop, &nas, Protocol::Tcp, 22));
        assert!(!policy.lets(&laptop, &nas, Protocol::Tcp, 23));
        assert!(!policy.lets(&nas, &laptop, Protocol::Tcp, 22));
        assert!(policy.lets(&laptop, &phone, Protocol::Icmp, 0));
        let permits = policy.permits(&nas, &laptop);
        assert_eq!((permits.version, permits.lines.len()), (7, 1));
        assert_eq!(permits.lines[0].text, "mobile -> nas,phone tcp/22 icmp");
        assert!(permits.lines[0].inward && !permits.lines[0].outward);
    }

    #[test]
    fn a_change_concerns_the_pairs_of_its_lines() {
        let [laptop, phone, nas] = named(["laptop", "phone", "nas"]);
        let [ssh, web] = ["tcp/22", "tcp/80"].map(|service| line("mobile", "->", "nas", service));
        let one = policy(vec![ssh.clone(), web.clone()]);
        assert!(!policy(vec![web, ssh.clone()]).without(&one).allows(&laptop, &nas));
        let fewer = policy(vec![ssh]);
        assert!(one.without(&fewer).allows(&laptop, &nas));
        assert!(!fewer.without(&one).allows(&laptop, &nas));
        // A group that has another member is another word.
        let mut joined = one.clone();
        joined.groups.entry("mobile".to_owned()).or_default().remove(&phone);
        assert!(one.without(&joined).allows(&phone, &nas));
    }

    #[test]
    fn lines_that_no_message_takes_are_found() {
        let many = |count| (0..count).map(|port| line("a", "->", "b", &format!("tcp/{port}")));
        let policy = |lines| Policy { lines, ..Policy::default() };
        assert_eq!(policy(many(LINES / 2).collect()).crowded(), None);
        let [a, b, _] = named(["a", "b", "c"]).map(Some);
        assert_eq!(policy(many(LINES + 1).collect()).crowded(), Some([a, b]));
        // As many lines of other pairs are no matter.
        let apart = (0..MOST_LINES).map(|n| line(&format!("a{n}"), "->", "b", ""));
        assert_eq!(policy(apart.collect()).crowded(), None);
        let all = (0..=LINES).map(|_| line("*", "->", "*", ""));
        assert_eq!(policy(all.collect()).crowded(), Some([None, None]));
    }
}
