//! A story in words, for people.

use std::fmt::Write;
use std::net::IpAddr;

use conntrack::{Edit, Renumbering, Side};
use dataplane::{Disposition, FinalVerdict, Skip};
use host::sighting::Sighting;
use packet::visible::{self, word};
use packet::{L4, Packet, tcp};
use rules::Outcome;
use rules::eval::{self, Alive};
use rules::model::Action;
use rules::nat::Translated;

use super::past::Expired;
use super::story::{Contradiction, FlowStory, SeenAs, Step, Story};
use crate::near::{Misses, NearMiss, asks_for_state};
use crate::report::{duration, ways};
use crate::rules_file::RulesFile;
use crate::spec::Lack;

/// Depth of jumps that columns show.
const DEEPEST: usize = 16;
/// Rules that did not match and stand in a row are counted, not listed, beyond this many.
const SHOWN_IN_A_ROW: usize = 2;

/// What an unknown verdict depends on is counted, not listed, beyond this many.
const MOST_REASONS: usize = 20;

/// `dst now 172.17.0.4:5432`.
pub(super) fn translation_text(side: Side, to: &Translated) -> String {
    let end = if side == Side::Source { "src" } else { "dst" };
    match to {
        Translated::To(IpAddr::V6(address), Some(port)) => format!("{end} now [{address}]:{port}"),
        Translated::To(address, Some(port)) => format!("{end} now {address}:{port}"),
        Translated::To(address, None) => format!("{end} now {address}"),
        Translated::Unknown | Translated::UnknownOrDropped => format!("{end} now not known"),
        Translated::No | Translated::Dropped => format!("{end} stays"),
    }
}

/// A line for the payload and one for the numbers, where they change.
pub(super) fn edit_text(packet: &Packet<'_>, edit: &Edit) -> Vec<String> {
    let payload = edit.text.as_ref().map(|text| {
        let before = packet.read_slice(text.start, text.len).known().unwrap_or_default();
        let words = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (before, after) = (words(before), words(text.text.as_bytes()));
        format!("helper: payload says {after} for {before}, {:+} bytes", text.growth() as i32)
    });
    let numbers = edit.numbers.as_ref().and_then(|numbers| numbers_text(packet, numbers));
    payload.into_iter().chain(numbers).collect()
}

fn numbers_text(packet: &Packet<'_>, numbers: &Renumbering) -> Option<String> {
    let L4::Upper(upper) = packet.headers().l4 else { return None };
    let header = packet.upper::<{ tcp::MIN_HEADER_LEN }>(&upper, 0).known()?;
    let header = tcp::Header::new_checked(&header)?;
    let moved = |from: u32, to: [u8; 4]| u32::from_be_bytes(to).wrapping_sub(from) as i32;
    let sequence = header.sequence();
    let sequence = moved(sequence, numbers.sequence(sequence.to_be_bytes()));
    let acknowledged = header.acknowledgement();
    let acknowledged = match header.flags().contains(tcp::Flags::ACK) {
        true => moved(acknowledged, numbers.acknowledged(acknowledged.to_be_bytes())),
        false => 0,
    };
    Some(format!("helper: sequence {sequence:+}, acknowledgement {acknowledged:+}"))
}

impl Story {
    /// The story in words. `all` lists every rule that did not match, too.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_before(&mut out);
        let _ = self.write_text(&mut out, all);
        let _ = self.misses.as_ref().map(|misses| self.write_near(&mut out, misses));
        visible::text(&out).into_owned()
    }

    /// Whether the story leaves out rules that did not match, unless all are asked for.
    #[must_use]
    pub fn is_abridged(&self) -> bool {
        let missed = |step: &Step| matches!(step, Step::Rule { outcome: Outcome::NO, .. });
        self.steps.windows(SHOWN_IN_A_ROW + 1).any(|run| run.iter().all(missed))
    }

    /// A line for each packet of the conversation before.
    fn write_before(&self, out: &mut String) -> std::fmt::Result {
        for (index, before) in self.before.iter().enumerate() {
            let conclusion = self.conclusion_of(&before.end);
            writeln!(out, "before  {}. {}: {conclusion}", index + 1, before.packet)?;
        }
        Ok(())
    }

    fn write_near(&self, out: &mut String, misses: &Misses) -> std::fmt::Result {
        let Some(file) = self.end.family.and_then(|family| self.report.file(family)) else {
            return Ok(());
        };
        let nearest = misses.nearest(self.is_accepted());
        if nearest.is_empty() {
            return writeln!(
                out,
                "near misses: none: no rule that did not match fails by one test alone"
            );
        }
        writeln!(
            out,
            "near misses, each for one test, those to another verdict first (a rule before one may decide otherwise):"
        )?;
        for miss in nearest {
            let line = file.line(file.rule(miss.at).2.line).1;
            writeln!(out, "  L{line:<5} {}", file.rule_text(miss.at))?;
            writeln!(out, "         {}, {}", miss.gives.words(), were_it(miss))?;
        }
        Ok(())
    }

    /// What its frame is, and which others show its packet.
    fn seen_text(&self, SeenAs { sighting, left }: &SeenAs) -> String {
        let number = |number: u64| self.report.numbers.words(number);
        let what = match sighting {
            Sighting::Unknown => "nothing tells which way it went".to_owned(),
            Sighting::Arrival => "as it came in".to_owned(),
            Sighting::Own => "of the host's own".to_owned(),
            Sighting::Second { of: Some(of) } => {
                format!("shows the packet of #{} again", number(*of))
            }
            Sighting::Second { of: None } => "shows a packet that came before again".to_owned(),
            Sighting::Lower { of: Some(of) } => format!("shows #{} at a device below", number(*of)),
            Sighting::Lower { of: None } => "sent below the host's hooks".to_owned(),
            Sighting::OtherHost => "addressed to another host".to_owned(),
        };
        let left = left.map(|left| format!(", seen leaving as #{}", number(left)));
        what + &left.unwrap_or_default()
    }

    fn write_text(&self, out: &mut String, all: bool) -> std::fmt::Result {
        writeln!(out, "packet  {}", self.packet)?;
        if !self.assumed.is_empty() {
            writeln!(out, "assumed {}", self.assumed.join(", "))?;
        }
        let lacks: Vec<&str> = self.report.lacks.iter().map(|lack| lack.key()).collect();
        if !lacks.is_empty() {
            writeln!(out, "unknown {}: not given", lacks.join(", "))?;
        }
        self.write_path(out, all)
    }

    /// What happened to the packet, from how its frame was seen to its end.
    pub(super) fn write_path(&self, out: &mut String, all: bool) -> std::fmt::Result {
        if let Some(seen) = &self.seen {
            writeln!(out, "frame   {}", self.seen_text(seen))?;
        }
        self.logged.iter().try_for_each(|rule| writeln!(out, "logged by {rule}"))?;
        let Some(file) = self.end.family.and_then(|family| self.report.file(family)) else {
            return writeln!(out, "{}", self.conclusion());
        };
        let mut quiet = 0;
        let depths = self.depths();
        for (index, (step, depth)) in self.steps.iter().zip(depths).enumerate() {
            if let (Step::Rule { outcome: Outcome::NO, .. }, false) = (step, all) {
                let run = self.steps[index..]
                    .iter()
                    .take_while(|s| matches!(s, Step::Rule { outcome: Outcome::NO, .. }))
                    .count();
                if quiet > 0 || run > SHOWN_IN_A_ROW {
                    quiet += 1;
                    if run == 1 {
                        let inner = indent(depth);
                        let rules = format!("… {quiet} rules did not match (--all lists them)");
                        writeln!(out, "  {:inner$}{rules}", "")?;
                        quiet = 0;
                    }
                    continue;
                }
            }
            self.write_step(out, file, step, depth)?;
        }
        if self.untold > 0 {
            writeln!(out, "  … {} more rules are not told", self.untold)?;
        }
        writeln!(out, "{}", self.conclusion())?;
        if self.contradiction.is_some() {
            return Ok(());
        }
        self.write_unknown(out)
    }

    /// What an unknown verdict depends on, and each way to know it once.
    fn write_unknown(&self, out: &mut String) -> std::fmt::Result {
        let reasons = self.report.unknown_places();
        for reason in reasons.iter().take(MOST_REASONS) {
            let line = reason.place.map_or_else(String::new, |(_, line)| format!("L{line} "));
            writeln!(out, "  depends on {line}{}", reason.what)?;
        }
        if let Some(more @ 1..) = reasons.len().checked_sub(MOST_REASONS) {
            writeln!(out, "  … {more} more")?;
        }
        ways(reasons.iter()).iter().try_for_each(|how| writeln!(out, "  {how}"))
    }

    fn write_step(
        &self,
        out: &mut String,
        file: &RulesFile,
        step: &Step,
        depth: usize,
    ) -> std::fmt::Result {
        match step {
            Step::Starts { path, input, output } => {
                let (input, output) = (word(input), word(output));
                writeln!(out, "path    {}, in {input}, out {output}", path.name())
            }
            Step::Enters { table, chain, hook } => {
                let (table, chain) = file.base_chain(*table, *chain, *hook);
                writeln!(out, "{table}/{chain}")
            }
            Step::Rule { at, outcome, alive, refused, remarks } => {
                let (table, chain, rule) = file.rule(*at);
                let inner = indent(depth);
                let result = result(rule, table, *outcome, *alive, refused.as_deref());
                let place =
                    if chain.base.is_some() { String::new() } else { format!("{} ", chain.name) };
                let text = file.text_in_chain(*at);
                let line = file.line(rule.line).1;
                writeln!(out, "  {:inner$}L{line:<5} {place}{text}   {result}", "")?;
                let mut remarks = remarks.iter().map(|remark| word(remark));
                remarks.try_for_each(|remark| writeln!(out, "  {:inner$}       {remark}", ""))
            }
            Step::Policy { table, chain } => {
                let by = eval::By::Policy { table: *table, chain: *chain };
                writeln!(out, "  {}", file.by_text(by))
            }
            Step::Ttl(Some(left)) => writeln!(out, "forward: time to live now {left}"),
            Step::Ttl(None) => writeln!(out, "forward: time to live runs out"),
            Step::Tracked { state, flow: None } => writeln!(out, "conntrack: {state}"),
            Step::Tracked { state, flow: Some(flow) } if flow.begins => {
                let FlowStory { tuple, state: now, expired, .. } = flow;
                writeln!(out, "conntrack: {state}, a new connection, {tuple}: {now}")?;
                expired.map_or(Ok(()), |Expired { last, ago }| {
                    let (last, ago) = (self.report.numbers.words(last), duration(ago));
                    writeln!(out, "  its entry expired {ago} ago, after packet {last}")
                })
            }
            Step::Tracked { state, flow: Some(flow) } => {
                let way = if flow.is_reply { "against" } else { "part of" };
                let FlowStory { born, tuple, state: now, .. } = flow;
                let born = self.report.numbers.words(*born);
                writeln!(
                    out,
                    "conntrack: {state}, {way} the connection of packet {born}, {tuple}: {now}"
                )
            }
            Step::Taken { state } => {
                let why = "not all of its connection was captured (--ct)";
                writeln!(out, "taken   for {state}, which the verdict depends on: {why}")
            }
            Step::Translated { side, to } => {
                writeln!(out, "  nat: {}", translation_text(*side, to))
            }
            Step::Edited(lines) => {
                lines.iter().try_for_each(|line| writeln!(out, "  {}", word(line)))
            }
            Step::Rerouted { path, input, output } => {
                let (input, output) = (word(input), word(output));
                writeln!(out, "path    {} from here on, in {input}, out {output}", path.name())
            }
            Step::Settled { state } => writeln!(out, "conntrack: leaves it {state}"),
            Step::Remark(what) => writeln!(out, "note    {what}"),
        }
    }

    /// The last line: the verdict and what gave it.
    pub(super) fn conclusion(&self) -> String {
        let conclusion = self.conclusion_of(&self.end);
        match &self.contradiction {
            Some(Contradiction { by, what }) if self.end.verdict == FinalVerdict::Unknown => {
                format!("UNKNOWN: {by} contradicts these rules: {what}")
            }
            Some(Contradiction { by, what }) => {
                format!("UNKNOWN: {by} contradicts these rules, which say {conclusion}: {what}")
            }
            None => conclusion,
        }
    }

    /// The end of the story, and what an unknown verdict depends on.
    pub(super) fn decision(&self) -> String {
        match self.depends_on().filter(|_| self.contradiction.is_none()) {
            None => self.conclusion(),
            Some(reasons) => {
                let keys: Vec<&str> = self.lacks().into_iter().map(Lack::key).collect();
                let lacks = match &keys[..] {
                    [] => String::new(),
                    _ => format!(" (not given: {})", keys.join(", ")),
                };
                format!("{}: depends on {reasons}{lacks}", self.conclusion())
            }
        }
    }

    /// What a verdict that is not known depends on of what a described packet lacks.
    pub(crate) fn lacks(&self) -> Vec<Lack> {
        let mut lacks: Vec<Lack> =
            self.report.unknown_places().into_iter().flat_map(|reason| reason.lacks).collect();
        lacks.sort_unstable();
        lacks.dedup();
        lacks
    }

    /// What a verdict that is not known depends on, in a line.
    pub(crate) fn depends_on(&self) -> Option<String> {
        let reasons = self.report.unknown_reasons();
        let shown = |line: &Option<u32>| line.map_or_else(String::new, |line| format!("L{line} "));
        let told = reasons.iter().take(MOST_REASONS);
        let mut told: Vec<String> =
            told.map(|(line, what, _)| format!("{}{what}", shown(line))).collect();
        let more = reasons.len().checked_sub(MOST_REASONS).filter(|more| *more > 0);
        told.extend(more.map(|more| format!("… {more} more")));
        (!told.is_empty()).then(|| told.join(", "))
    }

    fn conclusion_of(&self, end: &Disposition) -> String {
        let word = end.verdict.word().to_uppercase();
        match (self.report.decided_by(end), end.verdict) {
            (Some((0, text)), _) => format!("{word} by {text}"),
            (Some((line, text)), _) => format!("{word} by L{line} {text}"),
            (None, FinalVerdict::Skip(skip)) => {
                format!(
                    "{word}: {}",
                    match skip {
                        Skip::Family => "there are no rules for its family",
                        Skip::Second => "a second sighting of a packet that another frame shows",
                        Skip::Lower => "a packet that the device above it shows, too",
                        Skip::LinkType => "its link type is not known",
                        Skip::OtherHost => "its frame is addressed to another host",
                        Skip::Fragment => "a fragment that waits for others of its packet",
                    }
                )
            }
            (None, FinalVerdict::Accept(_)) => format!("{word}: no chain is attached on its way"),
            (None, _) => word,
        }
    }
}

/// What would have to differ for a rule to match.
fn were_it(miss: &NearMiss) -> String {
    let has = miss.has.as_deref().map(word);
    let unseen = if asks_for_state(&miss.test) {
        " (by the packets before it: those of a capture, or several --packet)"
    } else {
        ""
    };
    match (miss.test.strip_prefix("! "), has) {
        (Some(test), _) => format!("were it not {test}{unseen}"),
        (None, Some(has)) => format!("were it {}, not {has}{unseen}", miss.test),
        (None, None) => format!("were it {}{unseen}", miss.test),
    }
}

/// The result of one rule, in a word or two.
pub(super) fn result(
    rule: &rules::model::Rule,
    table: &rules::model::Table,
    outcome: Outcome,
    alive: Alive,
    refused: Option<&str>,
) -> String {
    if outcome == Outcome::NO {
        return refused.map_or_else(|| "no".to_owned(), |text| format!("no: {text}"));
    }
    let sure = match (outcome, alive) {
        (Outcome::HOT_DROP, _) => return "HOT DROP".to_owned(),
        (Outcome::HIT_DROP, _) => return "MATCH and HOT DROP".to_owned(),
        (Outcome::YES, Alive::Certain) => "MATCH".to_owned(),
        (Outcome::YES, _) => "MATCH if it gets here".to_owned(),
        _ => format!("MAYBE: {}", refused.unwrap_or("not known")),
    };
    match &rule.action {
        Action::Jump(to) | Action::Goto(to) => {
            let chain = table.chains.get(*to as usize).map_or("?", |chain| &chain.name);
            format!("{sure} -> {chain}")
        }
        _ => sure,
    }
}

/// Columns that a rule is indented, compared with rules of built-in chains. Bounded, so that ten thousand nested jumps
/// are no more text than rules.
fn indent(depth: usize) -> usize {
    2 * depth.min(DEEPEST)
}
