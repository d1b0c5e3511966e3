//! The acceptance cases of iptables' own extensions, through load and print.
//!
//! Each line of a `.t` file says `rule;expected;OK|FAIL`: the rule, what the save tool prints for it (`=` for the same)
//! and whether the restore tool takes it; headers name the chains and the table. A case agrees when that holds in every
//! chain and each match and target of the rule is known by name. A fourth field has the results of the nft variant and
//! is not read; `%` and `@` lines make kernel objects. That data lies next to the repository and is not part of it;
//! `data/matches.t` is our own, in the same form, measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rules::ext::{find_match, find_target};
use rules::model::{Action, Counters, Family, Rule, Ruleset};
use rules::save::{LoadOptions, load, print_rule, print_ruleset};

/// Cases of match files (and of the built-in targets) that agree today. Raise it as more do.
const MATCH_FLOOR: usize = 1572;

/// Cases of target files that agree today.
const TARGET_FLOOR: usize = 436;

fn cases() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/xtables-cases");
    if !dir.is_dir() {
        eprintln!("SKIPPED: {} is not here", dir.display());
        return None;
    }
    Some(dir)
}

/// One line of a `.t` file under its headers.
struct Case {
    line: usize,
    table: String,
    chains: Vec<String>,
    rule: String,
    expected: String,
    accepted: bool,
}

fn read_cases(text: &str) -> Vec<Case> {
    let (mut table, mut chains, mut cases) = ("filter".to_owned(), Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        match line.as_bytes().first() {
            None | Some(b'#' | b'%' | b'@') => {}
            Some(b':') => {
                chains = line[1..].split(',').map(|chain| chain.trim().to_owned()).collect();
                table = "filter".to_owned();
            }
            Some(b'*') => table = line[1..].trim().to_owned(),
            Some(_) => cases.extend(read_case(index + 1, line, &table, &chains)),
        }
    }
    cases
}

fn read_case(line: usize, text: &str, table: &str, chains: &[String]) -> Option<Case> {
    let mut fields = text.split(';');
    let rule = fields.next()?.to_owned();
    let expected = match fields.next()? {
        "=" => rule.clone(),
        other => other.to_owned(),
    };
    let accepted = fields.next()?.trim() == "OK";
    Some(Case { line, table: table.to_owned(), chains: chains.to_vec(), rule, expected, accepted })
}

/// Families a file is run for; `None` for files that are not read yet.
fn families(name: &str) -> Option<&'static [Family]> {
    match name.split('_').next() {
        Some("libipt") => Some(&[Family::Ipv4]),
        Some("libip6t") => Some(&[Family::Ipv6]),
        Some("libarpt") => Some(&[Family::Arp]),
        Some("libebt") => Some(&[Family::Bridge]),
        Some("libxt" | "iptables.t") => Some(&[Family::Ipv4, Family::Ipv6]),
        _ => None,
    }
}

/// Files of targets are named in capitals.
fn is_target_file(name: &str) -> bool {
    name.split('_').nth(1).is_some_and(|ext| ext.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// What is wrong with a case in one chain, if anything.
fn disagreement(case: &Case, chain: &str, family: Family) -> Option<String> {
    let text =
        format!("*{}\n:{chain} ACCEPT [0:0]\n-A {chain} {}\nCOMMIT\n", case.table, case.rule);
    let options = LoadOptions { family: Some(family), strict: true, ..LoadOptions::default() };
    let loaded = match (load(&text, &options), case.accepted) {
        (Err(_), false) => return None,
        (Err(error), true) => return Some(format!("refused: {error}")),
        (Ok(_), false) => return Some("taken, but must be refused".to_owned()),
        (Ok(loaded), true) => loaded,
    };
    let table = &loaded.ruleset.tables[0];
    let chain = table.chains.iter().find(|chain| !chain.rules.is_empty())?;
    let rule = &chain.rules[0];
    if let Some(unknown) = unknown_extension(rule, family) {
        return Some(format!("{unknown} is not known"));
    }
    let mut expected = format!("-A {} {}", chain.name, case.expected);
    // The suite looks for the text within the line, which here ends with the verdict.
    if family == Family::Bridge && !expected.contains(" -j ") {
        expected += " -j CONTINUE";
    }
    let printed = print_rule(family, table, chain, rule);
    if printed != expected.trim_end() {
        return Some(format!("prints {printed}\n      and not {expected}"));
    }
    // Printed text loads, and prints as itself.
    match reprint(&loaded.ruleset) {
        Ok(again) => (again != printed_whole(&loaded.ruleset)).then(|| format!("then {again}")),
        Err(error) => Some(format!("prints what does not load: {error}\n{printed}")),
    }
}

fn printed_whole(ruleset: &Ruleset) -> String {
    let text = print_ruleset(ruleset, false, |_, _, _| Counters::default());
    // The one quirk that printing takes over from the tool (docs/rule-dialects.md).
    text.replace(" -m ipcomp --ipcompspi 0", " -m ipcomp")
}

fn reprint(ruleset: &Ruleset) -> Result<String, String> {
    let options = LoadOptions { family: Some(ruleset.family), ..LoadOptions::default() };
    let text = print_ruleset(ruleset, false, |_, _, _| Counters::default());
    let again = load(&text, &options).map_err(|error| error.to_string())?;
    Ok(printed_whole(&again.ruleset))
}

fn unknown_extension(rule: &Rule, family: Family) -> Option<String> {
    let unknown = rule.matches.iter().find(|used| find_match(&used.name, family).is_none());
    let target = match &rule.action {
        Action::Target(used) if find_target(&used.name, family).is_none() => Some(&used.name),
        _ => None,
    };
    unknown.map(|used| &used.name).or(target).map(ToString::to_string)
}

/// Agreeing and all cases of one file, after printing each disagreement.
fn run_file(name: &str, text: &str, families: &[Family]) -> (usize, usize) {
    let cases = read_cases(text);
    let mut agree = 0;
    for family in families {
        for case in &cases {
            let wrong = case.chains.iter().find_map(|c| Some((c, disagreement(case, c, *family)?)));
            match wrong {
                None => agree += 1,
                Some((chain, what)) => {
                    let Case { line, table, rule, .. } = case;
                    println!(
                        "{name}:{line} {} {table} {chain}: {rule}\n      {what}",
                        family.name()
                    );
                }
            }
        }
    }
    (agree, cases.len() * families.len())
}

#[test]
fn the_measured_cases_of_matches_agree() {
    let text = include_str!("data/matches.t");
    let (agree, all) = run_file("matches.t", text, &[Family::Ipv4]);
    assert_eq!(agree, all);
}

#[test]
fn the_cases_of_the_xtables_extensions_agree() {
    let Some(dir) = cases() else { return };
    let mut names: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".t"))
        .collect();
    names.sort();
    let (mut table, mut unread) = (BTreeMap::new(), Vec::new());
    for name in names {
        let text = std::fs::read_to_string(dir.join(&name)).unwrap();
        match families(&name) {
            Some(families) => _ = table.insert(name.clone(), run_file(&name, &text, families)),
            None => unread.push(name),
        }
    }
    println!("{:<28} {:>6} {:>6}", "file", "agree", "differ");
    for (name, (agree, all)) in &table {
        println!("{name:<28} {agree:>6} {:>6}", all - agree);
    }
    println!("not read yet: {}", unread.join(" "));
    let sum = |targets: bool| {
        let files = table.iter().filter(|(name, _)| is_target_file(name) == targets);
        files.fold((0, 0), |(agree, all), (_, (a, n))| (agree + a, all + n))
    };
    let (matches, targets) = (sum(false), sum(true));
    println!("matches: {} of {} agree", matches.0, matches.1);
    println!("targets: {} of {} agree", targets.0, targets.1);
    assert!(matches.0 >= MATCH_FLOOR, "{} match cases agree, not {MATCH_FLOOR}", matches.0);
    assert!(targets.0 >= TARGET_FLOOR, "{} target cases agree, not {TARGET_FLOOR}", targets.0);
}
