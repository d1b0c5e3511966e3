//! Replays and `why` as calls: the documents of the command line, without a process, a file that is written, or root.
//!
//! Contract: documents and options are the same as for `tamis replay --json` and `tamis why --json`, but for options of
//! files to write and of what stands on a terminal. Standard input is the JVM's, and is not read. A call holds nothing
//! once it returns.

use std::io::{self, Write};

use conntrack::Mode;
use replay::run::{self, List, Wanted};
use replay::spec::{self, Spec};
use replay::walk::{WalkOptions, words};
use replay::{CaptureName, Filter, RulesFile, Selection, json_text, why};

use crate::entry::Thrown;
use crate::options::{Options, backend, number, one_of};

/// Packets that a list shows without a limit.
const LISTED: usize = 20;

/// What a replay is asked, besides how packets walk.
struct Asked {
    list: Option<List>,
    limit: Option<usize>,
    new: Option<New>,
    selection: Selection,
    threads: usize,
}

/// The rules that others are compared with.
struct New {
    rules: String,
    rules6: Option<String>,
    semantics: Option<rules::Backend>,
}

/// `tamis --json replay`: `tamis.replay/1`.
///
/// # Errors
/// A file cannot be read, or an option is refused.
pub fn replay(rules: &[String], captures: &[String], options: &str) -> Result<String, Thrown> {
    let mut options = Options::of(options)?;
    let (rules, walk) = walk(rules, &mut options)?;
    let asked = Asked::of(&mut options)?;
    options.end()?;
    if captures.is_empty() {
        return Err(Thrown("expected a capture, found none".to_owned()));
    }
    named(captures)?;
    let files = walk.open(rules)?;
    let setup = walk.setup(rules, Mode::Midstream)?;
    let mut wanted = asked.wanted(rules, &walk)?;
    let report = run::replay(&files, captures, &setup, &mut wanted)?;
    document(|out| report.write_json(out))
}

/// `tamis --json why`: `tamis.why/1`, of the packet of a capture that has this number, from 1. Without a capture it is that
/// of the option `packet`: a packet spec, or several, which are a conversation.
///
/// # Errors
/// A file cannot be read, an option is refused, or there is no such packet.
pub fn why(
    rules: &[String],
    capture: Option<&str>,
    packet: i64,
    options: &str,
) -> Result<String, Thrown> {
    let mut options = Options::of(options)?;
    let (rules, walk) = walk(rules, &mut options)?;
    let near = options.value("near", near)?;
    let specs = options.texts("packet")?;
    options.end()?;
    let files = walk.open(rules)?;
    let story = match (capture, specs.split_last()) {
        (Some(capture), None) => {
            let captures = [capture.to_owned()];
            named(&captures)?;
            let setup = walk.setup(rules, Mode::Midstream)?;
            why::of_capture(&files, &setup, &captures, &packet.to_string(), near)?
        }
        (None, Some((last, before))) => {
            let before = before.iter().map(|packet| spec::parse(packet));
            let before = before.collect::<Result<Vec<Spec>, _>>()?;
            let setup = walk.setup(rules, spec::CT)?;
            why::of_conversation(&files, &setup, &before, &spec::parse(last)?, near)
        }
        (_, given) => {
            let found = if given.is_some() { "both" } else { "none" };
            return Err(Thrown(format!("expected a capture or --packet, found {found}")));
        }
    };
    document(|out| json_text::pretty(out, &story.json()))
}

impl Asked {
    fn of(options: &mut Options) -> Result<Self, Thrown> {
        let list = options.value("list", list)?;
        let limit = options.value("limit", number)?;
        let (vs, rules6) = (options.text("vs")?, options.text("vs6")?);
        let semantics = options.value("vs-semantics", backend)?;
        let needs = [
            ("--limit", limit.is_some(), "--list", list.is_some()),
            ("--list change", list == Some(List::Change), "--vs", vs.is_some()),
            ("--vs6", rules6.is_some(), "--vs", vs.is_some()),
            ("--vs-semantics", semantics.is_some(), "--vs", vs.is_some()),
        ];
        if let Some((one, _, other, _)) = needs.iter().find(|(_, is, _, has)| *is && !has) {
            return Err(Thrown(format!("{one}: expected {other}, too")));
        }
        Ok(Self {
            list,
            limit,
            new: vs.map(|rules| New { rules, rules6, semantics }),
            selection: Selection {
                filter: options.text("filter")?.as_deref().map(Filter::new).transpose()?,
                from: options.value("from", words::moment)?,
                to: options.value("to", words::moment)?,
                count: options.value("count", number)?,
            },
            threads: options.value("jobs", words::threads)?.unwrap_or(1),
        })
    }

    fn wanted(self, host: &str, walk: &WalkOptions) -> Result<Wanted<'static>, Thrown> {
        let versus = |New { rules, rules6, semantics }: New| {
            named(rules6.iter().chain([&rules]))?;
            let files = walk.open_on(host, &rules, rules6.as_deref(), semantics)?;
            Ok::<Vec<RulesFile>, Thrown>(files)
        };
        Ok(Wanted {
            list: self.list.map(|list| (list.into(), self.limit.unwrap_or(LISTED))),
            selection: self.selection,
            versus: self.new.map(versus).transpose()?,
            threads: self.threads,
            ..Wanted::default()
        })
    }
}

/// The rules, or the folder of a host, and how packets walk under them: IPv6 rules may stand second.
fn walk<'r>(rules: &'r [String], options: &mut Options) -> Result<(&'r str, WalkOptions), Thrown> {
    let mut walk = options.walk()?;
    match rules {
        [_] => {}
        [_, second] if walk.rules6.is_none() => walk.rules6 = Some(second.clone()),
        _ => {
            let found = rules.len() + usize::from(walk.rules6.is_some());
            return Err(Thrown(format!("expected rules, and IPv6 rules at most, found {found}")));
        }
    }
    named(rules.iter().chain(&walk.rules6))?;
    Ok((&rules[0], walk))
}

/// Refuses standard input, which the JVM reads.
fn named<'n>(files: impl IntoIterator<Item = &'n String>) -> Result<(), Thrown> {
    match files.into_iter().any(|name| CaptureName::parse(name).file == "-") {
        true => Err(Thrown("expected a file, found - (standard input)".to_owned())),
        false => Ok(()),
    }
}

fn list(text: &str) -> Result<List, String> {
    let words = [
        ("drop", List::Drop),
        ("reject", List::Reject),
        ("unknown", List::Unknown),
        ("change", List::Change),
    ];
    one_of(&words, text)
}

/// How many near misses a story tells.
fn near(text: &str) -> Result<usize, String> {
    let near: usize = number(text)?;
    if (1..=1000).contains(&near) { Ok(near) } else { Err("expected 1 to 1000".to_owned()) }
}

/// Returns what `write` writes, as text.
fn document(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<String, Thrown> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    Ok(String::from_utf8(bytes)?)
}
