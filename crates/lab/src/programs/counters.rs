//! Counters by their place: what `iptables-save -c` printed, and what a replay's JSON says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The family of counters that packets of several families move.
pub const NFT: &str = "nft";

/// Whose counter it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterName {
    /// `ip`, `ip6` or `arp`, as the JSON spells it.
    pub family: String,
    /// `filter`, `nat`, …
    pub table: String,
    /// Built-in or a user's.
    pub chain: String,
    /// The rule's number in its chain, from 1; 0 is the policy.
    pub number: u64,
}

impl fmt::Display for CounterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.family, self.table, self.chain, self.number)
    }
}

/// One counter of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The rule, or the policy with its chain.
    pub text: String,
    /// The hook of its chain, if that is a base chain.
    pub hook: Option<String>,
    /// The chains that the rule jumps or goes to.
    pub calls: Vec<String>,
}

impl Counted {
    /// A counter of save text.
    fn saved((packets, bytes): (u64, u64), text: String, is_base: bool, chain: &str) -> Self {
        let hook = is_base.then(|| chain.to_ascii_lowercase());
        let mut words = text.split(' ');
        let jumps = words.by_ref().any(|word| matches!(word, "-j" | "-g"));
        let calls = words.next().filter(|_| jumps).map(str::to_owned).into_iter().collect();
        Self { packets, bytes, text, hook, calls }
    }

    /// Whether packets that it counts go no further, or may not.
    pub fn ends_packets(&self) -> bool {
        let after = |word: &str| {
            let mut words = self.text.split(' ');
            words.any(|found| found == word);
            words.next()
        };
        let is_end = |target| matches!(target, Some("DROP" | "REJECT" | "NFQUEUE"));
        let of_nft = |word| matches!(word, "drop" | "reject" | "queue");
        is_end(after("-j")) || is_end(after("policy")) || self.text.split(' ').any(of_nft)
    }
}

/// What a replay says of one counter: the packets that hit it for certain, and those that may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// For certain.
    pub packets: u64,
    /// Besides.
    pub maybe: u64,
}

impl Told {
    /// Whether the kernel's value is possible, where it may have seen `unseen` packets more.
    pub fn allows(self, kernel: u64, unseen: u64) -> bool {
        let most = (self.packets + self.maybe).saturating_add(unseen);
        (self.packets..=most).contains(&kernel)
    }
}

/// The counters of `…-save -c` text; a chain without a policy (`-`) has none of its own.
pub fn of_save(family: &str, text: &str) -> BTreeMap<CounterName, Counted> {
    let mut counters = BTreeMap::new();
    let mut table = String::new();
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut bases = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name.to_owned();
            numbers.clear();
            bases.clear();
        } else if let Some(chain) = line.strip_prefix(':') {
            let mut words = chain.split(' ');
            if let (Some(chain), Some(policy), Some(values)) =
                (words.next(), words.next(), words.next().and_then(counts_of))
                && policy != "-"
            {
                let text = format!("policy {policy} of {chain}");
                bases.insert(chain);
                let counted = Counted::saved(values, text, true, chain);
                counters.insert(place(family, &table, chain, 0), counted);
            }
        } else if let Some((values, rule)) =
            line.split_once("] ").and_then(|(counts, rule)| Some((counts_of(counts)?, rule)))
        {
            let chain = rule.split(' ').nth(1).unwrap_or_default();
            let number = numbers.entry(chain.to_owned()).or_default();
            *number += 1;
            let counted = Counted::saved(values, rule.to_owned(), bases.contains(chain), chain);
            counters.insert(place(family, &table, chain, *number), counted);
        }
    }
    counters
}

/// `[12:3456]` or `[12:3456`: both.
fn counts_of(counts: &str) -> Option<(u64, u64)> {
    let (packets, bytes) = counts.strip_prefix('[')?.split_once(':')?;
    Some((packets.parse().ok()?, bytes.trim_end_matches(']').parse().ok()?))
}

fn place(family: &str, table: &str, chain: &str, number: u64) -> CounterName {
    CounterName {
        family: family.to_owned(),
        table: table.to_owned(),
        chain: chain.to_owned(),
        number,
    }
}

/// The counters of tables of iptables-legacy on a host that has others, too, as a document names them.
pub fn of_legacy(family: &str, text: &str) -> BTreeMap<CounterName, Counted> {
    let named = |mut name: CounterName| {
        name.table = format!("legacy:{}", name.table);
        name
    };
    of_save(family, text).into_iter().map(|(name, counted)| (named(name), counted)).collect()
}

/// The counters of a document `tamis.replay/1`: `hits` and `policies`. A rule of nft has one for packets of all families.
pub fn of_json(document: &serde_json::Value) -> BTreeMap<CounterName, Told> {
    let mut counters = BTreeMap::new();
    for key in ["hits", "policies"] {
        for entry in document[key].as_array().into_iter().flatten() {
            let word = |name: &str| entry[name].as_str().unwrap_or_default();
            let mut name = place(
                word("family"),
                word("table"),
                word("chain"),
                entry["number"].as_u64().unwrap_or(0),
            );
            if name.table.contains(' ') {
                name.family = NFT.to_owned();
            }
            let counter = entry.get("counter").unwrap_or(entry);
            let number = |key: &str| counter[key].as_u64().unwrap_or(0);
            let told: &mut Told = counters.entry(name).or_default();
            told.packets += number("packets");
            told.maybe += number("maybe");
        }
    }
    counters
}

/// Chains that packets reach from the hooks `roots`, as family, table and chain.
pub fn reached_from(
    counters: &BTreeMap<CounterName, Counted>,
    roots: &[&str],
) -> BTreeSet<(String, String, String)> {
    let chain_of = |place: &CounterName, chain: &str| {
        (place.family.clone(), place.table.clone(), chain.to_owned())
    };
    let of = |place: &CounterName| chain_of(place, &place.chain);
    let chains: BTreeSet<_> = counters.keys().map(of).collect();
    let is_root =
        |counted: &Counted| counted.hook.as_deref().is_some_and(|hook| roots.contains(&hook));
    let of_roots = counters.iter().filter(|(_, counted)| is_root(counted));
    let mut reached: BTreeSet<_> = of_roots.map(|(place, _)| of(place)).collect();
    loop {
        let jumps = counters.iter().filter(|(place, _)| reached.contains(&of(place)));
        let called = |(place, counted): (&CounterName, &Counted)| -> Vec<_> {
            counted.calls.iter().map(|chain| chain_of(place, chain)).collect()
        };
        let next: Vec<_> = jumps
            .flat_map(called)
            .filter(|chain| chains.contains(chain) && !reached.contains(chain))
            .collect();
        if next.is_empty() {
            return reached;
        }
        reached.extend(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "*filter\n:INPUT DROP [3:180]\n:A - [0:0]\n[7:420] -A INPUT -j A\n[5:300] -A A -p tcp\n\
                         [2:120] -A INPUT -i lo -j ACCEPT\nCOMMIT\n";

    #[test]
    fn rules_are_numbered_in_their_chain() {
        let counters = of_save("ip", SAVED);
        let told: Vec<_> =
            counters.iter().map(|(place, counted)| (place.to_string(), counted.packets)).collect();
        let expected = [
            ("ip filter A 1".to_owned(), 5),
            ("ip filter INPUT 0".to_owned(), 3),
            ("ip filter INPUT 1".to_owned(), 7),
            ("ip filter INPUT 2".to_owned(), 2),
        ];
        assert_eq!(told, expected);
        assert_eq!(counters[&place("ip", "filter", "INPUT", 2)].text, "-A INPUT -i lo -j ACCEPT");
    }

    #[test]
    fn a_document_names_rules_and_policies() {
        let document = serde_json::json!({
            "hits": [{"family": "ip", "table": "filter", "chain": "INPUT", "number": 1, "packets": 6, "maybe": 2}],
            "policies": [{"family": "ip", "table": "filter", "chain": "INPUT", "packets": 3, "maybe": 0}],
        });
        let counters = of_json(&document);
        assert_eq!(counters[&place("ip", "filter", "INPUT", 1)], Told { packets: 6, maybe: 2 });
        assert_eq!(counters[&place("ip", "filter", "INPUT", 0)], Told { packets: 3, maybe: 0 });
    }

    #[test]
    fn counters_of_nft_are_of_all_families() {
        let hit = |family: &str, packets: u64| {
            serde_json::json!({
                "family": family, "table": "inet fw", "chain": "in", "number": 2, "packets": packets, "maybe": 0,
                "counter": {"packets": packets + 10, "bytes": 0, "maybe": 1},
            })
        };
        let counters = of_json(&serde_json::json!({ "hits": [hit("ip", 1), hit("ip6", 2)] }));
        let told = Told { packets: 23, maybe: 2 };
        assert_eq!(counters, BTreeMap::from([(place(NFT, "inet fw", "in", 2), told)]));
    }

    #[test]
    fn maybe_widens_upwards_only() {
        let told = Told { packets: 6, maybe: 2 };
        assert_eq!([5, 6, 8, 9].map(|kernel| told.allows(kernel, 0)), [false, true, true, false]);
        assert_eq!([5, 9, 10].map(|kernel| told.allows(kernel, 1)), [false, true, false]);
    }

    #[test]
    fn chains_are_reached_through_chains() {
        let text = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT DROP [2:9]\n:A - [0:0]\n:B - [0:0]\n:C - [0:0]\n\
                    [0:0] -A OUTPUT -p tcp -j A\n[0:0] -A A -g B\n[4:9] -A B -j DROP\n[0:0] -A INPUT -j C\nCOMMIT\n";
        let counters = of_save("ip", text);
        let reached = reached_from(&counters, &["output"]);
        let chains: Vec<&str> = reached.iter().map(|(_, _, chain)| chain.as_str()).collect();
        assert_eq!(chains, ["A", "B", "OUTPUT"]);
        let ends: Vec<String> = counters
            .iter()
            .filter(|(_, counted)| counted.ends_packets())
            .map(|(place, _)| place.to_string())
            .collect();
        assert_eq!(ends, ["ip filter B 1", "ip filter OUTPUT 0"]);
    }
}
