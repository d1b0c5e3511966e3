//! A recording as a cases file.

use std::fmt::Write;

use dataplane::Config;
use packet::visible::word;

use super::kinds::{Recorded, Recording};
use crate::cases::Decided;
use crate::report::ct_name;
use crate::spec::CT;

impl Recording {
    /// The cases file. `rules` is what it is to say of its rules: their files, from where it will lie.
    #[must_use]
    pub fn toml(&self, rules: [Option<&str>; 2], captures: &[String]) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_heading(&mut out, captures);
        for (key, file) in ["rules", "rules6"].into_iter().zip(rules) {
            let _ = file.map(|file| writeln!(out, "{key} = {}", quoted(file)));
        }
        out.push_str(&defaults(&self.setup.config));
        for case in &self.cases {
            let _ = self.write_case(&mut out, case);
        }
        out
    }

    fn write_heading(&self, out: &mut String, captures: &[String]) -> std::fmt::Result {
        let captures = captures.join(" ");
        writeln!(
            out,
            "# Recorded from {}: {} packets, {} cases.",
            word(&captures),
            self.packets,
            self.case_count()
        )?;
        let left_out = [
            (self.unknown, "packets whose verdict is unknown"),
            (self.skipped, "packets that were not evaluated"),
            (self.not_in_words, "kinds of packets that a SPEC cannot reproduce"),
            (self.cut, "packets beyond --limit"),
        ];
        for (count, what) in left_out.iter().filter(|(count, _)| *count > 0) {
            writeln!(out, "# Left out: {count} {what}.")?;
        }
        for warning in &self.warnings {
            writeln!(out, "# Warning: {}", word(warning))?;
        }
        writeln!(
            out,
            "# This is what the rules do, not what they should: keep the cases that you mean."
        )
    }

    fn write_case(&self, out: &mut String, case: &Recorded) -> std::fmt::Result {
        let Recorded { frame, specs, got } = case;
        let Some(last) = got.last() else { return Ok(()) };
        let by = last.by.as_ref();
        let frame = self.numbers.show(*frame);
        let place = by.map(|by| by.place.to_string()).or_else(|| last.either.clone());
        let place = place.map_or_else(String::new, |place| format!(" by {place}"));
        writeln!(out, "\n[[case]]")?;
        writeln!(out, "name = {}", quoted(&format!("frame {frame}: {}{place}", last.verdict)))?;
        match &specs[..] {
            [spec] => writeln!(out, "packet = {}", quoted(spec))?,
            _ => {
                let lines: String = specs.iter().map(|s| format!("  {},\n", quoted(s))).collect();
                writeln!(out, "packets = [\n{lines}]")?;
            }
        }
        let verdicts: Vec<&str> = got.iter().map(|got| got.verdict).collect();
        match verdicts.iter().all(|verdict| *verdict == last.verdict) {
            true => writeln!(out, "expect = {}", quoted(last.verdict))?,
            false => writeln!(out, "expect = {}", list(verdicts.into_iter().map(quoted)))?,
        }
        match by.filter(|_| self.pins) {
            // A rule's text stays when rules come and go before it; its number does not.
            Some(Decided { is_rule: true, text, .. }) => {
                writeln!(out, "by_text = {}", quoted(text))
            }
            Some(by) => writeln!(out, "by = {}", quoted(&by.place.to_string())),
            None => Ok(()),
        }
    }
}

/// A case about one packet spec, as it is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// `name`.
    pub name: String,
    /// `packet`.
    pub packet: String,
    /// `expect`.
    pub expect: String,
    /// `by`.
    pub by: Option<String>,
}

/// A cases file of such cases; `heading` says where they are from, `rules` names the rules as in [`Recording::toml`].
#[must_use]
pub fn written(
    heading: &str,
    rules: [Option<&str>; 2],
    config: &Config,
    cases: &[Written],
) -> String {
    let mut out = format!(
        "# {}\n# This is what the rules do, not what they should: keep the cases that you mean.\n",
        word(heading)
    );
    let mut key = |key: &str, value: &str| out.push_str(&format!("{key} = {}\n", quoted(value)));
    for (name, file) in ["rules", "rules6"].into_iter().zip(rules) {
        file.iter().for_each(|file| key(name, file));
    }
    out.push_str(&defaults(config));
    for Written { name, packet, expect, by } in cases {
        out.push_str("\n[[case]]\n");
        let keys = [("name", Some(name)), ("packet", Some(packet)), ("expect", Some(expect))];
        for (key, value) in keys.into_iter().chain([("by", by.as_ref())]) {
            value.iter().for_each(|value| out.push_str(&format!("{key} = {}\n", quoted(value))));
        }
    }
    out
}

/// `[defaults]` for the configuration that the capture was evaluated with.
pub(super) fn defaults(config: &Config) -> String {
    let mut lines = String::new();
    let mut key = |key: &str, value: String| lines.push_str(&format!("{key} = {value}\n"));
    if let Some(name) = &config.input {
        key("in", quoted(name));
    }
    if let Some(name) = &config.output {
        key("out", quoted(name));
    }
    if !config.nets.is_empty() {
        let nets = config.nets.iter().map(|(name, net)| quoted(&format!("{name}={net}")));
        key("net", list(nets));
    }
    if let Some(local) = &config.host.local {
        key("local", list(local.iter().map(|net| quoted(&net.to_string()))));
    }
    if let Some(path) = config.path {
        key("path", quoted(path.name()));
    }
    if config.ct.mode != CT {
        key("ct", quoted(ct_name(config.ct.mode)));
    }
    let queues = config.host.queues.words();
    if !queues.is_empty() {
        key("queue-verdict", list(queues.iter().map(|text| quoted(text))));
    }
    if lines.is_empty() { lines } else { format!("\n[defaults]\n{lines}") }
}

/// A list of TOML values.
fn list(members: impl Iterator<Item = String>) -> String {
    format!("[{}]", members.collect::<Vec<_>>().join(", "))
}

/// A TOML string.
fn quoted(text: &str) -> String {
    ::toml::Value::from(text).to_string()
}
