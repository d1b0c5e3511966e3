//! What decided most, on the page: what dropped packets and what accepted them, each with packets of it.

use std::collections::{HashMap, HashSet};
use std::fmt::{Result, Write};

use dataplane::counters::HitCount;
use rules::eval::By;

use super::markup::{ENDS, anchor, escape, line_link, write_time};
use crate::report::examples::End;
use crate::report::text::{bytes, number};
use crate::report::{Count, Report};
use crate::rules_file::RulesFile;

/// Packets whose paths are told, at most.
const TOLD: usize = 600;

/// Something that decided about packets.
pub(super) struct Row {
    end: End,
    verdict: &'static str,
    packets: u64,
    /// Bytes, where they are counted.
    bytes: Option<u64>,
    /// Index of its rules file, and its line.
    place: Option<(usize, u32)>,
    /// In the words of the rule, or of whatever it is.
    words: String,
    is_rule: bool,
    tally: HitCount,
}

/// The first rows of a table, and how many there are in all.
pub(super) struct Rows {
    shown: Vec<Row>,
    all: usize,
}

impl Rows {
    /// The rows with most packets.
    fn of(mut rows: Vec<Row>, all: usize) -> Self {
        rows.sort_by_key(|row| std::cmp::Reverse(row.packets));
        rows.truncate(ENDS);
        Self { shown: rows, all }
    }
}

impl Row {
    /// One that is no rule.
    fn of_words(verdict: &'static str, end: End, packets: u64, words: impl Into<String>) -> Self {
        Self {
            end,
            verdict,
            packets,
            bytes: None,
            place: None,
            words: words.into(),
            is_rule: false,
            tally: HitCount::default(),
        }
    }
}

impl Report {
    /// What dropped or rejected packets, most packets first.
    pub(super) fn write_drops(&self, out: &mut String) -> Result {
        self.write_rows(out, "drop-table", &self.refusals())?;
        if out.is_empty() { Ok(()) } else { self.write_how(out) }
    }

    /// What accepted packets, most packets first.
    pub(super) fn write_accepts(&self, out: &mut String) -> Result {
        self.write_rows(out, "accept-table", &self.acceptances())
    }

    /// Packets that the page names, and the end of each.
    pub(crate) fn named(&self) -> HashMap<u64, End> {
        let ends = |rows: Rows| rows.shown.into_iter().map(|row| row.end);
        let ends = ends(self.refusals()).chain([End::Unknown]).chain(ends(self.acceptances()));
        let examples = ends
            .flat_map(|end| self.examples.of(end).iter().map(move |example| (example.frame, end)));
        let listed = self.listed.iter();
        let listed = listed.filter_map(|one| Some((one.frame, End::of(&one.disposition)?)));
        examples.chain(listed).take(TOLD).collect()
    }

    /// Lines of a rules file that have a row.
    pub(super) fn lines_with_rows(&self, file: usize) -> HashSet<u32> {
        let rows = [self.refusals(), self.acceptances()];
        let places = rows.iter().flat_map(|rows| &rows.shown).filter_map(|row| row.place);
        places.filter(|place| place.0 == file && place.1 > 0).map(|place| place.1).collect()
    }

    fn acceptances(&self) -> Rows {
        let top = self.top(&self.accepted_by);
        let either = self.top_either_that(false);
        let all = top.len() + either.len();
        let row = |(file, by, count, tally)| self.rule_row("accept", file, by, count, tally);
        let either = either.into_iter().map(|(either, words, count)| {
            Row::of_words("accept", End::Either(either), count.packets, words)
        });
        Rows::of(top.into_iter().take(ENDS).map(row).chain(either).collect(), all)
    }

    fn refusals(&self) -> Rows {
        let top = self.top(&self.refused_by);
        let others = self.other_refusals();
        let all = top.len() + others.len();
        let rows = top.into_iter().take(ENDS).map(|(file, by, count, tally)| {
            let word = if file.rejects(&by) { "reject" } else { "drop" };
            self.rule_row(word, file, by, count, tally)
        });
        Rows::of(rows.chain(others).collect(), all)
    }

    /// Drops by something else than a rule, and by one of several rules.
    fn other_refusals(&self) -> Vec<Row> {
        let either = self.top_either().into_iter();
        let either = either.map(|(either, words, count)| {
            Row::of_words("drop", End::Either(either), count.packets, words)
        });
        let reasons = &self.drop_reasons;
        let faults = reasons.stack_faults.iter().map(|(fault, packets)| {
            let words = format!("the kernel's stack, before any rule: {fault}");
            Row::of_words("drop", End::Stack(*fault), *packets, words)
        });
        let routes = reasons.route_refusals.iter().map(|(why, packets)| {
            Row::of_words("drop", End::Route(*why), *packets, format!("routing: {}", why.name()))
        });
        let others = [
            (End::Ttl, reasons.ttl, "time to live ran out while forwarding"),
            (End::TooBig, reasons.too_big, "too big for the link that it would leave by"),
            (End::Conntrack, reasons.conntrack, "connection tracking: no room, or a tuple taken"),
            (End::Reassembly, reasons.reassembly, "fragments that make no packet"),
            (End::Denied, reasons.denied, "the access list: a banned source, or one not accepted"),
        ];
        let others = others.into_iter().filter(|(_, packets, _)| *packets > 0);
        let others = others.map(|(end, packets, words)| Row::of_words("drop", end, packets, words));
        either.chain(faults).chain(routes).chain(others).collect()
    }

    fn rule_row(
        &self,
        verdict: &'static str,
        file: &RulesFile,
        by: By,
        count: Count,
        tally: HitCount,
    ) -> Row {
        let family = file.ruleset.family;
        Row {
            end: End::By(family, by),
            verdict,
            packets: count.packets,
            bytes: Some(count.bytes),
            place: Some((self.file_index(family).unwrap_or(0), file.by_line(by))),
            words: file.by_text(by),
            is_rule: true,
            tally,
        }
    }

    fn write_rows(&self, out: &mut String, id: &str, rows: &Rows) -> Result {
        if rows.shown.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "<div class=\"scroll\" tabindex=\"0\"><table id=\"{id}\" class=\"sort rows ends\">\n\
             <thead><tr><th scope=\"col\" class=\"n\">packets<th scope=\"col\" class=\"n\">bytes\
             <th scope=\"col\">verdict<th scope=\"col\">what decided<th scope=\"col\">first\
             <th scope=\"col\">last</thead>"
        )?;
        // A line with address lists made several rules: the first row of it is the line's.
        let mut named = HashSet::new();
        for row in &rows.shown {
            let place = row.place.filter(|place| place.1 > 0 && named.insert(*place));
            match place {
                Some((file, line)) => writeln!(out, "<tbody id=\"by-{}\">", anchor(file, line))?,
                None => out.push_str("<tbody>"),
            }
            self.write_row(out, row)?;
        }
        out.push_str("</table></div>\n");
        if let Some(more) = rows.all.checked_sub(rows.shown.len()).filter(|more| *more > 0) {
            let more = number(more as u64);
            writeln!(
                out,
                "<p class=\"dim\">and {more} more, each with its hits in its margin</p>"
            )?;
        }
        Ok(())
    }

    fn write_row(&self, out: &mut String, row: &Row) -> Result {
        let Row { verdict, packets, bytes: size, .. } = row;
        write!(
            out,
            "<tr><td class=\"n\" data-v=\"{packets}\">{}<td class=\"n\" data-v=\"{}\">{}\
             <td><i class=\"key {verdict}\"></i>{verdict}<td>",
            number(*packets),
            size.unwrap_or(0),
            size.map(bytes).unwrap_or_default(),
        )?;
        if let Some((file, line)) = row.place {
            line_link(out, file, line)?;
        }
        let words = escape(&row.words);
        if row.is_rule {
            write!(out, "<code>{words}</code>")?
        } else {
            out.push_str(&words)
        }
        for time in [row.tally.first, row.tally.last] {
            write!(out, "<td class=\"when\" data-v=\"{}\">", time.unwrap_or(0))?;
            write_time(out, time)?;
        }
        let examples = self.examples.of(row.end);
        if !examples.is_empty() {
            out.push_str("\n<tr class=\"ex\"><td colspan=\"6\">");
            self.write_example_list(out, examples)?;
        }
        out.push('\n');
        Ok(())
    }

    fn write_how(&self, out: &mut String) -> Result {
        let command = escape(&self.why_command("N"));
        writeln!(
            out,
            "<p class=\"dim\">The whole path of packet N: \
             <code class=\"command\" tabindex=\"0\">{command}</code></p>"
        )
    }
}
