//! Draws rulesets that look at connections: raw decides how to track, nat translates, mangle marks, filter decides.

mod clock;
mod nat;

use std::fmt;

use rules::model::Family;

use crate::generate::ruleset::{ChainText, RuleText, RulesetText, TableText};
use crate::generate::{Draw, Piece};

const STATES: [&str; 5] = ["INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED"];
const STATUSES: [&str; 5] = ["NONE", "EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED"];

/// A ruleset, and of what sort it is.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// All its tables, as text that can be cut down.
    pub rules: RulesetText,
    /// What it depends on.
    pub sort: Sort,
}

/// What a ruleset depends on besides the state of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sort {
    /// It has nat rules.
    pub translates: bool,
    /// It depends on the clock.
    pub is_timed: bool,
    /// It names helpers for whatever goes to their ports.
    pub is_helped: bool,
}

impl Sort {
    /// What tamis must know every verdict of.
    #[must_use]
    pub fn is_strict(self) -> bool {
        !self.translates && !self.is_timed
    }
}

/// ` nat`, ` clock`, ` helper`, as far as they hold.
impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.translates { " nat" } else { "" })?;
        f.write_str(if self.is_timed { " clock" } else { "" })?;
        f.write_str(if self.is_helped { " helper" } else { "" })
    }
}

/// Draws a ruleset.
pub fn draw(draw: &mut Draw) -> Drawn {
    let translates = draw.one_in(3);
    // A translated packet may end at the host.
    let (filter, mangle): (&[&str], &[&str]) = match translates {
        true => (&["FORWARD", "INPUT"], &["PREROUTING", "INPUT", "FORWARD", "POSTROUTING"]),
        false => (&["FORWARD"], &["PREROUTING", "FORWARD", "POSTROUTING"]),
    };
    let mut tables = vec![table(draw, "filter", filter), table(draw, "mangle", mangle)];
    if draw.one_in(2) {
        tables.push(raw(draw));
    }
    if translates {
        tables.push(nat::table(draw));
    }
    let is_timed = !translates && draw.one_in(3);
    if is_timed {
        clock::sprinkle(draw, &mut tables);
    }
    let is_helped = translates && draw.one_in(2);
    if is_helped {
        tables.retain(|table| table.name != "raw");
        tables.push(helped());
    }
    Drawn { rules: RulesetText { tables }, sort: Sort { translates, is_timed, is_helped } }
}

/// FTP and TFTP are helped, from either side.
fn helped() -> TableText {
    let rules = ["-p 6 --dport 21 -j CT --helper ftp", "-p 17 --dport 69 -j CT --helper tftp"];
    let rule = |text: &str| {
        let action = Piece::plain(text.to_owned());
        RuleText { tests: Vec::new(), action, to: None }
    };
    let (name, rules) = ("PREROUTING".to_owned(), rules.map(rule).to_vec());
    TableText { name: "raw", chains: vec![ChainText { name, policy: "ACCEPT", rules }] }
}

fn table(draw: &mut Draw, name: &'static str, bases: &[&str]) -> TableText {
    draw.table = name;
    let user = bases.len();
    let mut chains = Vec::new();
    for base in bases {
        // Mangle drops little, so that most packets come to the filter.
        let policy = if name == "filter" && draw.one_in(3) { "DROP" } else { "ACCEPT" };
        let mut rules = Vec::new();
        for _ in 0..1 + draw.rng.usize(..6) {
            let jumps = draw.one_in(5).then_some(user);
            rules.push(rule(draw, name, base, jumps));
        }
        chains.push(ChainText { name: (*base).to_owned(), policy, rules });
    }
    let rules = (0..1 + draw.rng.usize(..5)).map(|_| rule(draw, name, "", None)).collect();
    chains.push(ChainText { name: "c1".to_owned(), policy: "-", rules });
    TableText { name, chains }
}

fn rule(draw: &mut Draw, table: &str, base: &str, jumps: Option<usize>) -> RuleText {
    let mut tests = Vec::new();
    if draw.one_in(3) {
        let protocol = draw.pick(&[6, 6, 17, 132, if draw.ipv6() { 58 } else { 1 }]);
        tests.push(Piece::plain(format!("{}-p {protocol}", seldom(draw))));
    }
    if base != "POSTROUTING" && draw.one_in(4) {
        let device = draw.pick(&["t0", "t1"]);
        tests.push(Piece::plain(format!("-i {device}")));
    }
    let kinds: [fn(&mut Draw) -> String; 10] = [
        state, state, conntrack, conntrack, conntrack, connmark, connlabel, connbytes, helper, mark,
    ];
    for _ in 0..1 + draw.rng.usize(..2) {
        let kind = draw.pick(&kinds);
        tests.push(Piece::plain(kind(draw)));
    }
    let action = match jumps {
        Some(_) => draw.pick(&["-j c1", "-g c1"]).to_owned(),
        None => action(draw, table),
    };
    if action.starts_with("-p ") {
        tests.retain(|test| !test.text.contains("-p "));
    }
    RuleText { tests, action: Piece::plain(action), to: jumps }
}

fn seldom(draw: &mut Draw) -> &'static str {
    if draw.one_in(6) { "! " } else { "" }
}

fn action(draw: &mut Draw, table: &str) -> String {
    let value = draw.rng.u8(..8);
    let verdict = match draw.rng.u8(..12) {
        0..=2 => "-j ACCEPT",
        3 if table == "filter" => "-j DROP",
        4 if table == "filter" => return reject(draw),
        3 | 4 if draw.one_in(4) => "-j DROP",
        5 => "-j RETURN",
        6 => return format!("-j CONNMARK --set-xmark {value:#x}/{:#x}", draw.rng.u8(..16)),
        7 => return format!("-j CONNMARK --{}-mark", draw.pick(&["save", "restore"])),
        8 => return format!("-j MARK --set-xmark {value:#x}/{:#x}", draw.rng.u8(..16)),
        _ => "",
    };
    verdict.to_owned()
}

/// A reset only answers TCP, so the rule must name it.
fn reject(draw: &mut Draw) -> String {
    let with = match draw.ipv6() {
        true => draw.pick(&["icmp6-port-unreachable", "icmp6-adm-prohibited"]),
        false => draw.pick(&["icmp-port-unreachable", "icmp-admin-prohibited"]),
    };
    match draw.one_in(2) {
        true => "-p 6 -j REJECT --reject-with tcp-reset".to_owned(),
        false => format!("-j REJECT --reject-with {with}"),
    }
}

/// Some of a list, with commas.
fn some(draw: &mut Draw, list: &[&str]) -> String {
    let mut picked: Vec<&str> = list.iter().copied().filter(|_| draw.one_in(3)).collect();
    if picked.is_empty() {
        picked.push(draw.pick(list));
    }
    picked.join(",")
}

fn state(draw: &mut Draw) -> String {
    format!("-m state {}--state {}", draw.bang(), some(draw, &STATES))
}

fn conntrack(draw: &mut Draw) -> String {
    let mut text = "-m conntrack".to_owned();
    for option in 0..12 {
        if !draw.one_in(6) {
            continue;
        }
        let bang = draw.bang();
        let value = match option {
            0 => format!("{bang}--ctstate {}", some(draw, &STATES)),
            1 => format!("{bang}--ctproto {}", draw.pick(&[6, 17, 1, 58])),
            2..=5 => {
                let name = ["origsrc", "origdst", "replsrc", "repldst"][option - 2];
                format!("{bang}--ct{name} {}", host(draw))
            }
            6..=9 => {
                let name = ["origsrcport", "origdstport", "replsrcport", "repldstport"][option - 6];
                let ports = draw.pick(&["80", "21", "1024:1027", "53", "0:1025", "443:65535"]);
                format!("{bang}--ct{name} {ports}")
            }
            10 => format!("{bang}--ctstatus {}", some(draw, &STATUSES)),
            // Ends far from every timeout: both clocks run.
            _ => {
                let range = draw.pick(&["0:5", "0:20", "20:45", "45:90", "90:200", "200:500000"]);
                format!("{bang}--ctexpire {range}")
            }
        };
        text = format!("{text} {value}");
    }
    if text == "-m conntrack" || draw.one_in(6) {
        text += if draw.one_in(2) { " --ctdir ORIGINAL" } else { " --ctdir REPLY" };
    }
    text
}

fn host(draw: &mut Draw) -> &'static str {
    match draw.scene.family {
        Family::Ipv6 => draw.pick(&["2001:db8:1::1", "2001:db8:1::/64", "2001:db8:2::1"]),
        _ => draw.pick(&["192.0.2.1", "192.0.2.0/24", "198.51.100.1", "198.51.100.0/30"]),
    }
}

fn connmark(draw: &mut Draw) -> String {
    let (value, mask) = (draw.rng.u8(..8), draw.rng.u8(1..16));
    format!("-m connmark {}--mark {value:#x}/{mask:#x}", draw.bang())
}

fn mark(draw: &mut Draw) -> String {
    let (value, mask) = (draw.rng.u8(..8), draw.rng.u8(1..16));
    format!("-m mark {}--mark {value:#x}/{mask:#x}", draw.bang())
}

fn connlabel(draw: &mut Draw) -> String {
    let set = if draw.one_in(2) { " --set" } else { "" };
    format!("-m connlabel {}--label {}{set}", draw.bang(), draw.pick(&[0, 1, 7, 64, 127]))
}

fn connbytes(draw: &mut Draw) -> String {
    let mode = draw.pick(&["packets", "bytes", "avgpkt"]);
    let range = match mode {
        "packets" => draw.pick(&["1", "2:4", "5", "0:3"]),
        "bytes" => draw.pick(&["100", "0:200", "300:900"]),
        _ => draw.pick(&["50", "0:60", "45:80"]),
    };
    let direction = draw.pick(&["original", "reply", "both"]);
    let bang = draw.bang();
    format!(
        "-m connbytes {bang}--connbytes {range} --connbytes-mode {mode} --connbytes-dir {direction}"
    )
}

fn helper(draw: &mut Draw) -> String {
    format!("-m helper {}--helper {}", draw.bang(), draw.pick(&["ftp", "ftp", "tftp", "\"\""]))
}

/// How packets are tracked: by device, protocol and address.
fn raw(draw: &mut Draw) -> TableText {
    let mut rules = Vec::new();
    for _ in 0..1 + draw.rng.usize(..4) {
        let mut tests = Vec::new();
        let mut tcp = false;
        if draw.one_in(2) {
            let device = draw.pick(&["t0", "t1"]);
            tests.push(Piece::plain(format!("-i {device}")));
        }
        if draw.one_in(2) {
            let host = host(draw);
            tests.push(Piece::plain(format!("{} {host}", draw.pick(&["-s", "-d"]))));
        }
        let action = match draw.rng.u8(..7) {
            0 => "-j NOTRACK".to_owned(),
            1 => "-j CT --notrack".to_owned(),
            2 => format!("-j CT --zone {}", draw.rng.u8(1..3)),
            3 => format!("-j CT --zone-orig {}", draw.rng.u8(1..3)),
            4 => format!("-j CT --zone-reply {}", draw.rng.u8(1..3)),
            _ => {
                tcp = true;
                "-j CT --helper ftp".to_owned()
            }
        };
        if tcp {
            tests.push(Piece::plain("-p 6 --dport 21"));
        } else if draw.one_in(3) {
            tests.push(Piece::plain(format!("-p {}", draw.pick(&[6, 17]))));
        }
        rules.push(RuleText { tests, action: Piece::plain(action), to: None });
    }
    let name = "PREROUTING".to_owned();
    TableText { name: "raw", chains: vec![ChainText { name, policy: "ACCEPT", rules }] }
}
