//! Frames through bridge rules and ARP packets through ARP rules, in the kernel and in tamis.
//!
//! [`bridge`] asks ebtables-nft on a bridge between two veth pairs: what comes out at the far end, byte
//! by byte, and every rule's counters. [`arp`] asks arptables-legacy, loaded command by command (its
//! restore command is none), on a veth end: every rule's counters and the policy's.
//!
//! The kernel here cannot be asked about broute, `--logical-in`, `--logical-out` and string matches on bridges.
//! Counters are read after each batch. Source of the recipes: measured on Linux 6.18.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::layouts::Kind;
use dataplane::{
    Arrival, Config, Counters as Tallies, Evaluator, FinalVerdict, Observer, Path, Program,
};
use packet::Link;
use rules::eval::{self, Cause, RuleRef};
use rules::model::{Counters, Family, Ruleset};
use rules::save::{LoadOptions, load, print_ruleset};
use rules::{Backend, Transit};

use super::ebtables::{Ebtables, Found, legacy_counters, nft_counters, parse_counters};
use super::netns::{device_index, feed, in_fresh, ip, settle_device, write_setting};
use super::sys;
use crate::generate::frames::Frames;
use crate::layouts::{Layouts, name_of};

/// Frames for each ruleset, and between two readings of the counters.
pub(super) const FRAMES: usize = 4000;
pub(super) const BATCH: usize = 1000;
/// On a busy machine a softirq may still be under way when a frame was sent.
pub(super) const SOFTIRQ: Duration = Duration::from_millis(200);

/// What a campaign adds up to.
#[derive(Debug, Clone, Default)]
pub struct FrameSummary {
    /// Rulesets compared.
    pub rulesets: u64,
    /// Frames compared.
    pub frames: u64,
    /// Of these, frames that were let through.
    pub passed: u64,
    /// Differences, each with its rules.
    pub failures: Vec<String>,
}

/// What the bridge oracle needs and this machine lacks, if anything.
#[must_use]
pub fn lacks_bridge(tool: Ebtables) -> Option<String> {
    let rules = "*filter\n:FORWARD ACCEPT\n-A FORWARD -p IPv4 --ip-src 10.0.0.1 -j DROP\n";
    in_fresh(|| {
        set_up_bridge()?;
        tool.restore(rules)
    })
    .err()
    .map(|error| error.to_string())
}

/// The same for ARP.
#[must_use]
pub fn lacks_arp() -> Option<String> {
    in_fresh(|| {
        set_up_arp()?;
        arptables("-A INPUT --opcode 1")
    })
    .err()
    .map(|error| error.to_string())
}

/// Compares at least `frames` frames under drawn bridge rules.
pub fn bridge(
    seed: u64,
    frames: u64,
    layouts: Layouts,
    tool: Ebtables,
) -> io::Result<FrameSummary> {
    campaign(seed, frames, |frames, summary| {
        let layout = layouts.of(summary.rulesets);
        let drawn = read(Family::Bridge, &frames.bridge_rules())?;
        // The tool gets what tamis prints, so that this is tried too.
        let printed = tool.taken(&print_ruleset(&drawn, false, |_, _, _| Counters::default()));
        let rules = Ruleset { backend: tool.backend(), ..read(Family::Bridge, &printed)? };
        let rules = Arc::new(rules);
        let told = in_fresh(|| {
            let (near, far) = set_up_bridge()?;
            tool.restore(&printed)?;
            let counters = match tool {
                Ebtables::Nft => nft_counters,
                Ebtables::Legacy => legacy_counters,
            };
            let trial = Trial { rules: &rules, layout, near, far: Some(far), counters };
            trial.run(|| frames.frame(), summary)
        });
        Ok(told
            .unwrap_or_else(|error| Some(error.to_string()))
            .map(|what| format!("{}: {what}\n{printed}", name_of(layout))))
    })
}

/// Compares at least `frames` packets under drawn ARP rules.
pub fn arp(seed: u64, frames: u64, layouts: Layouts) -> io::Result<FrameSummary> {
    campaign(seed, frames, |frames, summary| {
        let layout = layouts.of(summary.rulesets);
        let lines = frames.arp_rules();
        let text: String = lines.iter().map(|rule| format!("-A INPUT {rule}\n")).collect();
        let text = format!("*filter\n:INPUT ACCEPT\n{text}");
        let rules = Arc::new(read(Family::Arp, &text)?);
        let told = in_fresh(|| {
            let near = set_up_arp()?;
            for line in &lines {
                arptables(&format!("-A INPUT {}", legacy(line)))?;
            }
            let trial = Trial { rules: &rules, layout, near, far: None, counters: arp_counters };
            trial.run(|| frames.arp_frame(), summary)
        });
        Ok(told
            .unwrap_or_else(|error| Some(error.to_string()))
            .map(|what| format!("{}: {what}\n{text}", name_of(layout))))
    })
}

pub(super) fn campaign(
    seed: u64,
    frames: u64,
    mut one: impl FnMut(&mut Frames, &mut FrameSummary) -> io::Result<Option<String>>,
) -> io::Result<FrameSummary> {
    let mut summary = FrameSummary::default();
    while summary.frames < frames && summary.failures.len() < 4 {
        let number = summary.rulesets;
        let mut draw = Frames::new(seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        summary.rulesets += 1;
        if let Some(told) = one(&mut draw, &mut summary)? {
            summary.failures.push(format!("ruleset {number}: {told}"));
        }
    }
    Ok(summary)
}

pub(super) fn read(family: Family, text: &str) -> io::Result<Ruleset> {
    let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
    let loaded = load(text, &options);
    let mut rules = loaded.map_err(|error| io::Error::other(format!("{error}\n{text}")))?.ruleset;
    if family == Family::Bridge {
        rules.evaluate_as(Backend::Nft);
    }
    Ok(rules)
}

/// `s0 = p0 - br0 - p1 = d0`; the far ends' sockets.
pub(super) fn set_up_bridge() -> io::Result<(File, File)> {
    ip(
        "link add br0 address 0a:00:00:00:00:01 type bridge stp_state 0 mcast_snooping 0 forward_delay 0\n\
        link add s0 address 0a:00:00:00:00:02 type veth peer name p0 address 0a:00:00:00:00:03\n\
        link add d0 address 0a:00:00:00:00:04 type veth peer name p1 address 0a:00:00:00:00:05\n",
    )?;
    for device in ["br0", "s0", "p0", "p1", "d0"] {
        write_setting(&format!("ipv6/conf/{device}/disable_ipv6"), "1")?;
    }
    for family in ["iptables", "ip6tables", "arptables"] {
        // Where bridge netfilter is not built, nothing calls the others.
        let _ = write_setting(&format!("bridge/bridge-nf-call-{family}"), "0");
    }
    ip("link set p0 master br0\nlink set p1 master br0\n\
        link set p0 type bridge_slave learning off\nlink set p1 type bridge_slave learning off\n\
        link set s0 arp off up\nlink set d0 arp off up\nlink set p0 up\nlink set p1 up\n\
        link set br0 arp off up\n")?;
    let socket = |name| sys::packet_socket(device_index(name)?);
    Ok((socket("s0")?, socket("d0")?))
}

/// `s0 = r0`, which has an address; the socket of `s0`.
fn set_up_arp() -> io::Result<File> {
    ip("link add s0 type veth peer name r0 address 02:00:00:00:00:02\n")?;
    for device in ["s0", "r0"] {
        settle_device(device)?;
        write_setting(&format!("ipv6/conf/{device}/disable_ipv6"), "1")?;
    }
    ip("link set s0 arp off up\nlink set r0 up\naddr add 10.255.0.1/24 dev r0\n")?;
    sys::packet_socket(device_index("s0")?)
}

fn arptables(words: &str) -> io::Result<()> {
    feed(Command::new("arptables-legacy").args(words.split_whitespace()), "")
}

/// The spelling of the old tool: its own names, and `!` after its option.
fn legacy(rule: &str) -> String {
    // It does not test by itself what newer tools do.
    let mut words = vec!["--h-length".to_owned(), "6".to_owned()];
    if !rule.contains("--h-type") {
        words.extend(["--h-type".to_owned(), "1".to_owned()]);
    }
    let mut invert = false;
    for word in rule.split(' ') {
        match word {
            "!" => invert = true,
            option if option.starts_with('-') => {
                words.push(
                    option
                        .replace("--src-mac", "--source-mac")
                        .replace("--dst-mac", "--destination-mac"),
                );
                if std::mem::take(&mut invert) {
                    words.push("!".to_owned());
                }
            }
            value => words.push(value.to_owned()),
        }
    }
    words.join(" ")
}

/// `… , pcnt=3 -- bcnt=84` lines of a listing.
fn arp_counters() -> io::Result<Found> {
    let output = Command::new("arptables-legacy").args(["-L", "INPUT", "-v", "-n"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rules = text.lines().filter_map(|line| line.split_once("pcnt="));
    let counters = rules.map(|(_, counters)| parse_counters(counters, "-- bcnt=")).collect();
    Ok(Found::from([(("filter".to_owned(), "INPUT".to_owned()), counters)]))
}

/// Counts what tamis hits.
struct Observed {
    tallies: Tallies,
    unknown: Option<String>,
}

impl eval::Observer for Observed {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.tallies.hit_slot(slot, certain, transit.packet.len() as u64, transit.time);
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.unknown.get_or_insert_with(|| format!("{at:?}: {cause:?}"));
    }
}

impl Observer for Observed {}

struct Trial<'r> {
    rules: &'r Arc<Ruleset>,
    layout: Option<Kind>,
    near: File,
    /// Where frames come out, if they do.
    far: Option<File>,
    counters: fn() -> io::Result<Found>,
}

impl Trial<'_> {
    fn run(
        mut self,
        mut draw: impl FnMut() -> Vec<u8>,
        summary: &mut FrameSummary,
    ) -> io::Result<Option<String>> {
        let is_bridge = self.far.is_some();
        let path = if is_bridge { Path::Forward } else { Path::Input };
        let reference = self.layout.is_none();
        let config = Config { path: Some(path), reference, ..Config::default() };
        let rules = self.rules;
        let program = Program::new([Arc::clone(rules)], config);
        let mut evaluator = Evaluator::new(&program);
        let mut observed = Observed { tallies: Tallies::of(rules), unknown: None };
        let [input, output] = if is_bridge { ["p0", "p1"] } else { ["r0", "r0"] };
        for number in 1..=FRAMES {
            let frame = draw();
            self.near.write_all(&frame)?;
            let mut ours = frame.clone();
            let arrival = Arrival {
                input: Some(input),
                output: Some(output),
                ..Arrival::new(number as u64, Link::Ethernet, frame.len())
            };
            let end = evaluator.handle(&mut ours, &arrival, &mut observed).outcome.end;
            let accepts = matches!(end.verdict, FinalVerdict::Accept(_));
            summary.frames += 1;
            summary.passed += u64::from(accepts);
            let mut what = match end.verdict {
                FinalVerdict::Unknown => Some(format!("tamis cannot tell: {:?}", observed.unknown)),
                _ => self.far_differs(accepts.then_some(&ours))?,
            };
            if what.is_none() && number % BATCH == 0 {
                what = self.counters_differ(&observed)?;
            }
            if let Some(what) = what {
                let path = crate::hex::hex(&frame);
                return Ok(Some(format!("frame {number}: {what}\n{path}")));
            }
        }
        Ok(None)
    }

    /// What comes out at the far end, against what tamis lets through.
    fn far_differs(&mut self, expected: Option<&Vec<u8>>) -> io::Result<Option<String>> {
        let Some(far) = &mut self.far else { return Ok(None) };
        let mut buffer = vec![0; 1 << 12];
        let mut came = receive(far, &mut buffer)?;
        if came.is_none() && expected.is_some() {
            thread::sleep(SOFTIRQ);
            came = receive(far, &mut buffer)?;
        }
        // The packet socket sees frames without their tag.
        let expected = expected.map(|frame| match frame.get(12..14) {
            Some([0x81, 0]) => [&frame[..12], &frame[16..]].concat(),
            _ => frame.clone(),
        });
        Ok(match (expected, came) {
            (None, None) => None,
            (Some(expected), Some(came)) if expected == came => None,
            (expected, came) => {
                let [ours, theirs] =
                    [expected, came].map(|frame| frame.map(|f| crate::hex::hex(&f)));
                Some(format!("tamis {ours:?}\nkernel {theirs:?}"))
            }
        })
    }

    fn counters_differ(&self, observed: &Observed) -> io::Result<Option<String>> {
        let differs = self.compare_counters(observed)?;
        if differs.is_none() {
            return Ok(None);
        }
        thread::sleep(SOFTIRQ);
        self.compare_counters(observed)
    }

    fn compare_counters(&self, observed: &Observed) -> io::Result<Option<String>> {
        let kernel = (self.counters)()?;
        for (t, table) in self.rules.tables.iter().enumerate() {
            for (c, chain) in table.chains.iter().enumerate() {
                let key = (table.name.to_string(), chain.name.to_string());
                let theirs = kernel.get(&key).map(Vec::as_slice).unwrap_or_default();
                for r in 0..chain.rules.len() {
                    let at = RuleRef { table: t as u32, chain: c as u32, rule: r as u32 };
                    let hits = observed.tallies.rule(at);
                    let ours = Counters { packets: hits.packets, bytes: hits.bytes };
                    if theirs.get(r) != Some(&ours) {
                        let theirs = theirs.get(r);
                        return Ok(Some(format!(
                            "{key:?} {}: tamis {ours}, kernel {theirs:?}",
                            r + 1
                        )));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// One frame that came out, if there is one.
pub(super) fn receive(far: &mut File, buffer: &mut [u8]) -> io::Result<Option<Vec<u8>>> {
    match far.read(buffer) {
        Ok(len) => Ok(Some(buffer[..len].to_vec())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
