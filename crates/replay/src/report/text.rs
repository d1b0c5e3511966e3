//! The report for people: one screen, ending with the next command worth typing.

use std::fmt::Write;

use conntrack::SECOND;
use dataplane::{Disposition, DropReason, FinalVerdict, Path};
use host::{Kernel, Queues};
use packet::visible::{self, word};
pub(super) use packet::visible::{number, plural};
use rules::Backend;
use rules::eval::By;
use rules::save::FamilyFrom;

use super::{Count, Report, ways};
use crate::decider::{Decider, foreign_text};
use crate::time_text::time_text;

/// Width of a line for which columns are given.
pub(super) const WIDTH: usize = 100;
/// What ends a cell that takes the room there is, and the width that it would have in a line of [`WIDTH`].
const CELL: char = '\u{1f}';
/// The narrowest terminal that lines are laid out for: less leaves nothing of what they say.
const NARROWEST: usize = 60;
/// Rows of a table before "and N more".
const ROWS: usize = 5;
const BAR: usize = 24;

/// How the report looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// With ANSI colours.
    pub colour: bool,
    /// Columns of the terminal, which lines are cut to; `None` where there is none, and nothing is cut.
    pub width: Option<usize>,
}

impl Report {
    /// The report as text.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let (mut above, mut table, mut below) = (String::new(), String::new(), String::new());
        // Writing to a String cannot fail.
        let _ = self.heading(&mut above);
        // The only part with colour, and the only one without text from outside.
        let _ = self.verdict_table(&mut table, style);
        let _ = self.contradictions_text(&mut below);
        let _ = self.drops(&mut below);
        let _ = self.unknowns(&mut below);
        let _ = self.maybes_text(&mut below);
        let _ = self.changes_text(&mut below);
        let _ = self.notes(&mut below);
        let _ = self.never_list(&mut below);
        let _ = self.list_text(&mut below);
        let _ = self.groups_text(&mut below);
        let _ = writeln!(below, "next: {}", self.next_command());
        let below = laid_out(&below, style.width);
        [visible::text(&above), table.into(), visible::text(&below)].concat()
    }

    /// Rows of a table before "and N more".
    pub(super) fn rows(&self) -> usize {
        self.rows.unwrap_or(ROWS)
    }

    fn heading(&self, out: &mut String) -> std::fmt::Result {
        for file in &*self.files {
            let ruleset = &file.ruleset;
            let names: Vec<_> = ruleset.tables.iter().map(|table| ruleset.title(table)).collect();
            writeln!(
                out,
                "rules     {}: {}, {} in {} ({})",
                word(&file.names()),
                file.tool(),
                plural(file.rules().count() as u64, "rule"),
                plural(ruleset.chain_count() as u64, "chain"),
                names.join(", ")
            )?;
        }
        for capture in self.captures.iter().take(ROWS) {
            let span = match (capture.first, capture.last) {
                (Some(first), Some(last)) => {
                    format!(", {} from {}", duration(last.saturating_sub(first)), time_text(first))
                }
                _ => String::new(),
            };
            let packets = plural(capture.count.packets, "packet");
            writeln!(out, "capture   {}: {packets}{span}", word(&capture.name.given))?;
        }
        self.more_captures(out)?;
        writeln!(out, "assumed   {}", self.assumptions())
    }

    /// The captures beyond the first, in one line.
    fn more_captures(&self, out: &mut String) -> std::fmt::Result {
        let more = self.captures.get(ROWS..).unwrap_or_default();
        if more.is_empty() {
            return Ok(());
        }
        let packets = more.iter().map(|capture| capture.count.packets).sum();
        let packets = plural(packets, "packet");
        writeln!(out, "capture   and {} more with {packets} (--json has them all)", more.len())
    }

    /// What the report takes for granted, and the flags that change it.
    fn assumptions(&self) -> String {
        let (path, _) = self.path();
        let mut parts = vec![format!("path {path}")];
        let name = |given: &Option<String>, unknown: u64| match given {
            Some(name) => word(name).into_owned(),
            None if unknown == 0 => "known for all".to_owned(),
            None => format!("unknown for {}", number(unknown)),
        };
        parts.push(format!("in {}", name(&self.config.input, self.input_unknown)));
        parts.push(format!("out {}", name(&self.config.output, self.output_unknown)));
        if self.files.iter().any(|file| file.ruleset.backend == Backend::Nft) {
            parts.push("semantics nft".to_owned());
        }
        if self.files.iter().any(|file| file.family_from == FamilyFrom::Assumed) {
            parts.push("family ip".to_owned());
        }
        parts.extend(self.kernel_assumed());
        let queues = &self.config.host.queues;
        if *queues != Queues::default() {
            parts.push(format!("queues: {queues}"));
        }
        parts.extend(self.zone_given());
        let given = self.config.path.is_some() || self.config.host.local.is_some();
        let hint = if given { "" } else { "  (--path --local --in --out --net)" };
        parts.join(", ") + hint
    }

    /// The kernel whose answers the packets got.
    pub(super) fn kernel(&self) -> Kernel {
        self.config.host.kernel.unwrap_or_default()
    }

    /// The same, where nobody named it and packets show that answers depend on it.
    pub(super) fn kernel_assumed(&self) -> Option<String> {
        let is_assumed = self.config.host.kernel.is_none() && self.overrun > 0;
        let packets = || plural(self.overrun, "packet");
        is_assumed.then(|| format!("kernel {} for {} (--kernel)", self.kernel(), packets()))
    }

    /// The time zone by which rules count that ask for the kernel's.
    pub(super) fn zone_given(&self) -> Option<String> {
        self.config.host.zone.as_ref().map(|zone| format!("time zone {zone} (--tz)"))
    }

    /// The path that packets took, and whether it was the same for all.
    pub(super) fn path(&self) -> (String, bool) {
        let mut paths: Vec<(&Path, &u64)> = self.paths.iter().collect();
        paths.sort();
        match paths.as_slice() {
            [] => (self.config.path.map_or("forward", Path::name).to_owned(), true),
            [(path, _)] => (path.name().to_owned(), true),
            several => {
                let parts: Vec<String> = several
                    .iter()
                    .map(|(path, n)| format!("{} {}", path.name(), number(**n)))
                    .collect();
                (parts.join(" + "), false)
            }
        }
    }

    fn verdict_table(&self, out: &mut String, style: Style) -> std::fmt::Result {
        writeln!(out, "\nVERDICT         packets    share  {:BAR$}        bytes", "")?;
        let rows = [
            ("accept", self.verdicts.accept, "32"),
            ("drop", self.verdicts.drop, "31"),
            ("reject", self.verdicts.reject, "35"),
            ("unknown", self.verdicts.unknown, "33"),
            ("skip", self.verdicts.skip, "2"),
        ];
        for (name, count, colour) in rows {
            if count.packets > 0 || name == "accept" || name == "drop" {
                self.verdict_row(out, name, count, colour, style)?;
            }
        }
        Ok(())
    }

    fn verdict_row(
        &self,
        out: &mut String,
        name: &str,
        count: Count,
        colour: &str,
        style: Style,
    ) -> std::fmt::Result {
        let share = count.packets as f64 / self.packets.max(1) as f64;
        let bar = format!("{:<BAR$}", bar(share));
        let bar = match style.colour {
            false => bar,
            true => format!("\x1b[{colour}m{bar}\x1b[0m"),
        };
        writeln!(
            out,
            "{name:<8}{:>15}  {:>6}  {bar} {:>12}",
            number(count.packets),
            percent(share),
            bytes(count.bytes)
        )
    }

    /// What the captures contradict comes first: nothing below it can be relied on.
    fn contradictions_text(&self, out: &mut String) -> std::fmt::Result {
        let all = self.contradictions.by();
        if all.is_empty() {
            return Ok(());
        }
        let heading = fit("CONTRADICTED: the captures show them leaving", WIDTH - 39);
        writeln!(out, "\n{heading}{:>12}   example", "packets")?;
        for (what, count) in all.iter().take(self.rows()) {
            let (line, text) = self.contradicted(*what);
            let line = line.map_or_else(|| "      ".to_owned(), |line| format!("L{line:<5}"));
            let label = fit(&format!("  {line} {text}"), WIDTH - 39);
            let example = self.numbers.words(count.example);
            writeln!(out, "{label}{:>12}   #{example}", number(count.packets))?;
        }
        if all.len() > self.rows() {
            writeln!(
                out,
                "  and {} more (--top {} shows all)",
                all.len() - self.rows(),
                all.len()
            )?;
        }
        writeln!(
            out,
            "  rules, host and captures are not of one time, or tamis is wrong: please report it"
        )
    }

    fn drops(&self, out: &mut String) -> std::fmt::Result {
        let top = self.top(&self.refused_by);
        let reasons = &self.drop_reasons;
        let others = reasons.stack
            + reasons.route
            + reasons.ttl
            + reasons.too_big
            + reasons.conntrack
            + reasons.reassembly;
        let either = self.top_either();
        if !top.is_empty() || !either.is_empty() || others > 0 {
            let heading = fit("TOP DROPPING RULES", WIDTH - 39);
            writeln!(out, "\n{heading}{:>12}   first seen", "packets")?;
        }
        for (file, by, count, tally) in top.iter().take(self.rows()) {
            let line = Some(file.line(file.by_line(*by)).1).filter(|line| *line > 0);
            let line = line.map_or_else(String::new, |line| format!("L{line}"));
            let label = format!("  {line:<6} {}", file.by_text(*by));
            let first = tally.first.map_or_else(String::new, |first| {
                let start = self.captures.iter().filter_map(|capture| capture.first).min();
                format!("+{}", duration(first.saturating_sub(start.unwrap_or(first))))
            });
            let w = WIDTH - 27;
            writeln!(out, "{}{:>12}   {first}", fit(&label, w - 12), number(count.packets))?;
        }
        if top.len() > self.rows() {
            writeln!(
                out,
                "  and {} more (--top {} shows all)",
                top.len() - self.rows(),
                top.len()
            )?;
        }
        for (_, text, count) in either.iter().take(self.rows()) {
            let w = WIDTH - 39;
            writeln!(out, "{}{:>12}", fit(&format!("  {text}"), w), number(count.packets))?;
        }
        let faults = reasons.stack_faults.iter().map(|(fault, packets)| {
            (format!("the kernel's stack, before any rule: {fault}"), *packets)
        });
        let others = [
            ("time to live ran out while forwarding".to_owned(), reasons.ttl),
            ("too big for the link that it would leave by".to_owned(), reasons.too_big),
            ("connection tracking: no room, or a tuple taken".to_owned(), reasons.conntrack),
            ("fragments that make no packet".to_owned(), reasons.reassembly),
        ];
        let refusals = reasons.route_refusals.iter();
        let refusals =
            refusals.map(|(why, packets)| (format!("routing: {}", why.name()), *packets));
        for (what, packets) in
            faults.chain(refusals).chain(others).filter(|(_, packets)| *packets > 0)
        {
            let what = fit(&format!("  {what}"), WIDTH - 39);
            writeln!(out, "{what}{:>12}", number(packets))?;
        }
        if reasons.denied > 0 {
            let what = "  the access list: a banned source, or one not accepted";
            writeln!(out, "{}{:>12}", fit(what, WIDTH - 39), number(reasons.denied))?;
        }
        Ok(())
    }

    fn unknowns(&self, out: &mut String) -> std::fmt::Result {
        let reasons = self.unknown_places();
        if reasons.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}{:>12}", fit("UNKNOWN BECAUSE", WIDTH - 39), "packets")?;
        for reason in reasons.iter().take(self.rows()) {
            let line = reason.place.map(|(_, line)| line);
            let line = line.map_or_else(|| "      ".to_owned(), |line| format!("L{line:<5}"));
            let label = format!("  {line} {}", reason.what);
            writeln!(out, "{}{:>12}", fit(&label, WIDTH - 39), number(reason.packets))?;
        }
        if reasons.len() > self.rows() {
            writeln!(
                out,
                "  and {} more (--top {} shows all)",
                reasons.len() - self.rows(),
                reasons.len()
            )?;
        }
        let shown = reasons.iter().take(self.rows());
        ways(shown).iter().try_for_each(|how| writeln!(out, "  {how}"))
    }

    /// What is to be said of the order of the captures' packets, and of packets that they lack.
    pub(super) fn order_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.by_time {
            notes.push("the captures follow each other by time, not as given".to_owned());
        }
        if self.backwards > 0 {
            let times = plural(self.backwards, "time");
            notes.push(format!("time ran backwards {times}: packets were put in order of time"));
        }
        if self.time_went_back > 0 {
            let packets = plural(self.time_went_back, "packet");
            notes.push(format!("{packets} came too late for that: taken as of the time before"));
        }
        for capture in &self.captures {
            if let Some(lost) = capture.dropped.filter(|lost| *lost > 0) {
                let lost = plural(lost, "packet");
                notes.push(format!("{}: its recorder lost {lost}", capture.name.file));
            }
        }
        notes
    }

    fn notes(&self, out: &mut String) -> std::fmt::Result {
        if !self.selection.is_everything() {
            let (evaluated, read) = (number(self.packets), plural(self.frames, "packet"));
            writeln!(out, "\nselected  {evaluated} of {read} read")?;
        }
        if self.interrupted {
            writeln!(
                out,
                "\nstopped   before the end of the captures: this is what there is so far"
            )?;
        }
        self.never_text(out)?;
        for (packets, why) in self.skips() {
            writeln!(out, "skipped   {}: {why}", plural(packets, "packet"))?;
        }
        if self.early_flows + self.early_packets > 0 {
            writeln!(
                out,
                "early     {} of {} not all captured: taken for new ones, in TCP for established ones (--ct)",
                plural(self.early_packets, "packet"),
                plural(self.early_flows, "connection"),
            )?;
        }
        if self.squeezed_packets > 0 {
            writeln!(out, "note      {}", squeezed_text(self.squeezed_packets))?;
        }
        if let Some(unseen) = self.unseen() {
            writeln!(out, "note      {}", unseen_text(unseen))?;
        }
        for note in self.order_notes() {
            writeln!(out, "note      {}", word(&note))?;
        }
        for file in &*self.files {
            for warning in &file.warnings {
                let times = if warning.count > 1 {
                    format!(" ({} times)", warning.count)
                } else {
                    String::new()
                };
                let (file, line) = file.line(warning.line);
                let (file, what) = (word(file), word(&warning.what));
                writeln!(out, "warning   {file}:{line}: {what}{times}")?;
            }
        }
        for warning in &self.warnings {
            writeln!(out, "warning   {}", word(warning))?;
        }
        Ok(())
    }

    /// What decided about a packet: line (0 if none) and words.
    #[must_use]
    pub fn decided_by(&self, end: &Disposition) -> Option<(u32, String)> {
        if let Some(either) = end.either {
            let decider = Decider::Either(end.family?, either);
            return Some((0, decider.place(&self.config.host, |family| self.file(family)).text));
        }
        let by = match end.verdict {
            FinalVerdict::Accept(by) => by?,
            FinalVerdict::Reject(by) => by,
            FinalVerdict::Drop(DropReason::Stack(fault)) => {
                return Some((0, format!("the stack: {fault}")));
            }
            FinalVerdict::Drop(DropReason::Ttl) => return Some((0, "time to live".to_owned())),
            FinalVerdict::Drop(DropReason::Route(why)) => {
                return Some((0, format!("routing: {}", why.name())));
            }
            FinalVerdict::Drop(DropReason::TooBig) => {
                return Some((0, "too big for the link".to_owned()));
            }
            FinalVerdict::Drop(DropReason::Conntrack) => {
                return Some((0, "connection tracking".to_owned()));
            }
            FinalVerdict::Drop(DropReason::Reassembly) => {
                return Some((0, "reassembly of fragments".to_owned()));
            }
            FinalVerdict::Drop(DropReason::Denied(why)) => {
                return Some((0, format!("the access list: {}", why.words())));
            }
            FinalVerdict::Drop(DropReason::Foreign(chain)) => {
                return Some((0, foreign_text(&self.config.host, chain)));
            }
            FinalVerdict::Drop(DropReason::Rule(at)) => By::Rule(at),
            FinalVerdict::Drop(DropReason::HotDrop(at)) => By::HotDrop(at),
            FinalVerdict::Drop(DropReason::Policy { table, chain }) => By::Policy { table, chain },
            FinalVerdict::Unknown | FinalVerdict::Skip(_) => return None,
        };
        let file = self.file(end.family?)?;
        Some((file.line(file.by_line(by)).1, file.by_text(by)))
    }
}

/// A cell of `width` columns in a line of [`WIDTH`], and of as many more or less as a line has that is wider or
/// narrower. One for each line: [`laid_out`] cuts and fills it.
pub(super) fn fit(text: &str, width: usize) -> String {
    // What comes from outside cannot end a cell.
    format!("{}{CELL}{width}{CELL}", text.replace(CELL, "\u{fffd}"))
}

/// Text whose cells have their columns: those of a terminal, where they are cut to, or of a line of [`WIDTH`].
fn laid_out(text: &str, columns: Option<usize>) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let mut parts = line.splitn(3, CELL);
        let (cell, width, rest) = (parts.next(), parts.next(), parts.next());
        let (Some(cell), Some(Ok(width)), Some(rest)) = (cell, width.map(str::parse), rest) else {
            out.push_str(line);
            continue;
        };
        // No cell of ours is wider; text from outside may look like one.
        out.push_str(filled(cell, WIDTH.min(width), rest, columns).trim_end());
        out.push('\n');
    }
    out
}

/// A cell and the rest of its line.
fn filled(cell: &str, width: usize, rest: &str, columns: Option<usize>) -> String {
    let line = columns.map_or(WIDTH, |columns| columns.max(NARROWEST));
    let width = (width + line).saturating_sub(WIDTH);
    if columns.is_none() || cell.chars().count() <= width {
        return format!("{cell:<width$}{rest}");
    }
    let cut: String = cell.chars().take(width.saturating_sub(1)).collect();
    format!("{cut}…{rest}")
}

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 && percent < 0.1 { 2 } else { 1 };
    format!("{percent:.digits$}%")
}

pub(super) fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut scaled = value as f64;
    let mut unit = 0;
    while scaled >= 1000.0 && unit + 1 < UNITS.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{value} B") } else { format!("{scaled:.1} {}", UNITS[unit]) }
}

/// A span of nanoseconds, short.
pub(crate) fn duration(nanos: u64) -> String {
    let seconds = nanos / SECOND;
    match seconds {
        0 => format!("{} ms", nanos / 1_000_000),
        1..60 => format!("{seconds}.{} s", nanos / 100_000_000 % 10),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..172_800 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A bar of eighths of a block.
fn bar(share: f64) -> String {
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8 - 1]);
    }
    bar
}

/// Packets of connections that may have had no room.
pub(super) fn squeezed_text(packets: u64) -> String {
    format!(
        "{} of connections that may have had no place in a full table (--ct-max): the kernel's choice is secret",
        plural(packets, "packet")
    )
}

/// Packets that went on and were not seen to.
pub(super) fn unseen_text(packets: u64) -> String {
    format!(
        "{} accepted and not seen leaving: no neighbour, a full queue, or lost by the recorder",
        plural(packets, "packet")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_204_331), "1,204,331");
    }

    #[test]
    fn a_share_that_is_not_zero_shows() {
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1e-9), "▏");
        assert_eq!(bar(1.0).chars().count(), BAR);
        assert_eq!(percent(0.0004), "0.04%");
        assert_eq!(percent(0.975), "97.5%");
    }

    #[test]
    fn cells_take_the_room_that_there_is() {
        let line = |text: &str, columns| laid_out(&(fit(text, WIDTH - 8) + "7 packets\n"), columns);
        let long = "x".repeat(150);
        assert_eq!(line("abc", None), format!("abc{:89}7 packets\n", ""));
        assert_eq!(line("abc", Some(80)), format!("abc{:69}7 packets\n", ""));
        assert_eq!(line(&long, None), format!("{long}7 packets\n"));
        assert_eq!(line(&long, Some(80)), format!("{}…7 packets\n", &long[..71]));
        assert_eq!(line(&long, Some(120)), format!("{}…7 packets\n", &long[..111]));
        assert_eq!(line(&long, Some(10)), line(&long, Some(NARROWEST)));
    }

    #[test]
    fn what_comes_from_outside_ends_no_cell() {
        let forged = laid_out(&(fit("a\u{1f}9\u{1f}b", 10) + "7\n"), Some(100));
        assert_eq!(forged, "a\u{fffd}9\u{fffd}b     7\n");
        // A line that has no cell stays as it is.
        assert_eq!(laid_out("a\u{1f}9\u{1f}b\n", Some(100)), "a9b\n".replace("a9b", "a        b"));
    }

    #[test]
    fn spans_and_sizes_are_short() {
        assert_eq!(duration(1_500_000_000), "1.5 s");
        assert_eq!(duration(61_000_000_000), "1 min 1 s");
        assert_eq!(duration(3_600_000_000_000), "1 h 0 min");
        assert_eq!(duration(49 * 3_600_000_000_000), "2 d 1 h");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(812_400_000), "812.4 MB");
    }
}
