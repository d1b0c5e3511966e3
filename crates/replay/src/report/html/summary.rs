//! The head of the page: what was replayed, the result in one sentence and one table, and what was
//! taken for granted.

use std::fmt::{Result, Write};

use rules::save::FamilyFrom;
use serde_json::Value;

use super::markup::{escape, line_link};
use crate::report::text::{bytes, duration, number, percent, plural, squeezed_text, unseen_text};
use crate::report::{Capture, Count, Report};
use crate::time_text::time_text;

/// What is printed of a replay that Ctrl-C ended.
const STOPPED: &str = "Stopped before the end of the captures: this is a part.";
/// Captures named one by one; the command at the end of the page has them all.
const CAPTURES: usize = 6;

impl Report {
    /// Names, and the whole report in one sentence.
    pub(super) fn write_masthead(&self, out: &mut String) -> Result {
        let names = |names: Vec<&str>| names.iter().map(|name| escape(name)).collect::<Vec<_>>();
        let rules = names(self.files.iter().map(|file| base_name(&file.file)).collect());
        let captures = names(self.captures.iter().map(|c| base_name(&c.name.file)).collect());
        let captures = match captures.as_slice() {
            [] => "no capture".to_owned(),
            [first, rest @ ..] if rest.len() > 2 => format!("{first} and {} more", rest.len()),
            few => few.join(", "),
        };
        let rules = rules.join(" + ");
        let new = self.changes.iter().flat_map(|changes| &changes.files);
        let new = names(new.map(|file| base_name(&file.file)).collect()).join(" + ");
        let versus = if new.is_empty() { new } else { format!("<span>vs</span> {new} ") };
        let stopped = if self.interrupted { format!(" {STOPPED}") } else { String::new() };
        writeln!(
            out,
            "<header>\n<p class=\"brand\">tamis replay</p>\n\
             <h1>{rules} {versus}<span>on</span> {captures}</h1>\n<p class=\"lede\">{}{stopped}</p>\n</header>",
            escape(&self.sentence())
        )
    }

    fn sentence(&self) -> String {
        let share = |count: Count| percent(count.packets as f64 / self.packets.max(1) as f64);
        let mut ends = Vec::new();
        for (word, count) in [
            ("accepted", self.verdicts.accept),
            ("dropped", self.verdicts.drop),
            ("rejected", self.verdicts.reject),
            ("unknown", self.verdicts.unknown),
            ("skipped", self.verdicts.skip),
        ] {
            if count.packets > 0 {
                ends.push(format!("{} {word}", share(count)));
            }
        }
        let span = self.span().map_or_else(String::new, |(first, last)| {
            format!(" in {}", duration(last.saturating_sub(first)))
        });
        let changed =
            self.changes.as_ref().map_or_else(String::new, |changes| match changes.packets {
                0 => " No verdict changes.".to_owned(),
                1 => " 1 changes verdict.".to_owned(),
                packets => format!(" {} change verdict.", number(packets)),
            });
        let never = self.never_hit();
        let ends = if ends.is_empty() { String::new() } else { format!(": {}", ends.join(", ")) };
        format!(
            "{}{span}{ends}.{changed} {} of {} never hit.",
            plural(self.packets, "packet"),
            number(never.never()),
            plural(never.rules, "rule")
        )
    }

    /// What the captures contradict, before everything else.
    pub(super) fn write_contradictions(&self, out: &mut String) -> Result {
        let all = self.contradictions.by();
        if all.is_empty() {
            return Ok(());
        }
        let packets = plural(self.contradictions.packets(), "packet");
        writeln!(
            out,
            "<div class=\"contradicted\" id=\"contradicted\">\n<h2>Contradicted by the captures: {packets}</h2>"
        )?;
        out.push_str("<p>The captures show them leaving. Rules, host and captures are not of one time, or tamis is wrong.\n<ul>\n");
        for (what, count) in all {
            let (_, text) = self.contradicted(what);
            let example = escape(&self.numbers.show(count.example).to_string());
            writeln!(
                out,
                "<li>{}: {}, such as #{example}",
                escape(&text),
                plural(count.packets, "packet")
            )?;
        }
        out.push_str("</ul>\n</div>\n");
        Ok(())
    }

    /// Earliest and latest time of all captures.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        let first = self.captures.iter().filter_map(|capture| capture.first).min()?;
        let last = self.captures.iter().filter_map(|capture| capture.last).max()?;
        Some((first, last))
    }

    /// The table of verdicts, and beside it what was read and assumed.
    pub(super) fn write_summary(&self, out: &mut String) -> Result {
        self.write_contradictions(out)?;
        out.push_str("<div class=\"two\">\n<div>\n");
        if self.changes.is_some() {
            let names: Vec<&str> = self.files.iter().map(|file| base_name(&file.file)).collect();
            writeln!(out, "<h3>Under {}</h3>", escape(&names.join(" + ")))?;
        }
        self.write_verdicts(out)?;
        out.push_str("</div>\n<div>\n<h3>Read</h3>\n<dl>\n");
        self.write_read(out)?;
        out.push_str("</dl>\n<h3>Assumed</h3>\n<dl>\n");
        self.write_assumed(out)?;
        out.push_str("</dl>\n</div>\n</div>\n");
        Ok(())
    }

    fn write_verdicts(&self, out: &mut String) -> Result {
        out.push_str(
            "<table id=\"verdict-table\">\n<thead><tr><th scope=\"col\">verdict<th scope=\"col\" class=\"n\">packets\
             <th scope=\"col\" class=\"n\">share<td class=\"w\"><th scope=\"col\" class=\"n\">bytes</thead>\n<tbody>\n",
        );
        for (name, count) in [
            ("accept", self.verdicts.accept),
            ("drop", self.verdicts.drop),
            ("reject", self.verdicts.reject),
            ("unknown", self.verdicts.unknown),
            ("skip", self.verdicts.skip),
        ] {
            self.write_verdict(out, name, count)?;
        }
        writeln!(
            out,
            "<tfoot><tr><th scope=\"row\">all<td class=\"n\">{}<td><td><td></tfoot>\n</table>",
            number(self.packets)
        )
    }

    fn write_verdict(&self, out: &mut String, name: &str, count: Count) -> Result {
        let share = count.packets as f64 / self.packets.max(1) as f64;
        let none = if count.packets == 0 { " class=\"none\"" } else { "" };
        writeln!(
            out,
            "<tr{none}><th scope=\"row\"><i class=\"key {name}\"></i>{name}<td class=\"n\">{}<td class=\"n\">{}\
             <td class=\"w\"><span class=\"bar {name}\" style=\"width:{:.2}%\"></span>\
             <td class=\"n\" data-v=\"{}\" title=\"{} B\">{}",
            number(count.packets),
            percent(share),
            share * 100.0,
            count.bytes,
            number(count.bytes),
            bytes(count.bytes)
        )
    }

    fn write_read(&self, out: &mut String) -> Result {
        let new = self.changes.iter().flat_map(|changes| &changes.files);
        for file in self.files.iter().chain(new) {
            let ruleset = &file.ruleset;
            let tables: Vec<_> = ruleset.tables.iter().map(|table| ruleset.title(table)).collect();
            let words = format!(
                "{}, {} in {} ({})",
                file.tool(),
                plural(file.rules().count() as u64, "rule"),
                plural(ruleset.chain_count() as u64, "chain"),
                tables.join(", ")
            );
            fact(out, &file.names(), &words)?;
        }
        for capture in self.captures.iter().take(CAPTURES) {
            fact(out, &capture.name.given, &capture_words(capture))?;
        }
        if let Some(rest) = self.captures.get(CAPTURES..).filter(|rest| !rest.is_empty()) {
            let packets = rest.iter().map(|capture| capture.count.packets).sum();
            let words = format!("captures, {}", plural(packets, "packet"));
            fact(out, &format!("and {} more", rest.len()), &words)?;
        }
        if let Some((first, last)) = self.span() {
            for (what, time) in [("from", first), ("to", last)] {
                let full = time_text(time);
                let (day, clock) = full.trim_end_matches('Z').split_once('T').unwrap_or_default();
                writeln!(
                    out,
                    "<div><dt>{what}<dd><span>{day}</span> <span>{clock} UTC</span></div>"
                )?;
            }
        }
        Ok(())
    }

    fn write_assumed(&self, out: &mut String) -> Result {
        let assumed = self.assumed();
        if self.files.iter().any(|file| file.family_from == FamilyFrom::Assumed) {
            fact(out, "family", "ip, which nothing in the rules contradicts (--family)")?;
        }
        fact(out, "path", &format!("{} (--path, --local)", self.path().0))?;
        fact(out, "input", &interface(self.config.input.as_deref(), "--in", self.input_unknown))?;
        fact(
            out,
            "output",
            &interface(self.config.output.as_deref(), "--out", self.output_unknown),
        )?;
        for key in ["nets", "local", "addresses"] {
            if let Some(list) = assumed[key].as_array().filter(|list| !list.is_empty()) {
                let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                let name = match key {
                    "nets" => "networks",
                    "local" => "own",
                    _ => "addresses",
                };
                fact(out, name, &list.join(", "))?;
            }
        }
        match assumed["ct"].as_str() {
            Some("off") => fact(out, "ct", "off: connection states count as unknown")?,
            mode => fact(out, "ct", mode.unwrap_or_default())?,
        }
        if let Some(words) = self.kernel_assumed() {
            fact(out, "kernel", &words)?;
        }
        let queues = self.config.host.queues.to_string();
        if !queues.is_empty() {
            fact(out, "queues", &queues)?;
        }
        if let Some(zone) = &self.config.host.zone {
            fact(out, "time zone", &zone.to_string())?;
        }
        if self.offload > 0 {
            let words = format!("{} as long as the wire says", plural(self.offload, "packet"));
            fact(out, "offload", &words)?;
        }
        Ok(())
    }

    /// Skipped packets, and what was odd about rules and captures.
    pub(super) fn write_notes(&self, out: &mut String) -> Result {
        let mut notes = String::new();
        for (packets, why) in self.skips() {
            writeln!(notes, "<li>skipped {}: {why}", plural(packets, "packet"))?;
        }
        let unseen = self.unseen().map(unseen_text);
        let squeezed = Some(self.squeezed_packets).filter(|packets| *packets > 0);
        let squeezed = squeezed.map(squeezed_text);
        for note in squeezed.into_iter().chain(unseen).chain(self.order_notes()) {
            writeln!(notes, "<li>{}", escape(&note))?;
        }
        for (index, file) in self.files.iter().enumerate() {
            for warning in &file.warnings {
                write!(notes, "<li>{} ", escape(&file.file))?;
                line_link(&mut notes, index, warning.line)?;
                let times = number(u64::from(warning.count));
                let times =
                    if warning.count > 1 { format!(" ({times} times)") } else { String::new() };
                writeln!(notes, "{}{times}", escape(&warning.what))?;
            }
        }
        for warning in &self.warnings {
            writeln!(notes, "<li>{}", escape(warning))?;
        }
        if notes.is_empty() { Ok(()) } else { writeln!(out, "<ul class=\"notes\">\n{notes}</ul>") }
    }
}

fn interface(given: Option<&str>, flag: &str, unknown: u64) -> String {
    match given {
        Some(name) => format!("{name} ({flag})"),
        None if unknown == 0 => "known for every packet".to_owned(),
        None => format!("unknown for {} ({flag}, --net)", plural(unknown, "packet")),
    }
}

fn fact(out: &mut String, what: &str, words: &str) -> Result {
    writeln!(out, "<div><dt>{}<dd>{}</div>", escape(what), escape(words))
}

fn capture_words(capture: &Capture) -> String {
    let span = match (capture.first, capture.last) {
        (Some(first), Some(last)) => format!(", {}", duration(last.saturating_sub(first))),
        _ => ", without times".to_owned(),
    };
    let Count { packets, bytes: wire } = capture.count;
    format!("{}, {} on the wire{span}", plural(packets, "packet"), bytes(wire))
}

/// The last part of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}
