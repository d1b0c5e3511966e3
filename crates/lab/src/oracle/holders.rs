//! One host's packets through the tables of iptables-legacy and iptables-nft, in the kernel and in tamis.
//!
//! [`holders`] draws rules of both that test and set what the other sees (marks, translations, drops), loads them in either
//! order, has a TUN device forward packets through them and compares what comes out and every rule's counters. The kernel
//! runs what is attached to a hook by priority, of equal ones what was registered last; of two nat tables the later asks
//! about a flow first, and the other about flows that it lets go. Source: measured on Linux 6.18 with iptables 1.8.9.

use std::fmt::Write;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use dataplane::{Arrival, Config, Handler, Leaves, Origin, Path, Program};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use packet::udp;
use rules::Backend;
use rules::model::{Family, Ruleset};

use super::below::{Observed, twice};
use super::counters::Reader;
use super::ebtables::{Found, saved_counters};
use super::frames::{BATCH, FRAMES, FrameSummary, SOFTIRQ, campaign, read};
use super::kernel::Kernel;
use super::load::{lacking, restore};
use super::netns::{feed, in_fresh};
use crate::generate::frames::Frames;
use crate::scene::{Placement, Scene, Wire};

/// Where rules stand: a table, a chain of it, and what its rules may do besides giving a verdict.
const PLACES: [(&str, &str, &[&str]); 7] = [
    ("raw", "PREROUTING", &["CT --notrack", "MARK"]),
    ("mangle", "PREROUTING", &["MARK"]),
    ("mangle", "FORWARD", &["MARK"]),
    ("mangle", "POSTROUTING", &["MARK"]),
    ("nat", "PREROUTING", &["DNAT"]),
    ("nat", "POSTROUTING", &["SNAT"]),
    ("filter", "FORWARD", &["MARK"]),
];

/// What the oracle needs and this machine lacks, if anything.
#[must_use]
pub fn lacks_holders() -> Option<String> {
    let restores = || feed(&mut Command::new("iptables-nft-restore"), "*raw\nCOMMIT\n");
    lacking().or_else(|| in_fresh(restores).err().map(|error| error.to_string()))
}

/// Compares at least `frames` packets under drawn rules of both implementations.
pub fn holders(seed: u64, frames: u64) -> io::Result<FrameSummary> {
    campaign(seed, frames, |frames, summary| {
        let family = if summary.rulesets.is_multiple_of(2) { Family::Ipv4 } else { Family::Ipv6 };
        let is_earlier = frames.rng.bool();
        let texts = [Backend::Legacy, Backend::Nft].map(|_| rules(frames, family));
        let told = in_fresh(|| Trial::set_up(family, &texts, is_earlier)?.run(frames, summary))?;
        let order = if is_earlier { "legacy, then nft" } else { "nft, then legacy" };
        Ok(told.map(|what| format!("{what}\nregistered: {order}\n{}", texts.join("# nft\n"))))
    })
}

/// Draws rules of one implementation.
fn rules(frames: &mut Frames, family: Family) -> String {
    let mut text = String::new();
    let mut table = "";
    for (name, chain, actions) in PLACES {
        if name != table {
            if !table.is_empty() {
                text.push_str("COMMIT\n");
            }
            let _ = writeln!(text, "*{name}");
            if name == "raw" {
                // What the stack says by itself (MLD) goes no further.
                text.push_str(":OUTPUT DROP [0:0]\n");
            }
            table = name;
        }
        let policy = if frames.rng.u8(..12) == 0 && name != "nat" { "DROP" } else { "ACCEPT" };
        let _ = writeln!(text, ":{chain} {policy} [0:0]");
        for _ in 0..frames.rng.usize(..4) {
            let rule = rule(frames, family, name, actions);
            let _ = writeln!(text, "-A {chain}{rule}");
        }
    }
    text + "COMMIT\n"
}

fn rule(frames: &mut Frames, family: Family, table: &str, actions: &[&str]) -> String {
    let mut rule = String::new();
    if frames.rng.bool() {
        let _ = write!(rule, " -p udp -m udp --dport {}", port(frames));
    }
    if frames.rng.u8(..3) == 0 {
        let _ = write!(rule, " -d {}", address(frames, family, "9"));
    }
    if frames.rng.u8(..3) == 0 {
        let _ = write!(rule, " -m mark --mark {:#x}", frames.rng.u8(..4));
    }
    if table != "raw" && frames.rng.u8(..4) == 0 {
        let state = ["NEW", "ESTABLISHED", "UNTRACKED"][frames.rng.usize(..3)];
        let _ = write!(rule, " -m conntrack --ctstate {state}");
    }
    let action = match frames.rng.u8(..8) {
        0 => "ACCEPT",
        1 if table != "nat" => "DROP",
        2 => "RETURN",
        3 => return rule,
        _ => actions[frames.rng.usize(..actions.len())],
    };
    let more = match action {
        "MARK" => format!(" --set-xmark {:#x}/0xffffffff", frames.rng.u8(..4)),
        "DNAT" => format!(" --to-destination {}", address(frames, family, "9")),
        "SNAT" => format!(" --to-source {}", address(frames, family, "7")),
        _ => String::new(),
    };
    let _ = write!(rule, " -j {action}{more}");
    rule
}

fn port(frames: &mut Frames) -> u16 {
    1000 + u16::from(frames.rng.u8(..4))
}

/// One of four addresses of a network, which nobody of the host has.
fn address(frames: &mut Frames, family: Family, network: &str) -> String {
    numbered(family, network, frames.rng.usize(..4))
}

fn numbered(family: Family, network: &str, at: usize) -> String {
    match family {
        Family::Ipv6 => format!("2001:db8:{network}::{}", at + 1),
        _ => format!("198.51.{network}.{}", at + 1),
    }
}

/// A packet of a connection of its own, or of one before.
fn packet(frames: &mut Frames, family: Family, number: usize) -> Vec<u8> {
    let flow = number - frames.rng.usize(..number.min(3) + 1);
    // No two connections have one source port: the kernel never draws another.
    let ends = [("1", flow % 4), ("9", flow / 4 % 4)];
    let [from, to] = ends.map(|(network, at)| numbered(family, network, at));
    let [from, to]: [IpAddr; 2] = [from, to].map(|text| text.parse().expect("an address"));
    let addresses = Addresses::new(from, to).expect("one family");
    let message = Message::udp(2000 + flow as u16, 1000 + (flow / 16 % 4) as u16);
    let frame = Craft { payload_len: 8, ..Craft::new(addresses, message) }.frame();
    frame[14..].to_vec()
}

struct Trial {
    kernel: Kernel,
    scene: Scene,
    rules: Arc<Ruleset>,
}

impl Trial {
    /// Loads both rulesets in the calling thread's namespace.
    fn set_up(family: Family, texts: &[String; 2], is_earlier: bool) -> io::Result<Self> {
        let scene = Scene::new(family, Wire::Tun, Placement::Forward);
        let kernel = Kernel::new(scene)?;
        let tool = if family == Family::Ipv6 { "ip6tables" } else { "iptables" };
        let nft = || feed(&mut Command::new(format!("{tool}-nft-restore")), &texts[1]);
        if is_earlier {
            restore(family, &texts[0])?;
            nft()?;
        } else {
            nft()?;
            restore(family, &texts[0])?;
        }
        let mut rules = read(family, &texts[1])?;
        rules.evaluate_as(Backend::Nft);
        rules.join(read(family, &texts[0])?, 0, is_earlier);
        Ok(Self { kernel, scene, rules: Arc::new(rules) })
    }

    fn run(
        mut self,
        frames: &mut Frames,
        summary: &mut FrameSummary,
    ) -> io::Result<Option<String>> {
        let config = Config {
            path: Some(Path::Forward),
            ct: conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() },
            pair: false,
            host: self.scene.host(),
            ..Config::default()
        };
        let program = Program::new([Arc::clone(&self.rules)], config);
        let mut handler = Handler::new(&program).sending();
        let mut observed = Observed::of([&self.rules]);
        for number in 1..=FRAMES {
            let sent = packet(frames, self.scene.family, number);
            self.kernel.send(&sent)?;
            let mut ours = sent.clone();
            let arrival = Arrival {
                input: Some("t0"),
                output: Some("t1"),
                origin: Origin::Wire,
                time: Some(number as u64),
                ..Arrival::new(number as u64, Link::Raw, sent.len())
            };
            let leaves = handler.handle(&program, &mut ours, &arrival, &mut observed).leaves;
            let expected = match leaves {
                Leaves::InPlace(len) => Some(ours[..len].to_vec()),
                Leaves::Others(frames) => frames.iter().next().map(<[u8]>::to_vec),
                Leaves::Nothing => None,
            };
            summary.frames += 1;
            summary.passed += u64::from(expected.is_some());
            let came = self.came(expected.is_some())?;
            let mut what = observed.unknown().map(|what| format!("tamis cannot tell: {what}"));
            if what.is_none() && came != expected {
                what = Some(format!("tamis {expected:x?}\nkernel {came:x?}"));
            }
            if what.is_none() && number.is_multiple_of(BATCH) {
                what = twice(|| Ok(observed.differs(&self.rules, &self.kernel_counters()?)))?;
            }
            if let Some(what) = what {
                return Ok(Some(format!("packet {number}: {what}\n{}", crate::hex::hex(&sent))));
            }
        }
        Ok(None)
    }

    /// What came out.
    fn came(&mut self, is_expected: bool) -> io::Result<Option<Vec<u8>>> {
        let came = self.survivor()?;
        if came.is_none() && is_expected {
            thread::sleep(SOFTIRQ);
            return self.survivor();
        }
        Ok(came)
    }

    /// What came out since of what was sent: the stack says something by itself before there are rules (MLD).
    fn survivor(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (version, protocol) = if self.scene.family == Family::Ipv6 { (6, 6) } else { (4, 9) };
        let is_ours = |bytes: &Vec<u8>| {
            bytes.first().is_some_and(|first| first >> 4 == version)
                && bytes.get(protocol) == Some(&udp::PROTOCOL)
        };
        let mut survivors = self.kernel.survivors()?.into_iter().map(|survivor| survivor.bytes);
        Ok(survivors.rfind(is_ours))
    }

    /// The counters of rules, tables named as [`Ruleset::title`] does.
    fn kernel_counters(&self) -> io::Result<Found> {
        let tool = if self.scene.family == Family::Ipv6 { "ip6tables" } else { "iptables" };
        let mut found = saved_counters(&format!("{tool}-nft-save"))?;
        let mut reader = Reader::open(self.scene.family)?;
        for table in self.rules.tables.iter().filter(|table| table.backend == Backend::Legacy) {
            let title = self.rules.title(table);
            for counters in reader.read(&table.name)? {
                found.insert((title.to_owned(), counters.chain), counters.entries);
            }
        }
        Ok(found)
    }
}
