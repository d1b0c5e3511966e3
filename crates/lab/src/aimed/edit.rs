//! One-rule edits of a ruleset's text, as people make them: a rule taken out, put in, exchanged with its neighbour, or with
//! another source, port, target, interface or state. And the same rules in another order of text.

use fastrand::Rng;
use rules::model::{Action, Counters, Rule, Ruleset};
use rules::save::{LoadOptions, load, print_ruleset};

/// Draws until an edit loads and changes the text; most do.
const TRIED: usize = 200;

/// A ruleset with one rule changed.
#[derive(Debug)]
pub struct Edited {
    /// The rules after it.
    pub ruleset: Ruleset,
    /// What was done, with the line.
    pub what: String,
    /// The rules before and after that it is about, by line.
    pub lines: [Vec<u32>; 2],
}

/// Its canonical text, without counters.
#[must_use]
pub fn text_of(ruleset: &Ruleset) -> String {
    print_ruleset(ruleset, false, |_, _, _| Counters::default())
}

/// Rules of a text for the family and implementation of others.
#[must_use]
pub fn loaded_as(text: &str, like: &Ruleset) -> Option<Ruleset> {
    let options = LoadOptions { family: Some(like.family), ..LoadOptions::default() };
    let mut ruleset = load(text, &options).ok()?.ruleset;
    ruleset.evaluate_as(like.backend);
    Some(ruleset)
}

/// A ruleset with the same rules, to be changed.
pub(super) fn copied(ruleset: &Ruleset) -> Ruleset {
    let Ruleset { family, backend, tables } = ruleset;
    Ruleset { family: *family, backend: *backend, tables: tables.clone() }
}

/// A drawn edit of a ruleset, whose text is this; `None` where it has no rules.
#[must_use]
pub fn edited(old: &Ruleset, text: &str, rng: &mut Rng) -> Option<Edited> {
    let lines: Vec<&str> = text.lines().collect();
    let rules: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].starts_with("-A ")).collect();
    if rules.is_empty() {
        return None;
    }
    (0..TRIED).find_map(|_| {
        let at = rules[rng.usize(..rules.len())];
        let mut new: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let kind = rng.usize(..8);
        let (what, touched) = match kind {
            0 => {
                let line = new.remove(at);
                (format!("line {} taken out: {line}", at + 1), [vec![at], vec![]])
            }
            1 => {
                let line = inserted(&lines, at, &rules, rng);
                new.insert(at, line.clone());
                (format!("before line {}: {line}", at + 1), [vec![], vec![at]])
            }
            2 => {
                let next = at + 1;
                let is_neighbour = lines.get(next).is_some_and(|it| chain(it) == chain(lines[at]));
                if !is_neighbour {
                    return None;
                }
                new.swap(at, next);
                let words = format!("lines {} and {} exchanged", at + 1, next + 1);
                (words, [vec![at, next], vec![at, next]])
            }
            kind => {
                let line = changed(lines[at], &lines, &rules, kind, rng)?;
                let words = format!("line {}: {} -> {line}", at + 1, lines[at]);
                new[at] = line;
                (words, [vec![at], vec![at]])
            }
        };
        let text: String = new.iter().map(|line| format!("{line}\n")).collect();
        let ruleset = loaded_as(&text, old)?;
        let is_other = text_of(&ruleset) != text_of(old);
        let lines = touched.map(|all| all.into_iter().map(|at| at as u32 + 1).collect());
        is_other.then_some(Edited { ruleset, what, lines })
    })
}

/// The chain of a rule's line.
fn chain(line: &str) -> Option<&str> {
    line.strip_prefix("-A ")?.split(' ').next()
}

/// A rule for the chain of a line: another one's of the same text, or one as people add.
fn inserted(lines: &[&str], at: usize, rules: &[usize], rng: &mut Rng) -> String {
    let chain = chain(lines[at]).unwrap_or_default();
    let other = lines[rules[rng.usize(..rules.len())]];
    let rest = other.splitn(3, ' ').nth(2).unwrap_or("-j DROP");
    let address = word_after(&["-s", "-d"], lines, rules, rng);
    let port = [22, 53, 80, 443, 8080][rng.usize(..5)];
    let verdict = ["ACCEPT", "DROP"][rng.usize(..2)];
    match (rng.u8(..4), address) {
        (0, _) => format!("-A {chain} -p tcp -m tcp --dport {port} -j {verdict}"),
        (1, Some(address)) => format!("-A {chain} -s {address} -j {verdict}"),
        (2, Some(address)) => format!("-A {chain} -d {address} -p udp -j {verdict}"),
        _ => format!("-A {chain} {rest}"),
    }
}

/// A word that stands after one of these options in some rule.
fn word_after(options: &[&str], lines: &[&str], rules: &[usize], rng: &mut Rng) -> Option<String> {
    (0..16).find_map(|_| {
        let words: Vec<&str> = lines[rules[rng.usize(..rules.len())]].split(' ').collect();
        let at = words.iter().position(|word| options.contains(word))?;
        words.get(at + 1).map(|word| (*word).to_owned())
    })
}

/// A rule's line with one thing in it changed.
fn changed(
    line: &str,
    lines: &[&str],
    rules: &[usize],
    kind: usize,
    rng: &mut Rng,
) -> Option<String> {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let (options, word): (&[&str], String) = match kind {
        3 => {
            let options: &[&str] = &["-s", "-d"];
            let other = word_after(options, lines, rules, rng)?;
            (options, if rng.bool() { beside(&other, rng) } else { other })
        }
        4 => {
            let options: &[&str] =
                &["--dport", "--sport", "--dports", "--sports", "--icmp-type", "--icmpv6-type"];
            let at = words.iter().position(|word| options.contains(&&**word))?;
            (options, beside_port(words.get(at + 1)?, rng))
        }
        5 => {
            let chains = word_after(&["-j", "-g"], lines, rules, rng)?;
            let verdicts = ["ACCEPT", "DROP", "RETURN", "REJECT"];
            let verdict = verdicts[rng.usize(..verdicts.len())].to_owned();
            return target(&words, if rng.u8(..4) == 0 { chains } else { verdict });
        }
        6 => {
            let options: &[&str] = &["-i", "-o"];
            let names = ["eth0", "eth1", "lo", "ppp+"];
            let name = names[rng.usize(..names.len())].to_owned();
            (options, word_after(options, lines, rules, rng).filter(|_| rng.bool()).unwrap_or(name))
        }
        _ => {
            let options: &[&str] = &["--ctstate", "--state"];
            let states = ["NEW", "ESTABLISHED", "RELATED,ESTABLISHED", "INVALID", "UNTRACKED"];
            (options, states[rng.usize(..states.len())].to_owned())
        }
    };
    let place = words.iter().position(|it| options.contains(&&**it));
    match place {
        Some(at) if rng.u8(..5) == 0 => {
            let is_inverted = words[at - 1] == "!";
            if is_inverted { _ = words.remove(at - 1) } else { words.insert(at, "!".to_owned()) }
        }
        Some(at) => *words.get_mut(at + 1)? = word,
        None if kind == 7 => {
            words.splice(2..2, ["-m", "conntrack", "--ctstate", &word].map(str::to_owned));
        }
        None => drop(words.splice(2..2, [options[rng.usize(..options.len())].to_owned(), word])),
    }
    Some(words.join(" "))
}

/// The same tests with another target, and none of its options.
fn target(words: &[String], target: String) -> Option<String> {
    let at = words.iter().rposition(|word| word == "-j" || word == "-g")?;
    let mut line = words[..at].to_vec();
    line.extend(["-j".to_owned(), target]);
    Some(line.join(" "))
}

/// A network beside an address or a network, or wider, or narrower.
fn beside(address: &str, rng: &mut Rng) -> String {
    let full = if address.contains(':') { 128 } else { 32 };
    let (base, len) = address.split_once('/').unwrap_or((address, ""));
    let len: u32 = len.parse().unwrap_or(full);
    let len = if rng.bool() { len.saturating_sub(1).max(1) } else { (len + 1).min(full) };
    format!("{base}/{len}")
}

/// A port, range or list of them, or a type of ICMP, with one number one more, one less, or another one.
fn beside_port(word: &str, rng: &mut Rng) -> String {
    let numbers: Vec<&str> = word.split([',', ':', '/']).collect();
    let chosen = numbers[rng.usize(..numbers.len())];
    let Ok(number) = chosen.parse::<u16>() else { return rng.u8(..20).to_string() };
    let other = match rng.u8(..3) {
        0 => number.saturating_add(1),
        1 => number.saturating_sub(1),
        _ => rng.u16(..),
    };
    word.replacen(chosen, &other.to_string(), 1)
}

/// The same rules in another order of text: tables, chains and their rules elsewhere, and neighbours that do the same with
/// packets, without looking at others, the other way round.
#[must_use]
pub fn reordered(old: &Ruleset, rng: &mut Rng) -> Option<Ruleset> {
    let mut shuffled = copied(old);
    rng.shuffle(&mut shuffled.tables);
    for table in &mut shuffled.tables {
        for chain in &mut table.chains {
            let mut start = 0;
            while start < chain.rules.len() {
                let kind = kind_of(&chain.rules[start]);
                let rest = &mut chain.rules[start..];
                let same = rest.iter().take_while(|rule| kind_of(rule) == kind && kind != 0);
                let count = same.count().max(1);
                rng.shuffle(&mut rest[..count]);
                start += count;
            }
        }
    }
    loaded_as(&interleaved(&text_of(&shuffled), rng), old)
}

/// What rules of a kind do is the same in every order; 0 is none.
fn kind_of(rule: &Rule) -> u8 {
    if rule.matches.iter().any(|used| !used.body.repeats()) {
        return 0;
    }
    match rule.action {
        Action::Accept => 1,
        Action::Drop => 2,
        Action::Return => 3,
        _ => 0,
    }
}

/// The rules of each table with those of different chains in another order.
fn interleaved(text: &str, rng: &mut Rng) -> String {
    let mut all = String::new();
    let (mut queues, mut order): (Vec<Vec<&str>>, Vec<usize>) = Default::default();
    for line in text.lines() {
        if line.starts_with("-A ") {
            let known = queues.iter().position(|queue| chain(queue[0]) == chain(line));
            let place = known.unwrap_or(queues.len());
            match known {
                Some(place) => queues[place].push(line),
                None => queues.push(vec![line]),
            }
            order.push(place);
            continue;
        }
        rng.shuffle(&mut order);
        let mut fronts: Vec<_> = queues.drain(..).map(Vec::into_iter).collect();
        for place in order.drain(..) {
            if let Some(rule) = fronts[place].next() {
                all.push_str(&format!("{rule}\n"));
            }
        }
        all.push_str(&format!("{line}\n"));
    }
    all
}
