//! [`NftSide`]: tamis's side, by way of the whole packet path, with counters as nft lists them.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;
use std::sync::Arc;

use conntrack::Mode;
use dataplane::counters::HitCount;
use dataplane::{
    Arrival, Config, Counters, FinalVerdict, Handler, Observer, Path, Program, Skip, Why,
};
use host::Host;
use packet::{Checksums, L3, Link, Packet, Read};
use rules::Transit;
use rules::eval::{self, Cause, RuleRef};
use rules::model::{Action, Family, Rule, Ruleset};

use super::super::load::running;
use crate::state::evaluator::Egress;

/// Counters of a ruleset: by family, table and chain, of each rule those in it.
pub type Counted = BTreeMap<(String, String, String), Vec<Vec<HitCount>>>;

/// A ruleset of nft with its connections.
#[derive(Debug)]
pub struct NftSide {
    rulesets: Vec<Arc<Ruleset>>,
    /// What is not evaluated of the rules, by name: of each family.
    pub lacks: Vec<String>,
    program: Program,
    handler: Handler,
    seen: Observed,
    number: u64,
    link: Link,
    /// The last packet's verdict.
    verdict: String,
}

/// What the walks add up, and the last one.
#[derive(Debug)]
struct Observed {
    /// Of each ruleset.
    counters: Vec<(Family, Counters)>,
    unknown: Option<(Option<RuleRef>, String)>,
    left: Vec<u8>,
    bytes_unknown: bool,
    /// Chains that it may have come to are not among what was counted.
    unwalked: bool,
}

/// The calling thread's namespace as its own tools describe it.
pub fn config() -> io::Result<Config> {
    let printed = |command: &str| -> io::Result<String> {
        let mut words = command.split(' ');
        let output = Command::new(words.next().unwrap_or_default()).args(words).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let routes = printed("ip -4 route show table all")? + &printed("ip -6 route show table all")?;
    let links = printed("ip -d -o link")?;
    let addresses = printed("ip -o addr")?;
    let settings = printed("sysctl net.ipv4.conf net.ipv4.ip_forward net.ipv6.conf")?;
    let host = Host::read(|file| match file {
        "routes.txt" => Some(routes.clone()),
        "links.txt" => Some(links.clone()),
        "addresses.txt" => Some(addresses.clone()),
        "sysctl.txt" => Some(settings.clone()),
        _ => None,
    });
    let host = host.map_err(io::Error::other)?;
    Ok(Config {
        checksums: Checksums::Verify,
        ct: conntrack::Config {
            mode: Mode::Kernel,
            checksums: Checksums::Verify,
            ..conntrack::Config::default()
        },
        host: Host { kernel: running(), ..host },
        ..Config::default()
    })
}

/// The rulesets, of each family one, that a text is, and what is not evaluated of them.
fn lowered(text: &str) -> Result<(Vec<Ruleset>, Vec<String>), String> {
    let read = match text.trim_start().starts_with('{') {
        true => nft::json::read::ruleset(text)?,
        false => {
            let nothing = |_: &str| Err(String::new());
            nft::text::parse("ruleset", text, &nothing).map_err(|error| error.to_string())?
        }
    };
    let families = [Family::Ipv4, Family::Ipv6];
    let lowered = families.map(|family| nft::lower::lower(&read, family));
    let lacks = lowered.iter().flat_map(|lowered| &lowered.unknown).flat_map(|lack| &lack.causes);
    let lacks = lacks.map(ToString::to_string).collect();
    Ok((lowered.into_iter().map(|lowered| lowered.ruleset).collect(), lacks))
}

impl NftSide {
    /// Reads a ruleset, text or JSON.
    pub fn new(text: &str, config: &Config, link: Link) -> Result<Self, String> {
        let (rulesets, lacks) = lowered(text)?;
        let rulesets: Vec<Arc<Ruleset>> = rulesets.into_iter().map(Arc::new).collect();
        let counters = rulesets.iter().map(|rules| (rules.family, Counters::of(rules))).collect();
        let (unknown, left, unwalked) = (None, Vec::new(), false);
        let seen = Observed { counters, unknown, left, bytes_unknown: false, unwalked };
        let program = Program::new(rulesets.iter().map(Arc::clone), config.clone());
        let handler = Handler::new(&program);
        let verdict = String::new();
        Ok(Self { rulesets, lacks, program, handler, seen, number: 0, link, verdict })
    }

    /// What comes out for a packet that arrives at `time`, in nanoseconds since the Unix epoch.
    pub fn evaluate(&mut self, frame: &[u8], time: u64) -> Egress {
        self.number += 1;
        self.seen.unknown = None;
        self.seen.bytes_unknown = false;
        self.seen.unwalked = false;
        let mut bytes = frame.to_vec();
        let arrival = Arrival {
            time: Some(time),
            input: Some("t0"),
            ..Arrival::new(self.number, self.link, bytes.len())
        };
        let end =
            self.handler.handle(&self.program, &mut bytes, &arrival, &mut self.seen).outcome.end;
        self.verdict = format!("{:?}", end.verdict);
        match (end.verdict, end.path) {
            (FinalVerdict::Accept(_), Some(Path::Forward)) => Egress::Packet(
                (!self.seen.bytes_unknown).then(|| std::mem::take(&mut self.seen.left)),
            ),
            (FinalVerdict::Accept(_) | FinalVerdict::Drop(_) | FinalVerdict::Reject(_), _)
            | (FinalVerdict::Skip(Skip::Fragment | Skip::Family), _) => Egress::Nothing,
            (FinalVerdict::Unknown | FinalVerdict::Skip(_), _) => {
                self.seen.unknown.get_or_insert_with(|| (None, format!("{:?}", end.verdict)));
                Egress::Unknown
            }
        }
    }

    /// What tamis said of the last packet.
    #[must_use]
    pub fn verdict(&self) -> &str {
        &self.verdict
    }

    /// Whether the last packet may have come to chains that were not walked: by a rule of which it is not known what it does,
    /// or where it is not known whether it is one packet.
    #[must_use]
    pub fn is_unwalked(&self) -> bool {
        self.seen.unwalked
    }

    /// The first thing that was not known of a packet, which was the last.
    #[must_use]
    pub fn unknown(&self, frame: &[u8]) -> Option<String> {
        let (at, cause) = self.seen.unknown.as_ref()?;
        let (mut bytes, len) = (frame.to_vec(), frame.len());
        let packet = Packet::parse(&mut bytes, len, self.link, Checksums::Ignore);
        let is_v6 = packet.headers().l3 == L3::Ipv6;
        let family = if is_v6 { Family::Ipv6 } else { Family::Ipv4 };
        let ruleset = self.rulesets.iter().find(|rules| rules.family == family);
        let named = at.zip(ruleset).and_then(|(at, ruleset)| {
            let chain = ruleset.tables.get(at.table as usize)?.chains.get(at.chain as usize)?;
            name_of(chain.rules.get(at.rule as usize)?, cause)
        });
        Some(named.unwrap_or_else(|| cause.clone()))
    }

    /// The counters of every rule: of an `inet` table those of both families together.
    #[must_use]
    pub fn counters(&self) -> Counted {
        let mut counted = Counted::new();
        for (ruleset, (_, counters)) in self.rulesets.iter().zip(&self.seen.counters) {
            for (t, table) in (0..).zip(&ruleset.tables) {
                let (family, name) = table.name.split_once(' ').unwrap_or(("", &table.name));
                for (c, chain) in (0..).zip(&table.chains) {
                    let key = (family.to_owned(), name.to_owned(), chain.name.to_string());
                    let rules = counted.entry(key).or_default();
                    add_chain(rules, chain, |rule| {
                        counters.rule(RuleRef { table: t, chain: c, rule })
                    });
                }
            }
        }
        counted
    }
}

/// Adds what a chain's rules counted; the parts of one rule of nft follow one another.
fn add_chain(
    rules: &mut Vec<Vec<HitCount>>,
    chain: &rules::model::Chain,
    hits: impl Fn(u32) -> HitCount,
) {
    let counting = (0..).zip(&chain.rules).filter_map(|(index, rule)| {
        let listed = rule.listed.as_deref()?;
        Some((index, listed.number as usize, listed.counts))
    });
    let mut place = (0, 0);
    for (index, number, counts) in counting {
        if number != place.0 {
            place = (number, 0);
        }
        if rules.len() < number {
            rules.resize(number, Vec::new());
        }
        if !counts {
            continue;
        }
        match rules[number - 1].get_mut(place.1) {
            Some(sum) => sum.add(&hits(index)),
            None => rules[number - 1].push(hits(index)),
        }
        place.1 += 1;
    }
}

/// The name of the match or target of a rule that a cause is.
fn name_of(rule: &Rule, cause: &str) -> Option<String> {
    if let Some(index) = cause.strip_prefix("Match(").and_then(|rest| rest.strip_suffix(')')) {
        return Some(format!("match {}", rule.matches.get(index.parse::<usize>().ok()?)?.name));
    }
    match &rule.action {
        Action::Target(target) if cause == "Target" => {
            let text = rule.listed.as_ref().map_or("", |listed| &listed.text);
            Some(format!("target {} of {text}", target.name))
        }
        _ => None,
    }
}

impl Observed {
    fn of(&mut self, family: Family) -> Option<&mut Counters> {
        self.counters.iter_mut().find(|(known, _)| *known == family).map(|(_, counters)| counters)
    }
}

impl eval::Observer for Observed {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        let (bytes, time) = (transit.packet.len() as u64, transit.time);
        if let Some(counters) = self.of(transit.family) {
            counters.hit_slot(slot, certain, bytes, time);
        }
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unwalked |= cause == Cause::Target;
        self.unknown.get_or_insert_with(|| (Some(at), format!("{cause:?}")));
    }
}

impl Observer for Observed {
    fn depends_on(&mut self, why: Why) {
        self.unwalked |= matches!(why, Why::NotCaptured | Why::Fragment);
        self.unknown.get_or_insert_with(|| (None, format!("{why:?}")));
    }

    fn leaves(&mut self, packet: &Packet<'_>) {
        self.left.clear();
        let from = packet.network_offset();
        match packet.read_slice(from, packet.len()) {
            Read::Known(bytes) => self.left.extend_from_slice(bytes),
            Read::Unknown | Read::Absent => self.bytes_unknown = true,
        }
    }
}
