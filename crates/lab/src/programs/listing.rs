//! Counters of `nft list ruleset`: read line by line, by nothing that tamis reads rulesets with.
//!
//! Contract: one counter for each rule that has one, by its number among all rules of its chain; rules of two counters have
//! the first. Source: what nft 1.0 prints, tabs and all.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::{Counted, CounterName, NFT};

/// The counters of a listing; tables are named by their families and names (`inet fw4`).
pub fn of_listing(text: &str) -> BTreeMap<CounterName, Counted> {
    let mut counters = BTreeMap::new();
    for table in tables(text) {
        for chain in &table.chains {
            for (number, rule) in (1..).zip(&chain.rules) {
                let Some((packets, bytes)) = values(rule) else { continue };
                let name = CounterName {
                    family: NFT.to_owned(),
                    table: table.name.to_owned(),
                    chain: chain.name.to_owned(),
                    number,
                };
                let hook = chain.hook.map(str::to_owned);
                let calls = table.calls(rule);
                let text = (*rule).to_owned();
                counters.insert(name, Counted { packets, bytes, text, hook, calls });
            }
        }
    }
    counters
}

#[derive(Default)]
struct Table<'t> {
    name: &'t str,
    chains: Vec<Chain<'t>>,
    /// The chains that elements of each map jump to.
    maps: BTreeMap<&'t str, Vec<&'t str>>,
}

struct Chain<'t> {
    name: &'t str,
    hook: Option<&'t str>,
    rules: Vec<&'t str>,
}

/// What a line of a table belongs to.
enum Open<'t> {
    Chain,
    Map(&'t str),
    Other,
}

fn tables(text: &str) -> Vec<Table<'_>> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut open = Open::Other;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("table ") {
            let name = name.trim_end_matches(" {");
            tables.push(Table { name, ..Table::default() });
            continue;
        }
        let Some(table) = tables.last_mut() else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        let opens = line.starts_with('\t') && !line.starts_with("\t\t");
        match words.as_slice() {
            ["chain", name, "{"] if opens => {
                table.chains.push(Chain { name, hook: None, rules: Vec::new() });
                open = Open::Chain;
            }
            ["map", name, "{"] if opens => open = Open::Map(name),
            _ if opens => open = Open::Other,
            [] => {}
            words => table.take(&open, line.trim(), words),
        }
    }
    tables
}

impl<'t> Table<'t> {
    /// Takes a line of what is open.
    fn take(&mut self, open: &Open<'t>, line: &'t str, words: &[&'t str]) {
        match (open, self.chains.last_mut()) {
            (Open::Chain, Some(chain)) => match words {
                ["type", _, "hook", hook, ..] => chain.hook = Some(hook),
                _ => chain.rules.push(line),
            },
            (Open::Map(name), _) => self.maps.entry(name).or_default().extend(called(words)),
            _ => {}
        }
    }

    /// The chains that a rule jumps or goes to, by itself and by the maps that it names.
    fn calls(&self, rule: &str) -> Vec<String> {
        let words: Vec<&str> = rule.split_whitespace().collect();
        let maps = words.iter().filter_map(|word| self.maps.get(word.strip_prefix('@')?));
        let calls: BTreeSet<&str> = called(&words).chain(maps.flatten().copied()).collect();
        calls.into_iter().map(str::to_owned).collect()
    }
}

/// The words after `jump` and `goto`.
fn called<'t>(words: &[&'t str]) -> impl Iterator<Item = &'t str> {
    let pairs = words.windows(2).filter(|pair| matches!(pair[0], "jump" | "goto"));
    pairs.map(|pair| pair[1].trim_end_matches(',')).collect::<Vec<_>>().into_iter()
}

/// The values of the first counter of a rule.
fn values(rule: &str) -> Option<(u64, u64)> {
    let (_, values) = rule.split_once("counter packets ")?;
    let mut words = values.split(' ');
    let packets = words.next()?.parse().ok()?;
    Some((packets, words.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::counters::reached_from;
    use super::*;

    const LISTED: &str = "table inet fw {\n\tmap m {\n\t\ttype inet_service : verdict\n\t\telements = { 22 : jump a,\n\
        \t\t\t     23 : goto b }\n\t}\n\n\tchain out {\n\t\ttype filter hook output priority filter; policy accept;\n\
        \t\toifname \"lo\" accept\n\t\tcounter packets 7 bytes 8 tcp dport vmap @m\n\t}\n\n\tchain a {\n\
        \t\tcounter packets 3 bytes 4 drop\n\t}\n\n\tchain b {\n\t\tcounter packets 1 bytes 2 jump c\n\t}\n\n\
        \tchain c {\n\t\tcounter packets 5 bytes 6\n\t}\n\n\tchain d {\n\t\tcounter packets 0 bytes 0\n\t}\n}\n";

    #[test]
    fn rules_without_a_counter_have_a_number_too() {
        let counters = of_listing(LISTED);
        let told: Vec<_> = counters
            .iter()
            .map(|(name, counted)| (name.to_string(), counted.packets, counted.ends_packets()))
            .collect();
        let expected = [
            ("nft inet fw a 1".to_owned(), 3, true),
            ("nft inet fw b 1".to_owned(), 1, false),
            ("nft inet fw c 1".to_owned(), 5, false),
            ("nft inet fw d 1".to_owned(), 0, false),
            ("nft inet fw out 2".to_owned(), 7, false),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn chains_are_reached_through_maps() {
        let reached = reached_from(&of_listing(LISTED), &["output"]);
        let chains: Vec<&str> = reached.iter().map(|(_, _, chain)| chain.as_str()).collect();
        assert_eq!(chains, ["a", "b", "c", "out"]);
    }
}
