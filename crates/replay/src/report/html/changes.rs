//! What `--vs` found, on the page: from which verdict to which, by which two rules, with packets.

use std::fmt::{Result, Write};

use super::markup::{ROWS, escape, line_link};
use super::packets::write_plain_examples;
use super::sheets::Side;
use crate::changes::{Changes, VerdictChange};
use crate::report::text::{bytes, number, plural};
use crate::report::{Count, Report};

/// The changes from one verdict to another.
struct Turn<'c> {
    from: &'static str,
    to: &'static str,
    count: Count,
    /// Groups, each with its place among all.
    groups: Vec<(usize, &'c VerdictChange)>,
}

/// Groups by their two verdicts, the most packets first.
fn turns(changes: &Changes) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (at, change) in changes.by.iter().enumerate() {
        let same = |turn: &Turn<'_>| (turn.from, turn.to) == (change.from, change.to);
        let index = turns.iter().position(same).unwrap_or_else(|| {
            let (from, to) = (change.from, change.to);
            turns.push(Turn { from, to, count: Count::default(), groups: Vec::new() });
            turns.len() - 1
        });
        turns[index].count.packets += change.packets;
        turns[index].count.bytes += change.bytes;
        turns[index].groups.push((at, change));
    }
    turns.sort_by_key(|turn| std::cmp::Reverse(turn.count.packets));
    turns
}

impl Report {
    /// Every turn with its groups.
    pub(super) fn write_changes(&self, out: &mut String) -> Result {
        let Some(changes) = &self.changes else { return Ok(()) };
        let names: Vec<&str> = changes.files.iter().map(|file| &*file.file).collect();
        let (names, packets) = (escape(&names.join(" + ")), plural(self.packets, "packet"));
        let other = self.change_of_semantics();
        write!(
            out,
            "<p class=\"dim\">Each packet evaluated again under <code>{names}</code>{other}: "
        )?;
        if changes.packets == 0 {
            return writeln!(out, "of {packets}, every verdict is the same.</p>");
        }
        let (changed, verb) =
            (number(changes.packets), if changes.packets == 1 { "comes" } else { "come" });
        writeln!(
            out,
            "of {packets}, <b id=\"changed\">{changed}</b> {verb} to another verdict.</p>"
        )?;
        for turn in turns(changes) {
            self.write_turn(out, &turn)?;
        }
        if changes.ungrouped > 0 {
            let packets = plural(changes.ungrouped, "packet");
            writeln!(out, "<p class=\"dim\">and {packets} in groups too many to keep apart</p>")?;
        }
        Ok(())
    }

    fn write_turn(&self, out: &mut String, turn: &Turn<'_>) -> Result {
        let Turn { from, to, count, groups } = turn;
        writeln!(
            out,
            "<h3 class=\"turn\"><i class=\"key {from}\"></i>{from} <span>→</span> \
             <i class=\"key {to}\"></i>{to}<b>{}</b></h3>\n\
             <div class=\"scroll\" tabindex=\"0\"><table class=\"sort rows change-table\" data-from=\"{from}\" \
             data-to=\"{to}\">\n<thead><tr><th scope=\"col\" class=\"n\">packets<th scope=\"col\" class=\"n\">bytes\
             <th scope=\"col\">what decided, and what decides now</thead>",
            plural(count.packets, "packet")
        )?;
        for (at, change) in groups.iter().take(ROWS) {
            self.write_group(out, *at, change)?;
        }
        out.push_str("</table></div>\n");
        if let Some(rest) = groups.get(ROWS..).filter(|rest| !rest.is_empty()) {
            let more = number(rest.len() as u64);
            writeln!(out, "<p class=\"dim\">and {more} more (--json has them all)</p>")?;
        }
        Ok(())
    }

    fn write_group(&self, out: &mut String, at: usize, change: &VerdictChange) -> Result {
        let VerdictChange { packets, bytes: size, .. } = *change;
        write!(
            out,
            "<tbody id=\"change-{at}\"><tr><td class=\"n\" data-v=\"{packets}\">{}\
             <td class=\"n\" data-v=\"{size}\">{}<td><dl class=\"sides\">",
            number(packets),
            bytes(size)
        )?;
        for (words, side) in [("before", Side::Old), ("now", Side::New)] {
            let (decider, place) = match side {
                Side::Old => (change.old, self.old_place(change.old)),
                Side::New => (change.new, self.new_place(change.new)),
            };
            write!(out, "<div><dt>{words}<dd>")?;
            if let Some((text, line)) = self.line_of(decider, side) {
                line_link(out, text, line)?;
            }
            write!(out, "<code>{}</code></div>", escape(&place.text))?;
        }
        out.push_str("</dl>\n<tr class=\"ex\"><td colspan=\"3\">");
        write_plain_examples(out, &change.examples, &self.numbers)?;
        out.push('\n');
        Ok(())
    }
}
