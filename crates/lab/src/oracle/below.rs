//! Frames through bridge rules and the rules of what they hold, in the kernel and across a wire of tamis.
//!
//! [`both`] has a bridge between two veth pairs hand packets to iptables-legacy and ip6tables-legacy (br_netfilter) beside
//! ebtables-nft: what comes out at the far end, byte by byte, and the counters of all rules. The rules test and set marks,
//! so that each shows who came before it. What a wire looks into and a bridge does not (SNAP) is left out, and so is
//! BROUTING, which ebtables-nft lacks. Source of the recipe: measured on Linux 6.18.

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use crate::layouts::Kind;
use dataplane::{
    Arrival, Config, Counters as Tallies, Crossing, FinalVerdict, Handler, Leaves, Observer,
    Origin, Program,
};
use packet::craft::{Addresses, Craft, Fragment, Message};
use packet::{Checksums, L3, L3Fault, Link, checksum, ethertype, parse, parse_frame};
use rules::Transit;
use rules::eval::{self, Cause, RuleRef};
use rules::model::{Counters, Family, Ruleset};
use rules::save::print_ruleset;

use super::counters::Reader;
use super::ebtables::{Ebtables, Found, nft_counters};
use super::frames::{BATCH, FRAMES, FrameSummary, SOFTIRQ, campaign, read, receive, set_up_bridge};
use super::load::restore;
use super::netns::{feed, in_fresh, write_setting};
use crate::generate::frames::Frames;
use crate::layouts::{Layouts, name_of};

const HELD: [Family; 2] = [Family::Ipv4, Family::Ipv6];

/// Where the rules of the first table begin that a packet comes to; and what keeps frames out that have come out at the
/// far end, whose stack is the same one.
const FIRST: &str = "-A PREROUTING";
const AT_FAR_END: &str = "-A PREROUTING -i d0 -j DROP\n";

/// What the oracle needs and this machine lacks, if anything.
#[must_use]
pub fn lacks_both() -> Option<String> {
    in_fresh(|| {
        set_up()?;
        feed(&mut Command::new("ebtables-nft-restore"), "*filter\n:FORWARD ACCEPT\n")?;
        HELD.into_iter().try_for_each(|family| restore(family, "*raw\nCOMMIT\n"))
    })
    .err()
    .map(|error| error.to_string())
}

/// Compares at least `frames` frames under drawn rules of a bridge, of IPv4 and of IPv6.
pub fn both(seed: u64, frames: u64, layouts: Layouts) -> io::Result<FrameSummary> {
    campaign(seed, frames, |frames, summary| {
        let layout = layouts.of(summary.rulesets);
        let bridge = Ebtables::Nft.taken(&frames.bridge_rules());
        let texts = [bridge, frames.held_rules(false), frames.held_rules(true)];
        trial(&texts, layout, || frame(frames), summary)
    })
}

/// Compares at least `frames` fragments, of packets whose first one has another mark than the last, and whichever of them
/// comes first, under rules that track connections.
pub fn fragments(seed: u64, frames: u64) -> io::Result<FrameSummary> {
    const BRIDGE: &str = "*nat\n:PREROUTING ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\n\
        -A PREROUTING -s 02:00:00:00:00:01 -j mark --mark-set 0x1 --mark-target CONTINUE\n\
        -A PREROUTING -s 02:00:00:00:00:02 -j mark --mark-set 0x2 --mark-target CONTINUE\n\
        -A POSTROUTING -s 02:00:00:00:00:01 -j CONTINUE\n\
        *filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n\
        -A FORWARD --mark 0x1 -j CONTINUE\n-A FORWARD --mark 0x2 -j CONTINUE\n\
        -A FORWARD -s 02:00:00:00:00:01 -j CONTINUE\n";
    const HELD: &str = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING\nCOMMIT\n\
        *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m mark --mark 0x1\n-A FORWARD -m mark --mark 0x2\n\
        -A FORWARD -m conntrack --ctstate NEW,ESTABLISHED -j ACCEPT\nCOMMIT\n";
    campaign(seed, frames, |frames, summary| {
        let (mut id, mut waiting) = (0, None);
        let draw = || {
            waiting.take().unwrap_or_else(|| {
                id += 1;
                let [first, last] = pieces(frames, id);
                let (now, then) = if frames.rng.bool() { (first, last) } else { (last, first) };
                waiting = Some(then);
                now
            })
        };
        trial(&[BRIDGE, HELD, HELD].map(str::to_owned), None, draw, summary)
    })
}

/// The two fragments of a datagram, from different link addresses.
fn pieces(frames: &mut Frames, id: u32) -> [Vec<u8>; 2] {
    let ends = match frames.rng.bool() {
        true => ["10.0.0.1", "10.0.0.2"],
        false => ["2001:db8::1", "2001:db8::2"],
    };
    let [from, to] = ends.map(|text| text.parse::<IpAddr>().expect("an address"));
    let addresses = Addresses::new(from, to).expect("one family");
    let mut macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
    frames.rng.shuffle(&mut macs);
    let piece = |offset, more, payload_len, source| {
        let fragment = Some(Fragment { offset, more });
        let message = Message::udp(4000, 53);
        let craft = Craft { fragment, id, payload_len, ..Craft::new(addresses, message) };
        let mut frame = craft.frame();
        frame[..12].copy_from_slice(&[[2, 0, 0, 0, 0, 9], source].concat());
        frame
    };
    [piece(0, true, 24, macs[0]), piece(32, false, 8, macs[1])]
}

fn trial(
    texts: &[String; 3],
    layout: Option<Kind>,
    draw: impl FnMut() -> Vec<u8> + Send,
    summary: &mut FrameSummary,
) -> io::Result<Option<String>> {
    let families = [Family::Bridge, Family::Ipv4, Family::Ipv6];
    let mut rules = Vec::new();
    for (family, text) in families.into_iter().zip(texts) {
        rules.push(Arc::new(read(family, text)?));
    }
    let told = in_fresh(|| {
        let (near, far) = set_up()?;
        let printed = print_ruleset(&rules[0], false, |_, _, _| Counters::default());
        feed(&mut Command::new("ebtables-nft-restore"), &printed)?;
        for (family, text) in HELD.into_iter().zip(&texts[1..]) {
            restore(family, &text.replacen(FIRST, &format!("{AT_FAR_END}{FIRST}"), 1))?;
        }
        Trial { rules: &rules, layout, near, far }.run(draw, summary)
    });
    Ok(told
        .unwrap_or_else(|error| Some(error.to_string()))
        .map(|what| format!("{}: {what}\n{}", name_of(layout), texts.concat())))
}

/// A bridge that hands over what its frames hold, in one VLAN tag too.
fn set_up() -> io::Result<(File, File)> {
    let ends = set_up_bridge()?;
    for setting in ["nf-call-iptables", "nf-call-ip6tables", "nf-filter-vlan-tagged"] {
        write_setting(&format!("bridge/bridge-{setting}"), "1")?;
    }
    Ok(ends)
}

/// A frame in which both see the same packet, mostly with a header checksum that is right.
fn frame(frames: &mut Frames) -> Vec<u8> {
    loop {
        let mut frame = frames.frame();
        let found = parse(Link::Wire, &frame, frame.len(), Checksums::Ignore);
        let seen = parse_frame(&frame, frame.len());
        if (found.link.ethertype, found.network) != (seen.link.ethertype, seen.network) {
            continue;
        }
        if found.link.ethertype == ethertype::IPV4 && frames.rng.u8(..16) > 0 {
            let header_len = match found.l3 {
                L3::Ipv4 { header_len } => header_len,
                L3::Fault(L3Fault::Length) => 20,
                _ => return frame,
            };
            if let Some(header) = frame.get_mut(found.network..found.network + header_len) {
                header[10..12].fill(0);
                let sum = !checksum::sum(header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
            }
        }
        return frame;
    }
}

/// Counts what tamis hits, by family.
pub(super) struct Observed {
    tallies: Vec<(Family, Tallies)>,
    unknown: Option<String>,
}

impl Observed {
    /// Of rules that have counted nothing.
    pub(super) fn of<'r>(rules: impl IntoIterator<Item = &'r Arc<Ruleset>>) -> Self {
        let tallies = rules.into_iter().map(|rules| (rules.family, Tallies::of(rules)));
        Self { tallies: tallies.collect(), unknown: None }
    }

    /// The first rule of these that has counted otherwise than the kernel's, whose tables are named as
    /// [`Ruleset::title`] does.
    pub(super) fn differs(&self, rules: &Ruleset, kernel: &Found) -> Option<String> {
        let (_, tallies) = self.tallies.iter().find(|(of, _)| *of == rules.family)?;
        for (t, table) in rules.tables.iter().enumerate() {
            for (c, chain) in table.chains.iter().enumerate() {
                let key = (rules.title(table).to_owned(), chain.name.to_string());
                let theirs = kernel.get(&key).map(Vec::as_slice).unwrap_or_default();
                for r in 0..chain.rules.len() {
                    let at = RuleRef { table: t as u32, chain: c as u32, rule: r as u32 };
                    let hits = tallies.rule(at);
                    let ours = Counters { packets: hits.packets, bytes: hits.bytes };
                    if theirs.get(r) != Some(&ours) {
                        let (family, theirs) = (rules.family.name(), theirs.get(r));
                        let place = format!("{family} {key:?} {}", r + 1);
                        return Some(format!("{place}: tamis {ours}, kernel {theirs:?}"));
                    }
                }
            }
        }
        None
    }

    /// The first thing that some packet left unknown.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }
}

impl eval::Observer for Observed {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        let mut of = self.tallies.iter_mut().filter(|(family, _)| *family == transit.family);
        if let Some((_, tallies)) = of.next() {
            tallies.hit_slot(slot, certain, transit.packet.len() as u64, transit.time);
        }
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown.get_or_insert_with(|| format!("{at:?}: {cause:?}"));
    }
}

impl Observer for Observed {}

struct Trial<'r> {
    rules: &'r [Arc<Ruleset>],
    layout: Option<Kind>,
    near: File,
    far: File,
}

impl Trial<'_> {
    fn run(
        mut self,
        mut draw: impl FnMut() -> Vec<u8>,
        summary: &mut FrameSummary,
    ) -> io::Result<Option<String>> {
        let config = Config {
            reference: self.layout.is_none(),
            checksums: Checksums::Verify,
            ct: conntrack::Config { mode: conntrack::Mode::Kernel, ..conntrack::Config::default() },
            pair: false,
            ..Config::default()
        };
        let program = Program::new(self.rules.iter().cloned(), config);
        let mut handler = Handler::new(&program).sending();
        let mut observed = Observed::of(self.rules);
        let crossing = Crossing::default();
        for number in 1..=FRAMES {
            let frame = draw();
            self.near.write_all(&frame)?;
            let mut ours = frame.clone();
            let arrival = Arrival {
                input: Some("p0"),
                output: Some("p1"),
                wire: Some(&crossing),
                origin: Origin::Wire,
                time: Some(number as u64),
                ..Arrival::new(number as u64, Link::Wire, frame.len())
            };
            observed.unknown = None;
            let egress = handler.handle(&program, &mut ours, &arrival, &mut observed);
            let (verdict, leaves) = (egress.outcome.end.verdict, egress.leaves);
            let passed: Vec<Vec<u8>> = match leaves {
                Leaves::Nothing => Vec::new(),
                Leaves::Others(frames) => frames.iter().map(<[u8]>::to_vec).collect(),
                Leaves::InPlace(len) => vec![ours[..len].to_vec()],
            };
            summary.frames += 1;
            summary.passed += u64::from(!passed.is_empty());
            let mut what = match verdict {
                FinalVerdict::Unknown => Some(format!("tamis cannot tell: {:?}", observed.unknown)),
                _ => self.far_differs(&passed)?,
            };
            if what.is_none() && number % BATCH == 0 {
                what = self.counters_differ(&observed)?;
            }
            if let Some(what) = what {
                let frame = crate::hex::hex(&frame);
                return Ok(Some(format!("frame {number}: {what}\n{verdict:?}\n{frame}")));
            }
        }
        Ok(None)
    }

    /// What comes out at the far end, against what leaves by tamis.
    fn far_differs(&mut self, passed: &[Vec<u8>]) -> io::Result<Option<String>> {
        let mut buffer = vec![0; 1 << 12];
        let mut came: Vec<Vec<u8>> = Vec::new();
        for is_late in [false, true] {
            while let Some(frame) = receive(&mut self.far, &mut buffer)? {
                came.push(frame);
            }
            if !is_late && came.len() < passed.len() {
                thread::sleep(SOFTIRQ);
            }
        }
        // The packet socket sees frames without their tag.
        let untagged = |frame: &Vec<u8>| match frame.get(12..14) {
            Some([0x81, 0]) => [&frame[..12], &frame[16..]].concat(),
            _ => frame.clone(),
        };
        let expected: Vec<Vec<u8>> = passed.iter().map(untagged).collect();
        let told = || {
            let [ours, theirs] = [&expected, &came].map(|frames| {
                frames.iter().map(|frame| crate::hex::hex(frame)).collect::<Vec<_>>()
            });
            format!("tamis {ours:?}\nkernel {theirs:?}")
        };
        Ok((expected != came).then(told))
    }

    fn counters_differ(&self, observed: &Observed) -> io::Result<Option<String>> {
        twice(|| {
            for rules in self.rules {
                let what = observed.differs(rules, &kernel_counters(rules)?);
                if what.is_some() {
                    return Ok(what);
                }
            }
            Ok(None)
        })
    }
}

/// What `differs` says, which is asked again where a softirq may still be under way.
pub(super) fn twice(
    differs: impl Fn() -> io::Result<Option<String>>,
) -> io::Result<Option<String>> {
    if differs()?.is_none() {
        return Ok(None);
    }
    thread::sleep(SOFTIRQ);
    differs()
}

fn kernel_counters(rules: &Ruleset) -> io::Result<Found> {
    if rules.family == Family::Bridge {
        return nft_counters();
    }
    let mut reader = Reader::open(rules.family)?;
    let mut found = Found::new();
    for table in &rules.tables {
        for counters in reader.read(&table.name)? {
            let is_first = table.name == "raw" && counters.chain == "PREROUTING";
            let entries = counters.entries.into_iter().skip(usize::from(is_first)).collect();
            found.insert((table.name.to_string(), counters.chain), entries);
        }
    }
    Ok(found)
}
