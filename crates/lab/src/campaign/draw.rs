//! Draws a case: rules and a capture, changed or not, and options.

use std::fs;
use std::io;
use std::path::Path;

use fastrand::Rng;

use super::Materials;

/// What is given to the program.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) rules: String,
    pub(super) capture: Vec<u8>,
    /// Other files that options name.
    files: Vec<(&'static str, String)>,
    /// Options of a walk.
    pub(super) options: Vec<String>,
    /// What is drawn for how it is judged.
    pub(super) turn: usize,
}

/// Names of the files that every case has.
pub(super) const RULES: &str = "rules";
pub(super) const CAPTURE: &str = "capture";

impl Case {
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join(RULES), &self.rules)?;
        fs::write(folder.join(CAPTURE), &self.capture)?;
        self.files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }
}

pub(super) fn case(rng: &mut Rng, materials: &Materials) -> Case {
    let (path, rules) = &materials.rules[rng.usize(..materials.rules.len())];
    let capture = &materials.captures[rng.usize(..materials.captures.len())].1;
    let mut case = Case {
        rules: rules.clone(),
        capture: capture.clone(),
        files: Vec::new(),
        options: family(path),
        turn: rng.usize(..),
    };
    if rng.bool() {
        change_text(rng, &mut case.rules, materials);
    }
    if rng.bool() {
        change_bytes(rng, &mut case.capture);
    }
    options(rng, &mut case, materials);
    case
}

/// Whose rules a file holds, where its text does not tell.
fn family(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let named = [("6.save", "ip6"), (".v6", "ip6"), ("arp", "arp"), ("eb", "bridge")];
    let found = named.iter().find(|(part, _)| name.contains(part));
    found
        .into_iter()
        .flat_map(|(_, family)| ["--family".to_owned(), (*family).to_owned()])
        .collect()
}

/// Lines and words are left out, doubled, moved, or taken from other rules.
fn change_text(rng: &mut Rng, text: &mut String, materials: &Materials) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + rng.usize(..4) {
        let at = rng.usize(..lines.len().max(1));
        let other = &materials.rules[rng.usize(..materials.rules.len())].1;
        let lent = other.lines().nth(rng.usize(..other.lines().count().max(1))).unwrap_or_default();
        let Some(line) = lines.get_mut(at) else { break };
        match rng.u8(..8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lent.to_owned()),
            2 => {
                let line = line.clone();
                lines.insert(rng.usize(..=lines.len()), line);
            }
            3 => {
                let with = rng.usize(..lines.len());
                lines.swap(at, with);
            }
            _ => change_words(rng, line, lent),
        }
    }
    *text = lines.join("\n") + "\n";
}

fn change_words(rng: &mut Rng, line: &mut String, lent: &str) {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let at = rng.usize(..words.len());
    let others: Vec<&str> = lent.split(' ').collect();
    let other = others[rng.usize(..others.len())];
    match rng.u8(..6) {
        0 => drop(words.remove(at)),
        1 => words.insert(at, "!".to_owned()),
        2 => words[at] = other.to_owned(),
        3 => words.insert(at, other.to_owned()),
        4 => {
            words[at] = rng
                .choice(["0", "65535", "4294967296", "0.0.0.0/0", "\"", "-1"])
                .unwrap_or_default()
                .to_owned()
        }
        _ => words[at] = number_changed(rng, &words[at]),
    }
    *line = words.join(" ");
}

/// The last number of a word, by a little.
fn number_changed(rng: &mut Rng, word: &str) -> String {
    let head = word.trim_end_matches(|c: char| c.is_ascii_digit());
    match word[head.len()..].parse::<u64>() {
        Ok(number) => format!("{head}{}", number.wrapping_add(rng.u64(..3)).saturating_sub(1)),
        Err(_) => word.chars().rev().collect(),
    }
}

/// A few bytes are other ones; or some are left out, or doubled.
fn change_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    for _ in 0..1 + rng.usize(..8) {
        let at = rng.usize(..bytes.len());
        let end = (at + 1 + rng.usize(..64)).min(bytes.len());
        match rng.u8(..12) {
            0 => bytes.truncate(at + 1),
            1 if bytes.len() > end => drop(bytes.drain(at..end)),
            2 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes[at] = rng.u8(..),
        }
    }
}

fn options(rng: &mut Rng, case: &mut Case, materials: &Materials) {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let choices: [(u8, &[&str]); 13] = [
        (6, &["--path forward", "--path input", "--path output", "--path auto"]),
        (6, &["--in eth0", "--in lan0 --out wan0"]),
        (5, &["--net eth0=10.0.0.0/8 --net eth1=0.0.0.0/0"]),
        (5, &["--local 10.0.0.1,192.168.1.0/24,fe80::1"]),
        (4, &["--ct kernel", "--ct midstream", "--ct off"]),
        (6, &["--ct-max 1", "--ct-max 3", "--ct-max 100"]),
        (6, &["--no-pair"]),
        (4, &["--checksums ignore", "--checksums arrivals", "--checksums all"]),
        (5, &["--semantics legacy", "--semantics nft"]),
        (20, &["--strict-input"]),
        (20, &["--table filter", "--table mangle", "--table nat"]),
        (8, &["--addr eth1=192.0.2.1"]),
        (9, &["--bridge br0"]),
    ];
    for (one_in, given) in choices {
        if rng.u8(..one_in) == 0 {
            case.options.extend(words(given[rng.usize(..given.len())]));
        }
    }
    if rng.u8(..4) == 0 {
        case.files.push(("bans", bans(rng)));
        case.options.extend(words("--bans bans"));
    }
    if rng.u8(..4) == 0 && !materials.sets.is_empty() {
        let sets = &materials.sets[rng.usize(..materials.sets.len())];
        case.files.push(("sets", sets.clone()));
        case.options.extend(words("--ipset sets"));
    }
}

/// Changes of the access list, some after others have begun.
fn bans(rng: &mut Rng) -> String {
    let mut text = String::new();
    let mut seconds = 0;
    for _ in 0..rng.usize(..12) {
        let when = if seconds == 0 { "-".to_owned() } else { format!("+{seconds}") };
        seconds += rng.u32(..3);
        let block = |rng: &mut Rng| {
            let bits = *rng.choice(&[0, 8, 16, 24, 32]).unwrap_or(&8_u32);
            let address = if rng.bool() { 10 << 24 } else { rng.u32(..) };
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            format!("{}/{bits}", std::net::Ipv4Addr::from(address & mask))
        };
        let (source, destination) = (block(rng), block(rng));
        let line = match rng.u8(..4) {
            0 => format!("{when} ban {source}\n"),
            1 => format!("{when} unban {source}\n"),
            2 => format!("{when} accept {source} {destination}\n"),
            _ => format!("{when} deny {source}\n"),
        };
        text.push_str(&line);
    }
    text
}
