//! The original rules text as a coverage report: every line as it was written, in its margin what the
//! replay counted, as the kernel counts.
//!
//! Lines stand in blocks that a browser lays out only when they come near the screen, so that long rules
//! scroll at once. Filters are radio buttons and a style sheet: they work without scripts. A text of more than
//! [`PACKED`] lines is packed ([`super::packed`]), and a script does both.

use std::collections::{HashMap, HashSet};
use std::fmt::{Result, Write};

use dataplane::Counters;
use dataplane::counters::HitCount;

use super::edits::Lines;
use super::links::Links;
use super::markup::{anchor, escape};
use super::packed::write_packed;
use crate::report::text::number;
use crate::rules_file::RulesFile;
use crate::time_text::time_text;

/// Lines of a block.
const BLOCK: usize = 64;
/// Lines beyond which a text is packed.
const PACKED: usize = 10_000;
/// Characters of a rule on one line of a wide screen: the height of a block that is not laid out yet is
/// guessed by it.
const COLUMNS: usize = 110;

/// What the margin shows for one line of the text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Margin {
    tally: HitCount,
    /// Whether rules stand on the line; else it is a policy's.
    rule: bool,
}

/// How much each filter shows: lines with rules, or rows of the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Shown {
    all: usize,
    hit: usize,
    never: usize,
    unknown: usize,
    edited: usize,
}

/// Lines of a text that another text does not have.
pub(super) struct Revision {
    /// The class of those lines.
    pub(super) class: &'static str,
    /// Their numbers.
    pub(super) lines: Lines,
}

/// Packets that change verdict by a line.
pub(super) struct Effect {
    /// The first group of changes that has it.
    pub(super) first: usize,
    pub(super) packets: u64,
}

/// One rules file with what was counted on its lines.
pub(super) struct Coverage {
    /// Index of the text on the page.
    text: usize,
    margins: HashMap<u32, Margin>,
    links: Links,
    /// Most packets of a line.
    most: u64,
    revision: Option<Revision>,
    effects: HashMap<u32, Effect>,
    /// Lines whose packets stand in a table above.
    with_rows: HashSet<u32>,
    /// Why lines may have been hit.
    maybes: HashMap<u32, String>,
}

/// What was counted, by line: rules (a line with address lists made several) and policies.
fn margins(file: &RulesFile, counters: &Counters) -> HashMap<u32, Margin> {
    let mut margins: HashMap<u32, Margin> = HashMap::new();
    for (at, _, _, rule) in file.rules() {
        let margin = margins.entry(rule.line).or_default();
        margin.add(counters.rule(at));
        margin.rule = true;
    }
    for (t, table) in file.ruleset.tables.iter().enumerate() {
        for (c, chain) in table.chains.iter().enumerate() {
            if chain.base.is_some() && chain.line > 0 {
                let margin = margins.entry(chain.line).or_default();
                margin.add(counters.policy(t as u32, c as u32));
            }
        }
    }
    margins
}

impl Margin {
    fn add(&mut self, tally: HitCount) {
        let sum = &mut self.tally;
        sum.packets += tally.packets;
        sum.bytes += tally.bytes;
        sum.maybe += tally.maybe;
        sum.first = sum.first.into_iter().chain(tally.first).min();
        sum.last = sum.last.max(tally.last);
    }

    /// The class of its line: what it counted.
    fn class(&self) -> &'static str {
        match (self.rule, self.tally.packets, self.tally.maybe) {
            (false, 0, 0) => "",
            (_, 1.., 0) => " hit",
            (_, 1.., _) => " hit may",
            (_, 0, 1..) => " may",
            (true, 0, 0) => " never",
        }
    }
}

impl Shown {
    fn lines(margins: &HashMap<u32, Margin>) -> Self {
        let mut lines = Self::default();
        for margin in margins.values().filter(|margin| margin.rule) {
            lines.add(margin.class(), 1);
        }
        lines
    }

    /// A line of this class, as the style sheet's filters take it.
    fn add(&mut self, class: &str, amount: usize) {
        let context = class == " table";
        self.all += amount;
        self.hit += if context || class.starts_with(" hit") { amount } else { 0 };
        self.never += if context || class == " never" { amount } else { 0 };
        let unknown = context || class.ends_with("may");
        self.unknown += if unknown { amount } else { 0 };
    }
}

impl Coverage {
    pub(super) fn of(
        text: usize,
        file: &RulesFile,
        counters: &Counters,
        revision: Option<Revision>,
        effects: HashMap<u32, Effect>,
        with_rows: HashSet<u32>,
        maybes: HashMap<u32, String>,
    ) -> Self {
        let margins = margins(file, counters);
        let most = margins.values().map(|margin| margin.tally.packets).max().unwrap_or(0);
        let links = Links::of(file);
        Self { text, margins, links, most, revision, effects, with_rows, maybes }
    }

    /// The tools, then the text.
    pub(super) fn write(&self, out: &mut String, text: &str) -> Result {
        let maybe = self.margins.values().any(|margin| margin.tally.maybe > 0);
        let maybe = if maybe { " has-maybe" } else { "" };
        let revised = if self.revision.is_some() { " revised" } else { "" };
        let lines = anchor(self.text, 0);
        let lines = lines.trim_end_matches('0');
        writeln!(out, "<div class=\"rules{maybe}{revised}\" data-lines=\"{lines}\">")?;
        let mut shown = Shown::lines(&self.margins);
        shown.edited = self.revision.as_ref().map_or(0, |revision| revision.lines.len());
        write_tools(out, self.text, shown)?;
        self.write_text(out, text)?;
        out.push_str("</div>\n");
        Ok(())
    }

    fn write_text(&self, out: &mut String, text: &str) -> Result {
        let lines: Vec<(u32, &str)> = (1..).zip(text.lines()).collect();
        let is_packed = lines.len() > PACKED;
        let packed = if is_packed { " packed" } else { "" };
        writeln!(
            out,
            "<div class=\"text{packed}\"><div class=\"l head\"><span>line</span><b>packets</b><u>maybe</u>\
             <i>bytes</i><code>rule</code></div>",
        )?;
        if is_packed {
            write_packed(out, lines.iter(), |row, (line, text)| self.write_line(row, *line, text))?;
            out.push_str("</div>\n");
            return Ok(());
        }
        for block in lines.chunks(BLOCK) {
            let mut rows = Shown::default();
            for (line, text) in block {
                let (class, height) = (self.class(*line, text), text.len() / COLUMNS + 1);
                rows.add(class, height);
                let edited = class == " table" || !self.edit(*line).is_empty();
                rows.edited += if edited { height } else { 0 };
            }
            let Shown { all, hit, never, unknown, edited } = rows;
            write!(out, "<div class=\"b\" style=\"--n-all:{all};--n-hit:{hit};")?;
            writeln!(out, "--n-never:{never};--n-unknown:{unknown};--n-edited:{edited}\">")?;
            for (line, text) in block {
                self.write_line(out, *line, text)?;
            }
            out.push_str("</div>\n");
        }
        out.push_str("</div>\n");
        Ok(())
    }

    fn class(&self, line: u32, text: &str) -> &'static str {
        match self.margins.get(&line) {
            Some(margin) => margin.class(),
            None if text.starts_with('*') => " table",
            None if text.starts_with('#') => " note",
            None => "",
        }
    }

    /// The class of a line that the other text does not have.
    fn edit(&self, line: u32) -> &'static str {
        let revision = self.revision.as_ref().filter(|revision| revision.lines.contains(&line));
        revision.map_or("", |revision| revision.class)
    }

    fn write_line(&self, out: &mut String, line: u32, text: &str) -> Result {
        let id = anchor(self.text, line);
        write!(out, "<div class=\"l{}{}\" id=\"{id}\"", self.class(line, text), self.edit(line))?;
        let margin = self.margins.get(&line);
        if let Some((first, last)) = margin.and_then(|m| m.tally.first.zip(m.tally.last)) {
            let (first, last) = (time_text(first), time_text(last));
            write!(out, " title=\"first hit {first}\nlast hit {last}\"")?;
        }
        write!(out, "><a href=\"#{id}\">{line}</a>")?;
        if let Some(margin) = margin {
            write_margin(out, margin, self.most, self.maybes.get(&line).map(|why| &**why))?;
        }
        out.push_str("<code>");
        self.links.write_line(out, self.text, line, text)?;
        if let Some(Effect { first, packets }) = self.effects.get(&line) {
            let packets = number(*packets);
            write!(out, "<a class=\"effect\" href=\"#change-{first}\">{packets} changed</a>")?;
        }
        if self.with_rows.contains(&line) {
            write!(out, "<a class=\"packets\" href=\"#by-{id}\">packets</a>")?;
        }
        out.push_str("</code></div>\n");
        Ok(())
    }
}

/// Filters and search.
fn write_tools(out: &mut String, text: usize, shown: Shown) -> Result {
    out.push_str("<div class=\"tools\"><fieldset><legend>Show</legend>");
    let edited = (shown.edited > 0).then_some(("edited", "edited", shown.edited));
    let filters = [
        ("all", "all", shown.all),
        ("hit", "hit", shown.hit),
        ("never", "never hit", shown.never),
        ("unknown", "unknown", shown.unknown),
    ];
    for (value, words, count) in filters.into_iter().chain(edited) {
        let checked = if value == "all" { " checked" } else { "" };
        write!(
            out,
            "<label><input type=\"radio\" name=\"show{text}\" value=\"{value}\"{checked}>\
             <span>{words} <b>{}</b></span></label>",
            number(count as u64)
        )?;
    }
    out.push_str(
        "</fieldset><input type=\"search\" placeholder=\"Search the rules\" \
         aria-label=\"Search the rules\" hidden><output></output></div>\n",
    );
    Ok(())
}

fn write_margin(out: &mut String, margin: &Margin, most: u64, why: Option<&str>) -> Result {
    let HitCount { packets, bytes, maybe, .. } = margin.tally;
    if margin.rule || packets > 0 {
        let heat = heat(packets, most);
        write!(out, "<b style=\"--h:{heat}\">{}</b>", number(packets))?;
        write!(out, "<i>{}</i>", number(bytes))?;
    }
    if maybe > 0 {
        let why = why.map_or_else(String::new, |why| format!(" {}", escape(why)));
        write!(out, "<u title=\"packets that may have hit{why}\">{}?</u>", number(maybe))?;
    }
    Ok(())
}

/// How much of the margin a count fills, in percent, on a logarithmic scale.
fn heat(packets: u64, most: u64) -> u32 {
    if packets == 0 || most == 0 {
        return 0;
    }
    let full = (most as f64 + 1.0).ln();
    (100.0 * (packets as f64 + 1.0).ln() / full).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn margin(rule: bool, packets: u64, maybe: u64) -> Margin {
        Margin { tally: HitCount { packets, maybe, ..HitCount::default() }, rule }
    }

    #[test]
    fn lines_are_classed_by_what_became_of_them() {
        assert_eq!(margin(true, 0, 0).class(), " never");
        assert_eq!(margin(true, 2, 0).class(), " hit");
        assert_eq!(margin(true, 2, 1).class(), " hit may");
        assert_eq!(margin(true, 0, 1).class(), " may");
        assert_eq!(margin(false, 0, 0).class(), "");
        assert_eq!(margin(false, 5, 0).class(), " hit");
    }

    #[test]
    fn filters_show_tables_beside_their_lines() {
        let mut rows = Shown::default();
        for class in [" table", " hit", " hit may", " may", " never", "", " note"] {
            rows.add(class, 2);
        }
        assert_eq!(rows, Shown { all: 14, hit: 6, never: 4, unknown: 6, edited: 0 });
    }

    #[test]
    fn a_line_of_several_rules_adds_up() {
        let mut sum = Margin::default();
        sum.add(HitCount { packets: 1, bytes: 40, maybe: 0, first: Some(7), last: Some(7) });
        sum.add(HitCount { packets: 0, bytes: 0, maybe: 2, first: None, last: None });
        sum.add(HitCount { packets: 2, bytes: 80, maybe: 0, first: Some(3), last: Some(9) });
        let whole = HitCount { packets: 3, bytes: 120, maybe: 2, first: Some(3), last: Some(9) };
        assert_eq!(sum.tally, whole);
    }

    #[test]
    fn any_hit_shows_in_the_heat() {
        assert_eq!(heat(0, 1_000_000), 0);
        assert!(heat(1, u64::MAX) > 0);
        assert_eq!(heat(9, 9), 100);
    }
}
