//! The kernel's tools on the same work, in a network namespace for each that ends with its thread.
//!
//! The walk is timed by datagrams over loopback: a socket sends one to itself and waits for it, which runs INPUT
//! once. What that takes without rules is taken off. Everything else is whole commands, from start to end.

mod link;
mod ping;
mod tool;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::layouts::Kind;
use rules::model::Family;
use serde_json::json;
use tempfile::TempDir;

use link::Loop;
use tool::{BackEnd, Tool, added, finish, nft_bans};

use super::clock;
use super::count::Counting;
use super::plan::{Part, Plan, params, row};
use super::update::{self, Live, Site};
use super::walk::{Laying, linear_name};
use super::workload::Linear;
use crate::bench::document::{Peer, Row, Runs};
use crate::bench::limit;
use crate::bench::rows::Rows;
use crate::oracle::{counters, netns};

/// Everything that has peers.
pub(super) fn all(tamis: &Path, plan: Plan, out: &mut Rows) -> io::Result<()> {
    let scratch = TempDir::new()?;
    for family in [Family::Ipv6, Family::Ipv4] {
        for tool in [Tool::Legacy, Tool::Compat, Tool::Nft] {
            let back = BackEnd { tool, family };
            let why = match plan.quick && tool != Tool::Legacy {
                true => Some("its 100,000 rules take too long for --quick".to_owned()),
                false => back.lacking(),
            };
            if let Some(why) = why {
                out.lacks(back.name(), why);
                continue;
            }
            let bench = Bench { tamis, plan, back, scratch: scratch.path() };
            bench.run(out)?;
        }
    }
    Ok(())
}

/// One peer being measured.
struct Bench<'p> {
    tamis: &'p Path,
    plan: Plan,
    back: BackEnd,
    scratch: &'p Path,
}

impl Bench<'_> {
    fn run(&self, out: &mut Rows) -> io::Result<()> {
        let family = self.back.family;
        for is_match in [true, false] {
            let linear = Linear::study(family, is_match);
            let files = self.write(linear)?;
            if self.has(Part::Linear, out) {
                self.keep(out, netns::in_fresh(|| self.linear(linear, &files)));
            }
            let has_drivers = is_match && family == Family::Ipv6 && self.back.tool != Tool::Compat;
            if has_drivers && self.has(Part::Ping, out) {
                self.keep(out, ping::rows(self.back, self.plan.quick, self.scratch));
            }
            if is_match && self.has(Part::Load, out) {
                self.keep(out, netns::in_fresh(|| self.load(&files)));
            }
            if is_match && self.has(Part::Memory, out) {
                self.keep(out, netns::in_fresh(|| self.memory(linear, &files)));
            }
            if !is_match && family == Family::Ipv6 {
                self.changes(linear, &files, out);
            }
        }
        let long = Linear { chains: 1, rules: 100_000, ..Linear::study(family, false) };
        if family == Family::Ipv6 && !self.plan.quick && self.has(Part::Update, out) {
            let files = self.write(long)?;
            self.keep(out, netns::in_fresh(|| self.update(long, &files)));
        }
        Ok(())
    }

    fn changes(&self, linear: Linear, files: &Files, out: &mut Rows) {
        if self.has(Part::Update, out) {
            self.keep(out, netns::in_fresh(|| self.update(linear, files)));
        }
        if self.has(Part::Bulk, out) {
            self.keep(out, netns::in_fresh(|| self.bulk(linear, files)));
        }
    }

    /// Whether a part is asked for, and there is time for it.
    fn has(&self, part: Part, out: &mut Rows) -> bool {
        self.plan.has(part) && out.begins(self.back.name())
    }

    /// Rows, or why there are none.
    fn keep(&self, out: &mut Rows, found: io::Result<Vec<Row>>) {
        match found {
            Ok(rows) => out.extend(rows),
            Err(error) => {
                let why = error.to_string();
                out.lacks(self.back.name(), why);
            }
        }
    }

    /// The rules as each side reads them, and a capture of one packet.
    fn write(&self, linear: Linear) -> io::Result<Files> {
        let file = |name: &str| self.scratch.join(name);
        let files =
            Files { ours: file("rules"), theirs: file("peer-rules"), capture: file("one.pcap") };
        fs::write(&files.ours, linear.text())?;
        fs::write(&files.theirs, self.back.text(linear))?;
        fs::write(&files.capture, capture(&linear.packet()))?;
        Ok(files)
    }

    fn runs(&self) -> usize {
        if self.plan.quick { 3 } else { 5 }
    }

    fn theirs(&self, command: &mut Command) -> io::Result<f64> {
        let (seconds, done) = clock::once(|| finish(command, self.scratch));
        done.map(|()| seconds)
    }

    /// A row of ours beside theirs.
    fn pair(&self, row: Row, theirs: Vec<f64>) -> Row {
        let theirs = Runs::of(theirs);
        Row { peer: Some(Peer::of(self.back.name(), row.runs, theirs)), ..row }
    }

    fn linear(&self, linear: Linear, files: &Files) -> io::Result<Vec<Row>> {
        let link = Loop::new(linear.family)?;
        let bare = Runs::of((0..5).map(|_| link.seconds()).collect::<io::Result<_>>()?).value;
        self.theirs(&mut self.back.load(&files.theirs, false))?;
        let laying = Laying::new(linear, Kind::PackedChain);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in limit::rounds(self.plan.runs()) {
            ours.push(laying.nanos(Counting::Local));
            theirs.push((link.seconds()? - bare) * 1e9 / linear.run_per_packet() as f64);
        }
        self.check(linear)?;
        let params = params(json!({ "rules": linear.chains * linear.rules, "counters": "local" }));
        let name = linear_name(linear);
        let ours = row(name, Kind::PackedChain.name(), params, Runs::of(ours), "ns/rule");
        Ok(vec![self.pair(ours, theirs)])
    }

    /// The kernel's counters say whether it did the work; those of nf_tables are taken on trust.
    fn check(&self, linear: Linear) -> io::Result<()> {
        if self.back.tool != Tool::Legacy {
            return Ok(());
        }
        let chains = counters::Reader::open(linear.family)?.read("filter")?;
        let last = chains.iter().find(|chain| chain.chain == format!("c{}", linear.chains - 1));
        let entries = last.map(|chain| chain.entries.as_slice());
        match entries {
            Some([.., rule, end]) if end.packets > 0 && (rule.packets > 0) == linear.is_match => {
                Ok(())
            }
            _ => Err(io::Error::other("the datagrams did not run the rules")),
        }
    }

    fn load(&self, files: &Files) -> io::Result<Vec<Row>> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in limit::rounds(self.runs()) {
            ours.push(self.ours(files)?);
            theirs
                .push(netns::in_fresh(|| self.theirs(&mut self.back.load(&files.theirs, false)))?);
        }
        let family = if self.back.family == Family::Ipv6 { "v6" } else { "v4" };
        let params = params(json!({ "rules": 100_000, "family": family, "of": "whole command" }));
        let ours = row("rules.load", "tamis replay", params, Runs::of(ours), "s");
        Ok(vec![self.pair(ours, theirs)])
    }

    /// Seconds of a whole `tamis` that reads the rules and evaluates one packet.
    fn ours(&self, files: &Files) -> io::Result<f64> {
        let mut command = Command::new(self.tamis);
        let family = if self.back.family == Family::Ipv6 { "ip6" } else { "ip" };
        command.args(["replay", "--family", family]).arg(&files.ours).arg(&files.capture);
        let (seconds, done) = clock::once(|| finish(&mut command, self.scratch));
        done.map(|()| seconds)
    }

    /// The blob that the kernel holds, and a counter for each processor.
    fn memory(&self, linear: Linear, files: &Files) -> io::Result<Vec<Row>> {
        if self.back.tool != Tool::Legacy {
            let why = "what the kernel holds for one ruleset of nf_tables cannot be read";
            return Err(io::Error::other(why));
        }
        self.theirs(&mut self.back.load(&files.theirs, false))?;
        let reader = counters::Reader::open(linear.family)?;
        let blob = reader.size("filter")?;
        let rules = linear.chains * linear.rules;
        let theirs = blob as f64 / rules as f64 + 16.0;
        let mut ours = Rows::kept();
        super::memory::linear_of(linear.family, &mut ours);
        let is = |row: &&Row| row.name == "rules.memory" && row.engine == Kind::PackedChain.name();
        let ours = ours.rows().iter().filter(is).cloned();
        Ok(ours.map(|row| self.pair(row, vec![theirs])).collect())
    }

    fn update(&self, linear: Linear, files: &Files) -> io::Result<Vec<Row>> {
        self.theirs(&mut self.back.load(&files.theirs, false))?;
        let site = Site::of(linear);
        let mut live = Live::new(&linear.ruleset());
        let mut theirs = [const { Vec::new() }; 3];
        let mut whole = Vec::new();
        for _ in limit::rounds(self.runs()) {
            for (seconds, theirs) in self.three(&site)?.into_iter().zip(&mut theirs) {
                theirs.push(seconds);
            }
            whole.push(self.ours(files)?);
        }
        let ours = update::single(self.plan, &mut live, &site);
        let mut rows = Vec::new();
        for ((name, ours), theirs) in update::NAMES.into_iter().zip(ours).zip(&theirs) {
            let ours = row(name, Kind::PackedChain.name(), update::site_params(&site), ours, "s");
            rows.push(self.pair(ours, theirs.clone()));
        }
        let whole =
            row(update::NAMES[0], "tamis replay", update::site_params(&site), Runs::of(whole), "s");
        rows.push(self.pair(whole, std::mem::take(&mut theirs[0])));
        Ok(rows)
    }

    /// Seconds of an append, a delete and a replacement, as single commands.
    fn three(&self, site: &Site) -> io::Result<[f64; 3]> {
        let Site { chain, middle, .. } = site;
        let rule = site.rule();
        if self.back.tool == Tool::Nft {
            return self.three_nft(site);
        }
        let append = self.theirs(&mut self.back.change(&format!("-A {chain} {rule}")))?;
        let delete = self.theirs(&mut self.back.change(&format!("-D {chain} {rule}")))?;
        let replace = self.theirs(&mut self.back.change(&format!("-R {chain} {middle} {rule}")))?;
        Ok([append, delete, replace])
    }

    fn three_nft(&self, site: &Site) -> io::Result<[f64; 3]> {
        let at = format!("ip6 filter {}", site.chain);
        let rule = "ip6 saddr 2001:db8::66 ip6 daddr 2001:db8::99 counter";
        let append = self.theirs(&mut self.back.change(&format!("add rule {at} {rule}")))?;
        let handle = added(&at, rule)?;
        let changed = format!("replace rule {at} handle {handle} {rule} drop");
        let replace = self.theirs(&mut self.back.change(&changed))?;
        let handle = added(&at, rule)?;
        let gone = format!("delete rule {at} handle {handle}");
        let delete = self.theirs(&mut self.back.change(&gone))?;
        Ok([append, delete, replace])
    }

    fn bulk(&self, linear: Linear, files: &Files) -> io::Result<Vec<Row>> {
        self.theirs(&mut self.back.load(&files.theirs, false))?;
        let site = Site::of(linear);
        let bans = self.scratch.join("bans");
        let mut file = fs::File::create(&bans)?;
        let text = site.bans();
        match self.back.tool {
            Tool::Nft => file.write_all(nft_bans(&text, &site.chain).as_bytes())?,
            _ => file.write_all(text.as_bytes())?,
        }
        // Each run adds as many again: a second removal would have to find them one by one.
        let theirs = (0..3).map(|_| self.theirs(&mut self.back.load(&bans, true)));
        let theirs = theirs.collect::<io::Result<_>>()?;
        let mut live = Live::new(&linear.ruleset());
        let ours = update::bans(self.plan, &mut live, &site);
        let ours =
            row("rules.bulk", Kind::PackedChain.name(), update::bulk_params(&site), ours, "s");
        Ok(vec![self.pair(ours, theirs)])
    }
}

/// Paths of one workload.
struct Files {
    ours: PathBuf,
    theirs: PathBuf,
    capture: PathBuf,
}

/// A capture of one packet: pcap, bare IP.
fn capture(packet: &[u8]) -> Vec<u8> {
    const RAW: u32 = 101;
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, RAW, 0, 0] {
        bytes.extend(u32::to_le_bytes(word));
    }
    let len = packet.len() as u32;
    bytes.extend([len.to_le_bytes(), len.to_le_bytes()].concat());
    bytes.extend(packet);
    bytes
}
