//! Rulesets as walks evaluate them: what of public listings is unknown, and whether what rules load is what nft's own
//! bytecode loads.

use std::collections::BTreeMap;

use nft::lower;
use nft::model::{Family, Ruleset, Table};
use rules::model::Family as Packets;

use crate::{data, files, listings, page_says, show};

/// Counts the rules of a ruleset, and, by cause, the rules of which something is not evaluated.
fn count(name: &str, ruleset: &Ruleset, causes: &mut BTreeMap<String, usize>) -> (usize, usize) {
    let rules =
        ruleset.tables.iter().flat_map(|table| &table.chains).map(|chain| chain.rules.len());
    let unknown = lower::unknown(ruleset);
    for one in &unknown {
        show(|| format!("UNKNOWN {name} {} {}: {}", one.table, one.chain, one.text));
        for cause in &one.causes {
            *causes.entry(cause.clone()).or_default() += 1;
        }
    }
    (rules.sum(), unknown.len())
}

fn spelt(causes: &BTreeMap<String, usize>) -> String {
    let mut by_count: Vec<(&String, &usize)> = causes.iter().collect();
    by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    by_count.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn listings_are_evaluated() {
    let Some(data) = data() else { return };
    let (texts, ..) = listings::all(data);
    let (mut rules, mut unknown, mut causes) = (0, 0, BTreeMap::new());
    for (name, text) in &texts {
        let read = nft::text::parse(name, text, &|_| Ok(Vec::new())).expect("a listing");
        let counted = count(name, &read, &mut causes);
        (rules, unknown) = (rules + counted.0, unknown + counted.1);
    }
    page_says(&format!(
        "| rules of public listings, evaluated | {rules} | all but {unknown} ({}) |",
        spelt(&causes)
    ));
    let (mut rules, mut unknown, mut causes) = (0, 0, BTreeMap::new());
    for file in files(&data.join("nftables/tests/shell/testcases"), ".nft") {
        let name = file.strip_prefix(data).expect("below").display().to_string();
        let text = std::fs::read_to_string(&file).expect("text");
        let Ok(read) = nft::text::parse(&name, &text, &crate::no_files) else { continue };
        let counted = count(&name, &read, &mut causes);
        (rules, unknown) = (rules + counted.0, unknown + counted.1);
    }
    page_says(&format!("| rules of tests/shell, evaluated | {rules} | all but {unknown} |"));
    page_says(&format!(
        "| what is not, of tests/shell | {} names | {} |",
        causes.len(),
        spelt(&causes)
    ));
}

/// A rule of a payload file: its text, its family, and what its bytecode loads.
struct Compiled {
    rule: String,
    family: Family,
    loads: Vec<String>,
}

/// What an instruction loads, in the words of [`lower::loads`].
fn load(line: &str) -> Option<String> {
    let inner = line.trim().strip_prefix("[ ")?.strip_suffix(" ]")?;
    let kinds = ["meta load", "payload load", "ct load", "exthdr load", "rt load", "fib "];
    if !kinds.iter().any(|kind| inner.starts_with(kind)) {
        return None;
    }
    let (before, after) = inner.split_once(" => reg ")?;
    let rest = after.split_once(' ').map_or("", |(_, rest)| rest);
    Some(if rest.is_empty() { before.to_owned() } else { format!("{before} {rest}") })
}

fn compiled(text: &str) -> Vec<Compiled> {
    let mut all: Vec<Compiled> = Vec::new();
    let mut rule = None;
    for line in text.lines() {
        if let Some(text) = line.strip_prefix("# ") {
            rule = Some(text.to_owned());
            continue;
        }
        let family = line.split_whitespace().next().and_then(Family::find);
        if let (Some(family), Some(rule)) = (family, &rule) {
            all.push(Compiled { rule: rule.clone(), family, loads: Vec::new() });
        } else if let Some(load) = load(line)
            && let Some(last) = all.last_mut()
        {
            last.loads.push(load);
        }
    }
    all
}

#[test]
fn rules_load_what_the_bytecode_loads() {
    let Some(data) = data() else { return };
    let (mut compared, mut same) = (0, 0);
    for folder in ["any", "ip", "ip6", "inet"] {
        for file in files(&data.join("nftables/tests/py").join(folder), "") {
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            if !name.contains(".t.payload") {
                continue;
            }
            let text = std::fs::read_to_string(&file).expect("text");
            for of in compiled(&text) {
                let family = match name.rsplit('.').next() {
                    Some("netdev" | "bridge") => continue,
                    Some(ending) => Family::find(ending).unwrap_or(of.family),
                    None => of.family,
                };
                let of = Compiled { family, ..of };
                let packets = match of.family {
                    Family::Ip | Family::Inet => Packets::Ipv4,
                    Family::Ip6 => Packets::Ipv6,
                    _ => continue,
                };
                let table = Table::new(of.family, "t");
                let mut around = Ruleset::default();
                around.tables.push(table.clone());
                let Ok(read) = nft::text::parse_rule(of.family, &of.rule, around) else { continue };
                let Some(ours) = lower::loads(&read, &table, packets) else { continue };
                compared += 1;
                same += usize::from(ours == of.loads);
                if ours != of.loads {
                    show(|| {
                        let (family, rule) = (of.family.name(), &of.rule);
                        format!(
                            "LOADS {name} {family} {rule}\n  ours  {ours:?}\n  nft's {:?}",
                            of.loads
                        )
                    });
                }
            }
        }
    }
    page_says(&format!(
        "| rules of tests/py whose bytecode is compared | {compared} | {same} load the same bytes and keys, in the same order |"
    ));
}
