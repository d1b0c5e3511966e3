//! `-j SET`: adds the packet to an ipset, removes it from one, or takes marks from one, and goes on.
//!
//! Whether a set exists is not checked: sets are not part of save text. One that does not exist is not
//! changed, and marks from it are unknown.
//! Source: iptables-extensions(8); kernel `net/netfilter/xt_set.c`.

use crate::error::What;
use crate::ext::matches::set::sides_text;
use crate::ext::{
    Alters, Args, Course, Effect, Given, IP, Opt, Printer, Support, Target, TargetKind,
};
use crate::family::{Hook, TableKind};
use crate::ipset::{Addition, CounterTest, Query, Sets, Touched};
use crate::predicate::{Change, Field};
use crate::transit::Transit;
use crate::value;
use packet::Mark;

pub(crate) static KIND: TargetKind = TargetKind {
    name: "SET",
    families: IP,
    options: &[
        Opt::pair("add-set"),
        Opt::pair("del-set"),
        Opt::pair("map-set"),
        Opt::flag("exist"),
        Opt::value("timeout"),
        Opt::flag("map-mark"),
        Opt::flag("map-prio"),
        Opt::flag("map-queue"),
    ],
    support: Support::Evaluated,
    parse,
};

const MAX_NAME: usize = 31;
const MAX_DIMENSIONS: usize = 6;
const MAX_TIMEOUT: u64 = u32::MAX as u64 - 1;
const MAPS: [&str; 3] = ["map-mark", "map-prio", "map-queue"];

#[derive(Debug)]
struct Set {
    add: Option<Member>,
    exist: bool,
    timeout: Option<u32>,
    del: Option<Member>,
    map: Option<Member>,
    /// Which of [`MAPS`].
    maps: [bool; 3],
}

/// A set and what of the packet is looked up in it.
#[derive(Debug)]
struct Member {
    set: Box<str>,
    /// For each dimension: the source side of the packet.
    by_source: Box<[bool]>,
}

fn parse(args: &Args<'_>) -> Result<Box<dyn Target>, What> {
    args.any_of(&["add-set", "del-set", "map-set"])?;
    for name in ["exist", "timeout"] {
        if args.has(name) && !args.has("add-set") {
            return Err(args.expected(format!("--add-set for --{name}")));
        }
    }
    let timeout = args.get("timeout").map(|given| {
        value::number(given.text(), MAX_TIMEOUT)
            .map(|seconds| seconds as u32)
            .ok_or_else(|| given.expected(format!("seconds 0-{MAX_TIMEOUT}")))
    });
    Ok(Box::new(Set {
        add: member(args, "add-set")?,
        exist: args.has("exist"),
        timeout: timeout.transpose()?,
        del: member(args, "del-set")?,
        map: member(args, "map-set")?,
        maps: maps(args)?,
    }))
}

fn member(args: &Args<'_>, name: &str) -> Result<Option<Member>, What> {
    let Some(given) = args.get(name) else { return Ok(None) };
    let set = given.text();
    if set.is_empty() || set.len() > MAX_NAME {
        return Err(given.expected(format!("a set name of 1 to {MAX_NAME} bytes")));
    }
    Ok(Some(Member { set: set.into(), by_source: directions(given)? }))
}

/// The tool looks at the first three letters of each direction.
fn directions(given: &Given<'_>) -> Result<Box<[bool]>, What> {
    let is_source = |text: &str| match text.get(..3) {
        Some("src") => Some(true),
        Some("dst") => Some(false),
        _ => None,
    };
    let sides: Option<Vec<bool>> = given.second().split(',').map(is_source).collect();
    sides
        .filter(|sides| sides.len() <= MAX_DIMENSIONS)
        .map(Into::into)
        .ok_or_else(|| given.second_expected("a comma-list of at most 6 src and dst"))
}

fn maps(args: &Args<'_>) -> Result<[bool; 3], What> {
    let maps = MAPS.map(|name| args.has(name));
    let any = maps.contains(&true);
    if !args.has("map-set") {
        return if any { Err(args.expected("--map-set for --map-…")) } else { Ok(maps) };
    }
    args.any_of(&MAPS)?;
    args.needs_table(&[TableKind::MANGLE])?;
    if maps[1] || maps[2] {
        args.needs_hook(&[Hook::Forward, Hook::Output, Hook::Postrouting])?;
    }
    Ok(maps)
}

impl Member {
    fn print(&self, name: &str, to: &mut Printer) {
        to.name(name, &self.set).word(sides_text(&self.by_source));
    }
}

impl Target for Set {
    fn sets(&self) -> Vec<&str> {
        [&self.add, &self.del, &self.map].into_iter().flatten().map(|it| &*it.set).collect()
    }

    /// What it adds and deletes, any packet may look up.
    fn couples_flows(&self, sets: Option<&Sets>) -> bool {
        sets.is_some()
    }

    fn print(&self, to: &mut Printer) {
        if let Some(add) = &self.add {
            add.print("add-set", to);
        }
        if self.exist {
            to.flag(false, "exist");
        }
        if let Some(timeout) = self.timeout {
            to.option(false, "timeout", timeout);
        }
        if let Some(del) = &self.del {
            del.print("del-set", to);
        }
        if let Some(map) = &self.map {
            map.print("map-set", to);
        }
        for (name, given) in MAPS.into_iter().zip(self.maps) {
            if given {
                to.flag(false, name);
            }
        }
    }

    fn course(&self) -> Course {
        Course::Passes(Alters::Unnamed)
    }

    fn changes(&self) -> Vec<Change> {
        let maps_mark = self.map.is_some() && self.maps[0];
        if maps_mark { Change::lost(Field::Mark, 32) } else { Vec::new() }
    }

    fn changes_sets(&self) -> bool {
        true
    }

    fn apply(&self, transit: &mut Transit<'_, '_>) -> Effect {
        let Some(sets) = transit.sets.take() else {
            self.map_unknown(transit);
            return Effect::Continue;
        };
        let again = transit.ct.again;
        if let Some(Member { set, by_source }) = self.add.as_ref().filter(|_| !again) {
            let how = Addition { by_source, exist: self.exist, timeout: self.timeout };
            sets.add(set, &how, transit);
        }
        if let Some(Member { set, by_source }) = self.del.as_ref().filter(|_| !again) {
            sets.remove(set, by_source, transit);
        }
        if let Some(Member { set, by_source }) = &self.map {
            let query = Query {
                by_source,
                return_nomatch: false,
                counts: true,
                counts_members: true,
                tests: [CounterTest::Any; 2],
            };
            let mut touched = Touched::default();
            let found = match again {
                true => sets.search(set, &query, transit, &mut touched),
                false => sets.ask(set, &query, transit, &mut touched),
            };
            match found {
                Some(true) => {
                    let (value, mask) = touched.mark.unwrap_or((0, 0));
                    self.map_mark(value, mask, transit);
                }
                Some(false) => {}
                None => self.map_unknown(transit),
            }
        }
        transit.sets = Some(sets);
        Effect::Continue
    }
}

impl Set {
    fn map_mark(&self, value: u32, mask: u32, transit: &mut Transit<'_, '_>) {
        let [true, ..] = self.maps else { return };
        let unknown = transit.mark.unknown & !mask;
        let value = ((transit.mark.value & !mask) ^ value) & !unknown;
        transit.set_mark(Mark { value, unknown });
    }

    fn map_unknown(&self, transit: &mut Transit<'_, '_>) {
        let [true, ..] = self.maps else { return };
        transit.set_mark(Mark { value: 0, unknown: u32::MAX });
    }
}
