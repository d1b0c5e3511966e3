//! [`NftKernel`]: the kernel in a namespace with two TUN devices, or a TAP device and one, under a ruleset that nft loaded.
//!
//! Contract: everything happens on the thread that owns the namespace, and a packet has left the stack when
//! [`NftKernel::send`] returns. A table of our own, [`SENTINEL`], ends what is not to leave.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use rules::model::{Counters, Family};
use serde_json::Value;

use super::super::kernel::{Survivor, wait_for_routes};
use super::super::netns::write_setting;
use super::super::tun::Tun;
use crate::generate::nft::ruleset::{Ending, Line, NftRuleset};
use crate::scene::{Placement, Scene, Wire, serial};

/// Name of the table that ends packets.
pub const SENTINEL: &str = "sentinel";
/// How often a text is tried again without the lines that nft refused.
const ROUNDS: usize = 60;

/// Counters of a ruleset: by family, table and chain, of each rule those in it.
pub type Counted = BTreeMap<(String, String, String), Vec<Vec<Counters>>>;

/// The kernel in a namespace of its own.
#[derive(Debug)]
pub struct NftKernel {
    tun: Tun,
    buffer: Vec<u8>,
}

/// Commands of the table that keeps packets in, and the host from speaking.
#[must_use]
pub fn sentinel(ending: Ending) -> String {
    let chain = |hook: &str, priority: i32| {
        format!(
            "add chain inet {SENTINEL} {hook} {{ type filter hook {hook} priority {priority} ; policy drop ; }}\n"
        )
    };
    let mut text = format!("add table inet {SENTINEL}\n");
    text += &chain("output", -500);
    match ending {
        Ending::Early | Ending::Kept => text += &(chain("input", 2000) + &chain("forward", 2000)),
        Ending::Forwarded => text += &chain("input", 2000),
        // What stays ends at the host, which has nobody for it.
        Ending::Translated => {}
    }
    text
}

impl NftKernel {
    /// Sets the two devices up in the calling thread's namespace, which must be fresh.
    pub fn new(wire: Wire) -> io::Result<Self> {
        let scene = Scene::new(Family::Ipv4, wire, Placement::Forward);
        let tun = Tun::new(&scene)?;
        write_setting("ipv6/auto_flowlabels", "0")?;
        wait_for_routes(scene)?;
        wait_for_routes(Scene { family: Family::Ipv6, ..scene })?;
        Ok(Self { tun, buffer: vec![0; 1 << 16] })
    }

    /// Loads a ruleset in place of what was there, without what nft refuses of it; its refusals.
    pub fn load(&self, ruleset: &mut NftRuleset, ending: Ending) -> io::Result<Vec<String>> {
        let before = format!("flush ruleset\n{}", sentinel(ending));
        let first = before.lines().count();
        let mut refusals = Vec::new();
        for _ in 0..ROUNDS {
            let said = nft_load(&format!("{before}{}", ruleset.text()))?;
            if said.is_empty() {
                if let Err(error) = self.counters() {
                    refusals.push(error.to_string());
                    *ruleset = NftRuleset::default();
                    continue;
                }
                return Ok(refusals);
            }
            let lines = ruleset.lines();
            let mut refused: Vec<Line> = Vec::new();
            for (number, what) in refused_lines(&said) {
                let Some((line, text)) = number.checked_sub(first + 1).and_then(|at| lines.get(at))
                else {
                    return Err(io::Error::other(format!("nft refuses: {said}")));
                };
                if !refused.contains(line) {
                    refused.push(*line);
                    refusals.push(format!("{what}: {text}"));
                }
            }
            if refused.is_empty() || refused.contains(&Line::Frame) {
                // nft 1.0.6 ends by an assertion now and then: nothing is left to compare.
                refusals.push(said);
                *ruleset = NftRuleset::default();
            }
            take_out(ruleset, &refused);
        }
        Err(io::Error::other("nft refuses too much"))
    }

    /// Hands the kernel a packet.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet)
    }

    /// The packets that left by the far device since the last call.
    pub fn survivors(&mut self) -> io::Result<Vec<Survivor>> {
        let mut found = Vec::new();
        while let Some(len) = self.tun.receive(&mut self.buffer)? {
            let bytes = &self.buffer[..len];
            if let Some(serial) = serial(bytes) {
                found.push(Survivor { serial, mark: None, bytes: bytes.to_vec() });
            }
        }
        Ok(found)
    }

    /// The counters of every rule.
    pub fn counters(&self) -> io::Result<Counted> {
        let output = Command::new("nft").args(["-j", "list", "ruleset"]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let listing: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
            io::Error::other(format!("nft -j list: {error} {said} {}", output.status))
        })?;
        let objects = listing["nftables"].as_array();
        let mut counted = Counted::new();
        for rule in objects.into_iter().flatten().filter_map(|object| object.get("rule")) {
            let word = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
            let counters = rule["expr"].as_array().into_iter().flatten();
            let counters = counters.filter_map(|expr| expr.get("counter"));
            let counters = counters.filter(|counter| counter.is_object()).map(|counter| {
                let number = |key: &str| counter[key].as_u64().unwrap_or_default();
                Counters { packets: number("packets"), bytes: number("bytes") }
            });
            let key = (word("family"), word("table"), word("chain"));
            counted.entry(key).or_default().push(counters.collect());
        }
        Ok(counted)
    }

    /// The ruleset as nft lists it, as text or as JSON.
    pub fn listing(&self, json: bool) -> io::Result<String> {
        let args: &[&str] = if json { &["-j", "list", "ruleset"] } else { &["list", "ruleset"] };
        let output = Command::new("nft").args(args).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// What `nft -f` says of a text; nothing if it took it.
fn nft_load(text: &str) -> io::Result<String> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::new());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(if said.is_empty() { "it failed without a word".to_owned() } else { said })
}

/// Line numbers, from 1, and reasons of nft's errors.
fn refused_lines(said: &str) -> Vec<(usize, &str)> {
    let found = said.lines().filter_map(|line| {
        let (place, what) = line.split_once(": Error: ")?;
        let number = place.split(':').nth(1)?.parse().ok()?;
        Some((number, what))
    });
    found.collect()
}

/// Takes lines out of a ruleset, sets as declarations that are then missing.
fn take_out(ruleset: &mut NftRuleset, refused: &[Line]) {
    for (t, table) in ruleset.tables.iter_mut().enumerate() {
        let names: Vec<String> = table.sets.iter().map(|(name, _)| name.clone()).collect();
        let mut set = 0;
        table.sets.retain(|_| {
            set += 1;
            !refused.contains(&Line::Set(t, set - 1))
        });
        let gone = |part: &String| {
            names.contains(part) && !table.sets.iter().any(|(name, _)| name == part)
        };
        for (c, chain) in table.chains.iter_mut().enumerate() {
            let mut number = 0;
            chain.rules.retain(|rule| {
                number += 1;
                let reads_gone = rule.parts.iter().flat_map(|part| &part.sets).any(gone);
                !reads_gone && !refused.contains(&Line::Rule(t, c, number - 1))
            });
        }
    }
}

/// What this oracle needs and this machine lacks, if anything.
#[must_use]
pub fn lacking() -> Option<String> {
    super::super::netns::in_fresh(|| {
        let kernel = NftKernel::new(Wire::Tun)?;
        kernel.load(&mut NftRuleset::default(), Ending::Kept).map(drop)
    })
    .err()
    .map(|error| error.to_string())
}
