//! Packets on the page: what dropped most with examples, what unknown verdicts depend on, and the packets
//! that `--list` asked for.

use std::fmt::{Error, Result, Write};

use dataplane::counters::HitCount;
use rules::eval::By;

use super::ROWS;
use super::markup::{escape, line_link, write_time};
use crate::report::examples::{End, Example};
use crate::report::text::{bytes, number, plural};
use crate::report::{Count, Report, UnknownReason};
use crate::rules_file::RulesFile;
use crate::source::Numbers;

impl Report {
    /// What dropped or rejected packets, most packets first.
    pub(super) fn write_drops(&self, out: &mut String) -> Result {
        let mut rows = self.drop_rows()?;
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_by_key(|(packets, _)| std::cmp::Reverse(*packets));
        out.push_str(
            "<div class=\"scroll\"><table id=\"drop-table\" class=\"sort rows\">\n<thead><tr>\
             <th class=\"n\">packets<th class=\"n\">bytes<th>verdict<th>what decided\
             <th>first<th>last</thead>\n",
        );
        for (_, row) in rows.iter().take(ROWS) {
            out.push_str(row);
        }
        out.push_str("</table></div>\n");
        if rows.len() > ROWS {
            let more = number((rows.len() - ROWS) as u64);
            writeln!(
                out,
                "<p class=\"dim\">and {more} more, each with its hits in its margin</p>"
            )?;
        }
        self.write_how(out)
    }

    /// A row for everything that dropped, with its packets.
    fn drop_rows(&self) -> std::result::Result<Vec<(u64, String)>, Error> {
        let mut rows = Vec::new();
        for (file, by, count, tally) in self.top_decisions(RulesFile::drops) {
            rows.push((count.packets, self.rule_row(file, by, count, tally)?));
        }
        for (either, words, count) in self.top_either() {
            let examples = self.examples.of(End::Either(either));
            let row = row_without_rule(count.packets, &words, examples, &self.numbers)?;
            rows.push((count.packets, row));
        }
        let reasons = &self.drop_reasons;
        for (fault, packets) in &reasons.stack_faults {
            let words = format!("the kernel's stack, before any rule: {fault}");
            let examples = self.examples.of(End::Stack(*fault));
            rows.push((*packets, row_without_rule(*packets, &words, examples, &self.numbers)?));
        }
        for (why, packets) in &reasons.route_refusals {
            let words = format!("routing: {}", why.name());
            let examples = self.examples.of(End::Route(*why));
            rows.push((*packets, row_without_rule(*packets, &words, examples, &self.numbers)?));
        }
        if reasons.ttl > 0 {
            let words = "time to live ran out while forwarding";
            let examples = self.examples.of(End::Ttl);
            rows.push((
                reasons.ttl,
                row_without_rule(reasons.ttl, words, examples, &self.numbers)?,
            ));
        }
        if reasons.too_big > 0 {
            let words = "too big for the link that it would leave by";
            let examples = self.examples.of(End::TooBig);
            rows.push((
                reasons.too_big,
                row_without_rule(reasons.too_big, words, examples, &self.numbers)?,
            ));
        }
        if reasons.conntrack > 0 {
            let words = "connection tracking: no room, or a tuple taken";
            let examples = self.examples.of(End::Conntrack);
            rows.push((
                reasons.conntrack,
                row_without_rule(reasons.conntrack, words, examples, &self.numbers)?,
            ));
        }
        if reasons.reassembly > 0 {
            let words = "fragments that make no packet";
            let examples = self.examples.of(End::Reassembly);
            rows.push((
                reasons.reassembly,
                row_without_rule(reasons.reassembly, words, examples, &self.numbers)?,
            ));
        }
        if reasons.denied > 0 {
            let words = "the access list: a banned source, or one not accepted";
            let examples = self.examples.of(End::Denied);
            rows.push((
                reasons.denied,
                row_without_rule(reasons.denied, words, examples, &self.numbers)?,
            ));
        }
        Ok(rows)
    }

    fn rule_row(
        &self,
        file: &RulesFile,
        by: By,
        count: Count,
        tally: HitCount,
    ) -> std::result::Result<String, Error> {
        let family = file.ruleset.family;
        let word = if file.rejects(&by) { "reject" } else { "drop" };
        let mut out = format!(
            "<tbody><tr><td class=\"n\" data-v=\"{0}\">{1}<td class=\"n\" data-v=\"{2}\">{3}\
             <td><i class=\"key {word}\"></i>{word}<td>",
            count.packets,
            number(count.packets),
            count.bytes,
            bytes(count.bytes)
        );
        line_link(&mut out, self.file_index(family).unwrap_or(0), file.by_line(by))?;
        write!(out, "<code>{}</code>", escape(&file.by_text(by)))?;
        for time in [tally.first, tally.last] {
            write!(out, "<td class=\"when\" data-v=\"{}\">", time.unwrap_or(0))?;
            write_time(&mut out, time)?;
        }
        write_examples(&mut out, self.examples.of(End::By(family, by)), &self.numbers)?;
        Ok(out)
    }

    fn write_how(&self, out: &mut String) -> Result {
        let command = escape(&self.why_command("N"));
        writeln!(
            out,
            "<p class=\"dim\">The whole path of packet N: \
             <code class=\"command\">{command}</code></p>"
        )
    }

    /// What unknown verdicts depend on.
    pub(super) fn write_unknown(&self, out: &mut String) -> Result {
        let reasons = self.unknown_places();
        if reasons.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "<p class=\"dim\">A verdict is unknown where it depends on something that is not modelled, \
             not captured or not told; it is never guessed. {} in all.</p>",
            plural(self.verdicts.unknown.packets, "packet")
        )?;
        out.push_str(
            "<div class=\"scroll\"><table id=\"unknown-table\" class=\"sort\">\n<thead><tr>\
             <th class=\"n\">packets<th>what they depend on</thead>\n",
        );
        for UnknownReason { place, what, packets, .. } in reasons.iter().take(ROWS) {
            let text = number(*packets);
            write!(out, "<tbody><tr><td class=\"n\" data-v=\"{packets}\">{text}<td>")?;
            if let Some((file, line)) = place {
                line_link(out, *file, *line)?;
            }
            writeln!(out, "{}", escape(what))?;
        }
        out.push_str("</table></div>\n");
        if reasons.len() > ROWS {
            let more = number((reasons.len() - ROWS) as u64);
            writeln!(out, "<p class=\"dim\">and {more} more (--json has them all)</p>")?;
        }
        write_example_list(out, self.examples.of(End::Unknown), &self.numbers)
    }

    /// The packets of `--list`.
    pub(super) fn write_listed(&self, out: &mut String) -> Result {
        if self.listed.is_empty() {
            return Ok(());
        }
        out.push_str(
            "<div class=\"scroll\"><table id=\"listed-table\" class=\"sort rows\">\n<thead><tr>\
             <th class=\"n\">number<th>time<th>verdict<th>packet<th>what decided</thead>\n",
        );
        for listed in &self.listed {
            let (frame, word) = (listed.frame, listed.disposition.verdict.word());
            write!(
                out,
                "<tbody><tr><td class=\"n\" data-v=\"{frame}\">{}",
                shown(&self.numbers, frame)
            )?;
            write!(out, "<td class=\"when\" data-v=\"{}\">", listed.time.unwrap_or(0))?;
            write_time(out, listed.time)?;
            write!(out, "<td><i class=\"key {word}\"></i>{word}")?;
            write!(out, "<td><code>{}</code><td>", escape(&listed.packet))?;
            if let Some((line, text)) = self.decided_by(&listed.disposition) {
                let file = listed.disposition.family.and_then(|family| self.file_index(family));
                line_link(out, file.unwrap_or(0), line)?;
                write!(out, "<code>{}</code>", escape(&text))?;
            }
            out.push('\n');
        }
        out.push_str("</table></div>\n");
        Ok(())
    }
}

fn row_without_rule(
    packets: u64,
    words: &str,
    examples: &[Example],
    numbers: &Numbers,
) -> std::result::Result<String, Error> {
    let mut out = format!(
        "<tbody><tr><td class=\"n\" data-v=\"{packets}\">{}<td class=\"n\" data-v=\"0\">\
         <td><i class=\"key drop\"></i>drop<td>{}<td data-v=\"0\"><td data-v=\"0\">",
        number(packets),
        escape(words)
    );
    write_examples(&mut out, examples, numbers)?;
    Ok(out)
}

/// Examples as a table row below the one they belong to.
fn write_examples(out: &mut String, examples: &[Example], numbers: &Numbers) -> Result {
    if !examples.is_empty() {
        out.push_str("\n<tr class=\"ex\"><td colspan=\"6\">");
        write_example_list(out, examples, numbers)?;
    }
    out.push('\n');
    Ok(())
}

/// A frame number, which may name its capture.
fn shown(numbers: &Numbers, frame: u64) -> String {
    match numbers.file(frame) {
        Some(_) => escape(&numbers.show(frame).to_string()),
        None => number(frame),
    }
}

pub(super) fn write_example_list(
    out: &mut String,
    examples: &[Example],
    numbers: &Numbers,
) -> Result {
    if examples.is_empty() {
        return Ok(());
    }
    out.push_str("<ol class=\"examples\">");
    for example in examples {
        write!(out, "<li><b>#{}</b> ", shown(numbers, example.frame))?;
        write_time(out, example.time)?;
        write!(out, " <code>{}</code>", escape(&example.packet))?;
    }
    out.push_str("</ol>");
    Ok(())
}
