//! What reaches, as text and as JSON (`tamis.reach/1`).

use std::fmt::Write;

use rules::model::Hook;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::{Closed, Judged, Reach, Reached, Reaching, States};
use super::question::Question;

/// Regions of a decider that are shown before the others are counted.
const SHOWN: usize = 3;

/// What was asked, and how to ask on.
pub struct Asked<'a> {
    /// The rules.
    pub file: &'a str,
    /// What was asked.
    pub question: &'a Question,
    /// Deciders that are shown under each heading.
    pub limit: usize,
    /// The command that tells a packet's story.
    pub why: &'a dyn Fn(&str) -> String,
}

impl Serialize for Reached {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Yes => "reached",
            Self::Perhaps => "perhaps",
            Self::No => "nothing",
        })
    }
}

impl Asked<'_> {
    /// `to 10.0.0.5:80/tcp from 192.0.2.0/24`.
    fn words(&self) -> String {
        let to = self.question.to.map(|to| format!("to {to}"));
        let from = self.question.from.map(|from| format!("from {from}"));
        let words: Vec<String> = to.into_iter().chain(from).collect();
        words.join(" ")
    }
}

impl Reach {
    /// Formats the answer as text for people, which ends with the next command worth typing.
    #[must_use]
    pub fn text(&self, asked: &Asked<'_>) -> String {
        let result = match self.reached() {
            Reached::Yes => "packets that open a connection are let through",
            Reached::Perhaps => {
                "no packet that opens a connection is known to be let through, but some may"
            }
            Reached::No => "no packet that opens a connection is let through",
        };
        let mut text = format!("{}: {result}\n", asked.words());
        let mut told = Vec::new();
        for hook in [Hook::Input, Hook::Forward, Hook::Output] {
            for states in [States::New, States::Any, States::Established] {
                self.heading(&mut text, (hook, states), asked.limit, &mut told);
            }
            if self.too_large.contains(&hook) {
                let _ = writeln!(text, "{}: too large to be followed", hook.chain_name());
            }
        }
        if self.more {
            text.push_str("there are more regions than these\n");
        }
        if self.either_way {
            text.push_str(
                "Whose addresses are this host's is not given (--local): INPUT holds if they are, FORWARD if not.\n",
            );
        }
        if let Some((packet, judged)) = &self.stray {
            let _ = writeln!(
                text,
                "\nno packet that comes in goes there as routes are, or its source cannot come in\n    such as {packet}: {}",
                judged_words(judged)
            );
        }
        if self.is_unrouted {
            text.push_str(
                "Routes and links are too many to follow here: a region holds where routes send its packets that way.\n",
            );
        }
        if self.follows_routes && asked.question.host.sysctl.is_none() {
            text.push_str(
                "Without sysctl.txt, a source comes in only by an interface that the routes lead back to it by (rp_filter).\n",
            );
        }
        if let Some(packet) = self.next() {
            let _ = writeln!(text, "next: {}", (asked.why)(packet));
        }
        text
    }

    /// A packet worth asking about: it is let through, else it may be, else it is not.
    fn next(&self) -> Option<&str> {
        let packet = |witness: &'_ Option<(String, Judged)>| witness.is_some();
        let mut shown = self.regions.iter().filter(|it| packet(&it.witness));
        let first = shown.next().and_then(|it| it.witness.as_ref());
        let probe = self.closed.iter().find_map(|closed| closed.probe.as_ref());
        first.or(probe).or(self.stray.as_ref()).map(|(packet, _)| &**packet)
    }

    fn heading(
        &self,
        text: &mut String,
        (hook, states): (Hook, States),
        limit: usize,
        told: &mut Vec<String>,
    ) {
        let here = |it: &&Reaching| it.way == hook && it.states == states;
        let regions: Vec<&Reaching> = self.regions.iter().filter(here).collect();
        let name = heading_words(hook, states);
        let closed = self.closed.iter().find(|it| it.way == hook && it.states == states);
        // Writing to a String cannot fail.
        if let Some(Closed { probe: Some((packet, judged)), .. }) = closed {
            let _ = writeln!(text, "\n{name}: nothing");
            let _ = writeln!(text, "    such as {packet}: {}", judged_words(judged));
        }
        if regions.is_empty() {
            return;
        }
        let _ = writeln!(text, "\n{name}");
        let groups = regions.chunk_by(|a, b| head(a) == head(b));
        let count = groups.clone().count();
        for group in groups.take(limit) {
            group_text(text, group, told);
        }
        if count > limit {
            let _ = writeln!(text, "  and {} more (--limit N, or --json)", count - limit);
        }
    }

    /// Returns the answer as JSON.
    #[must_use]
    pub fn json(&self, asked: &Asked<'_>) -> Value {
        let Question { to, from, input, output, .. } = asked.question;
        json!({
            "schema": "tamis.reach/1",
            "file": asked.file,
            "to": to.map(|to| to.to_string()),
            "from": from.map(|from| from.to_string()),
            "in": input,
            "out": output,
            "result": self.reached(),
            "regions": self.regions.iter().map(region_json).collect::<Vec<_>>(),
            "closed": self.closed.iter().map(closed_json).collect::<Vec<_>>(),
            "cut_off": self.more,
            "too_large": self.too_large.iter().map(|hook| way_name(*hook)).collect::<Vec<_>>(),
            "either_way": self.either_way,
            "unrouted": self.is_unrouted,
        })
    }
}

fn heading_words(hook: Hook, states: States) -> String {
    let which = match states {
        States::New => ", new connections",
        States::Established => ", connections that stand (ESTABLISHED, RELATED)",
        States::Any => ", new connections (not tracked)",
    };
    format!("{}{which}", hook.chain_name())
}

fn way_name(hook: Hook) -> String {
    hook.chain_name().to_lowercase()
}

/// The line above regions: what lets them through.
fn head(region: &Reaching) -> String {
    let perhaps = if region.is_certain { "" } else { "perhaps " };
    let by = match &region.by {
        Some((0, text)) => format!("by {text}"),
        Some((line, text)) => format!("by line {line}: {text}"),
        None => "by no rule".to_owned(),
    };
    match &region.translated {
        None => format!("{perhaps}{by}"),
        Some(other) => {
            format!("{perhaps}{by}\n  sent on to {} by line {}: {}", other.to, other.line, other.by)
        }
    }
}

fn group_text(text: &mut String, group: &[&Reaching], told: &mut Vec<String>) {
    let Some(first) = group.first() else { return };
    let _ = writeln!(text, "  {}", head(first));
    for region in group.iter().take(SHOWN) {
        let _ = writeln!(text, "    {}", region.piece);
        for (line, by) in region.leaves_as.iter().take(SHOWN) {
            let _ = writeln!(text, "      leaves with another source by line {line}: {by}");
        }
        if let Some((packet, judged)) = &region.witness {
            match judged.verdict.as_str() {
                "accept" => {
                    let _ = writeln!(text, "      such as {packet}");
                }
                _ => {
                    let _ = writeln!(text, "      such as {packet}: {}", judged_words(judged));
                }
            }
        }
    }
    if group.len() > SHOWN {
        let _ = writeln!(text, "    and {} more regions", group.len() - SHOWN);
    }
    for test in &first.depends {
        match hint(test).filter(|_| !told.contains(test)) {
            Some(hint) => {
                let _ = writeln!(text, "    depends on {test}: {hint}");
                told.push(test.clone());
            }
            None => {
                let _ = writeln!(text, "    depends on {test}");
            }
        }
    }
}

fn judged_words(judged: &Judged) -> String {
    let by = judged.by.as_ref().map(|(line, text)| match line {
        0 => format!(" by {text}"),
        line => format!(" by line {line}: {text}"),
    });
    let because = match &judged.because[..] {
        [] => String::new(),
        all => format!(" ({})", all.join("; ")),
    };
    format!("{}{}{because}", judged.verdict, by.unwrap_or_default())
}

/// What to type to know what a test says.
fn hint(test: &str) -> Option<&'static str> {
    let name = test.strip_prefix("-m ").unwrap_or(test).split([' ', ':']).next()?;
    Some(match name {
        "set" => "--ipset FILE (`ipset save`) tells",
        "mark" => "mark=N in a packet spec for `tamis why` tells",
        "addrtype" => "--local ADDRESS and --routes FILE (`ip route show table all`) tell",
        "rpfilter" | "socket" | "realm" => "--routes FILE (`ip route show table all`) tells",
        "physdev" => "--links FILE (`ip -d -o link`), or a capture, tells",
        "limit" | "hashlimit" | "recent" | "connlimit" | "quota" | "statistic" => {
            "other packets decide: `tamis replay` of a capture tells"
        }
        "whether" => "--local ADDRESS, or a folder of `tamis collect`, tells",
        "what" | "the" => "--addr IFACE=ADDRESS, or a folder of `tamis collect`, may tell",
        "time" => "the time of a capture tells",
        _ => return None,
    })
}

fn region_json(region: &Reaching) -> Value {
    let fields: Map<String, Value> = region
        .piece
        .fields
        .iter()
        .map(|(part, words)| (part.name().to_owned(), json!(words)))
        .collect();
    json!({
        "way": way_name(region.way),
        "states": region.states.name(),
        "certain": region.is_certain,
        "fields": fields,
        "words": region.piece.to_string(),
        "line": line(&region.by),
        "by": region.by.as_ref().map(|(_, text)| text),
        "translated": region.translated.as_ref().map(|it| json!({"to": it.to, "line": it.line, "by": it.by})),
        "leaves_as": region.leaves_as.iter().map(|(line, by)| json!({"line": line, "by": by})).collect::<Vec<_>>(),
        "depends": region.depends,
        "witness": region.witness.as_ref().map(|(packet, judged)| witness_json(packet, judged)),
    })
}

fn closed_json(closed: &Closed) -> Value {
    json!({
        "way": way_name(closed.way),
        "states": closed.states.name(),
        "witness": closed.probe.as_ref().map(|(packet, judged)| witness_json(packet, judged)),
    })
}

fn witness_json(packet: &str, judged: &Judged) -> Value {
    json!({
        "packet": packet,
        "verdict": judged.verdict,
        "line": line(&judged.by),
        "by": judged.by.as_ref().map(|(_, text)| text),
        "place": judged.place,
        "because": judged.because,
    })
}

fn line(by: &Option<(u32, String)>) -> Option<u32> {
    by.as_ref().map(|(line, _)| *line).filter(|line| *line > 0)
}
