//! What `--list` shows: packets one by one, and rules that no packet hit.

use std::fmt::Write;

use dataplane::FinalVerdict;
use serde_json::{Value, json};

use super::text::{number, plural};
use super::{Listed, Report};
use crate::time_text::time_text;

impl Report {
    /// The packets of the list, each in a line with its time, its verdict and why.
    pub(super) fn list_text(&self, out: &mut String) -> std::fmt::Result {
        let Some(listing) = &self.listing else { return Ok(()) };
        if !listing.lists.has_packets() || self.groups.iter().any(|grouping| grouping.asked) {
            return Ok(());
        }
        let lists: Vec<&str> = listing.lists.packets().collect();
        let (shown, found) = (self.listed.len() as u64, listing.found);
        let more = match shown < found {
            true => format!(" (--limit {found} shows all)"),
            false => String::new(),
        };
        let packets = plural(found, "packet");
        writeln!(out, "\nLIST {}: {} of {packets}{more}", lists.join(","), number(shown))?;
        self.listed.iter().try_for_each(|listed| self.listed_text(out, listed))
    }

    fn listed_text(&self, out: &mut String, listed: &Listed) -> std::fmt::Result {
        let place = self.old_place(listed.by);
        let why = match listed.disposition.verdict {
            FinalVerdict::Unknown | FinalVerdict::Skip(_) => format!("  {}", place.with_line()),
            FinalVerdict::Accept(_) | FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => {
                format!("  by {}", place.with_line())
            }
        };
        let word = listed.disposition.verdict.word();
        let new = self.listed_new(listed).map_or_else(String::new, |(word, place)| {
            format!("  -> {word} by {}", place.with_line())
        });
        let frame = self.numbers.words(listed.frame);
        let time = listed.time.map_or_else(String::new, |time| self.since_start(time) + " ");
        writeln!(out, "#{frame} {time}{word}: {}{why}{new}", listed.packet)
    }

    /// What was asked for by `--list`, and how many packets there are.
    pub(super) fn listing_json(&self) -> Option<Value> {
        let listing = self.listing.as_ref().filter(|listing| listing.lists.has_packets())?;
        let lists: Vec<&str> = listing.lists.packets().collect();
        Some(json!({ "lists": lists, "limit": listing.limit, "packets": listing.found }))
    }

    /// The same as JSON.
    pub(super) fn listed_json(&self) -> Value {
        let listed = self.listed.iter().map(|listed| {
            let by = self.decided_by(&listed.disposition);
            let new = self.listed_new(listed);
            json!({
                "capture": self.numbers.file(listed.frame),
                "frame": self.numbers.frame(listed.frame),
                "time": listed.time.map(time_text),
                "packet": listed.packet,
                "verdict": listed.disposition.verdict.word(),
                "line": by.as_ref().map(|(line, _)| line),
                "by": by.map(|(_, text)| text),
                "why": self.old_place(listed.by).with_line(),
                "new_verdict": new.as_ref().map(|(word, _)| word),
                "new_line": new.as_ref().and_then(|(_, place)| place.line),
                "new_by": new.map(|(_, place)| place.text),
            })
        });
        listed.collect()
    }
}
