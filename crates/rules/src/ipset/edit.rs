//! [`Sets::restore`]: changes from outside while packets pass, as `ipset restore` makes them.
//!
//! Contract: lines are carried out one after the other, and all of a text or nothing of it: where one is refused, those
//! before it are undone, so no packet sees half a text. Sets of all workers are locked meanwhile, for some hundreds of
//! nanoseconds a line. Times of elements begin with the change. What is refused, and in which words, is ipset's to say;
//! its `restore` keeps what it did before the line.
//!
//! Source: ipset(8); kernel `ip_set_core.c` (`ip_set_uadd`, `ip_set_udel`, `ip_set_flush`, `ip_set_swap`), `mtype_add`,
//! `mtype_del`; the messages of ipset 7.17 (`lib/errcode.c`).

use std::fmt;

use super::element::Element;
use super::store::Extra;
use super::text::{LineWords, Options, options};
use super::undo::{Old, Undo};
use super::{AllSets, Member, Sets};
use crate::error::{LoadError, What};

/// Elements that one text may add and remove; each element of a range counts.
pub const MOST_ELEMENTS: usize = 1 << 16;

const NO_SET: &str = "The set with the given name does not exist";
const NO_MEMBER: &str = "Set to be added/deleted/tested as element does not exist.";
const NESTED: &str = "Sets with list:set type cannot be added to the set.";
const IS_THERE: &str = "Element cannot be added to the set: it's already added";
const IS_NOT_THERE: &str = "Element cannot be deleted from the set: it's not added";
const FULL: &str = "Hash is full, cannot add more elements";
const NO_SECOND: &str = "Sets cannot be swapped: the second set does not exist";
const OTHER_TYPE: &str = "The sets cannot be swapped: their type does not match";

/// What a text has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edited {
    /// Elements that were added, or added again.
    pub added: usize,
    /// Elements that were removed by `del`.
    pub deleted: usize,
    /// Sets that were emptied.
    pub flushed: usize,
    /// Pairs of sets that were swapped.
    pub swapped: usize,
}

/// Why nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditError {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// In ipset's words where they are about sets and elements.
    pub what: String,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error in line {}, column {}: {}", self.line, self.column, self.what)
    }
}

impl std::error::Error for EditError {}

/// A column, and what is wrong there.
type Wrong = (u32, String);

impl Sets {
    /// Carries out lines of `ipset restore`: `add`, `del`, `swap` and `flush`, at a time in nanoseconds since the Unix epoch.
    ///
    /// # Errors
    /// A line is refused: then nothing has changed.
    pub fn restore(&mut self, text: &str, time: u64) -> Result<Edited, EditError> {
        self.edit(text, time, true)
    }

    /// Whether [`Sets::restore`] would carry them out now, and what it would do; nobody sees that it was tried.
    ///
    /// # Errors
    /// A line would be refused.
    pub fn try_restore(&mut self, text: &str, time: u64) -> Result<Edited, EditError> {
        self.edit(text, time, false)
    }

    fn edit(&mut self, text: &str, time: u64, stays: bool) -> Result<Edited, EditError> {
        let (edited, steps) = self.change(|sets| {
            let mut edit = Edit { now: sets.now(Some(time)).unwrap_or(0), ..Edit::of(sets) };
            let edited = edit.lines(text).map(|()| edit.edited);
            let mut steps = std::mem::take(&mut edit.steps);
            if edited.is_err() || !stays {
                sets.undo(std::mem::take(&mut steps));
            }
            (edited, steps)
        });
        // Not under the lock: elements that were flushed are many.
        drop(steps);
        edited
    }
}

/// A text that is being carried out.
struct Edit<'s> {
    sets: &'s mut AllSets,
    /// Nanoseconds since the sets were loaded.
    now: u64,
    edited: Edited,
    steps: Vec<Undo>,
}

impl<'s> Edit<'s> {
    fn of(sets: &'s mut AllSets) -> Self {
        Self { sets, now: 0, edited: Edited::default(), steps: Vec::new() }
    }

    fn lines(&mut self, text: &str) -> Result<(), EditError> {
        for (line, number) in text.lines().zip(1..) {
            self.line(line).map_err(|(column, what)| {
                let LoadError { line, column, what } = What { column, what }.at_line(number);
                EditError { line, column, what }
            })?;
        }
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), Wrong> {
        let mut words = LineWords::new(line);
        let Some((word, column)) = words.next() else { return Ok(()) };
        match word {
            _ if word.starts_with('#') => Ok(()),
            "COMMIT" => Ok(()),
            "add" | "-A" => self.element(&mut words, true),
            "del" | "-D" => self.element(&mut words, false),
            "flush" | "-F" => self.flush(&mut words),
            "swap" | "-W" => self.swap(&mut words),
            _ => Err((column, format!("expected add, del, flush or swap, found \"{word}\""))),
        }
    }

    /// A set that there is.
    fn set(&self, (name, column): (&str, u32), otherwise: &str) -> Result<u32, Wrong> {
        self.sets.index(name).ok_or_else(|| (column, otherwise.to_owned()))
    }

    /// `add` and `del`: SET ELEMENT OPTIONS.
    fn element(&mut self, words: &mut LineWords<'_>, adds: bool) -> Result<(), Wrong> {
        let index = self.set(words.value("add and del").map_err(syntax)?, NO_SET)?;
        let (text, column) = words.value("the element").map_err(syntax)?;
        let options = options(&self.sets.sets[index as usize], words).map_err(syntax)?;
        let at = |what: &str| (column, what.to_owned());
        if self.sets.sets[index as usize].is_list() {
            let member = self.set((text, column), NO_MEMBER)?;
            return self.member(index, member, adds, &options).map_err(at);
        }
        let set = &mut self.sets.sets[index as usize];
        let element = set.element(text, column, options.is_wildcard).map_err(syntax)?;
        if self.steps.len() + element.keys.len() > MOST_ELEMENTS {
            return Err((column, format!("expected at most {MOST_ELEMENTS} elements in one text")));
        }
        let changed = match adds {
            true => self.add(index, &element, &options),
            false => self.delete(index, &element, &options),
        };
        changed.map_err(at)
    }

    fn add(
        &mut self,
        index: u32,
        element: &Element,
        options: &Options,
    ) -> Result<(), &'static str> {
        let set = &mut self.sets.sets[index as usize];
        let new = begun(options.extra, self.now);
        for key in &element.keys {
            let old = set.old(key);
            let extra = old.map_or(new, |old| counting_on(new, old.extra, options.counts));
            let is_there = old.is_some_and(|old| old.extra.expires >= self.now);
            // An address that has no MAC address yet takes one.
            let fills = element.mac.is_some() && old.is_some_and(|old| old.mac.is_none());
            if is_there && !options.exist && !(fills && set.kind.fills_mac()) {
                return Err(IS_THERE);
            }
            if old.is_none() && !set.make_room(self.now) {
                return Err(FULL);
            }
            self.steps.push(Undo::Element { set: index, key: *key, old });
            // An address that has a MAC address keeps it where none is given.
            let mac = element.mac.or(old.and_then(|old| old.mac));
            set.put_element(key, Old { nomatch: options.nomatch, extra, mac });
            self.edited.added += 1;
        }
        Ok(())
    }

    fn delete(
        &mut self,
        index: u32,
        element: &Element,
        options: &Options,
    ) -> Result<(), &'static str> {
        let set = &mut self.sets.sets[index as usize];
        for key in &element.keys {
            let key = &set.held(key);
            let old = set.old(key);
            if old.is_none_or(|old| old.extra.expires < self.now) {
                if options.exist {
                    continue;
                }
                return Err(IS_NOT_THERE);
            }
            self.steps.push(Undo::Element { set: index, key: *key, old });
            set.take_element(key);
            set.has_gaps = true;
            self.edited.deleted += 1;
        }
        Ok(())
    }

    /// A set comes into a list, or goes out of it.
    fn member(
        &mut self,
        list: u32,
        member: u32,
        adds: bool,
        options: &Options,
    ) -> Result<(), &'static str> {
        if self.sets.sets[member as usize].is_list() {
            return Err(NESTED);
        }
        let set = &mut self.sets.sets[list as usize];
        let old = set.members.clone();
        let is_there = set.members.iter().position(|known| known.set == member);
        let new = Member { set: member, extra: begun(options.extra, self.now) };
        match (is_there, adds) {
            (Some(_), true) if !options.exist => return Err(IS_THERE),
            (Some(at), true) => set.members[at] = new,
            (None, true) => set.members.push(new),
            (Some(at), false) => drop(set.members.remove(at)),
            (None, false) if options.exist => return Ok(()),
            (None, false) => return Err(IS_NOT_THERE),
        }
        self.steps.push(Undo::Members { set: list, members: old });
        *(if adds { &mut self.edited.added } else { &mut self.edited.deleted }) += 1;
        Ok(())
    }

    /// `flush [SET]`: one, or all.
    fn flush(&mut self, words: &mut LineWords<'_>) -> Result<(), Wrong> {
        let all = 0..self.sets.sets.len() as u32;
        let flushed = match words.next() {
            Some(name) => {
                let index = self.set(name, NO_SET)?;
                index..index + 1
            }
            None => all,
        };
        ends(words)?;
        for set in flushed {
            let elements = Box::new(self.sets.sets[set as usize].empty());
            self.steps.push(Undo::Elements { set, elements });
            self.edited.flushed += 1;
        }
        Ok(())
    }

    /// `swap ONE OTHER`: each is what the other was, under its own name.
    fn swap(&mut self, words: &mut LineWords<'_>) -> Result<(), Wrong> {
        let one = self.set(words.value("swap").map_err(syntax)?, NO_SET)?;
        let (name, column) = words.value("swap").map_err(syntax)?;
        let other = self.set((name, column), NO_SECOND)?;
        ends(words)?;
        let [first, second] = [one, other].map(|index| &self.sets.sets[index as usize]);
        if !std::ptr::eq(first.kind, second.kind) || first.family != second.family {
            return Err((column, OTHER_TYPE.to_owned()));
        }
        self.sets.sets.swap(one as usize, other as usize);
        self.steps.push(Undo::Swapped(one, other));
        self.edited.swapped += 1;
        Ok(())
    }
}

/// What an element carries that is added at this time.
fn begun(extra: Extra, now: u64) -> Extra {
    Extra { expires: extra.expires.saturating_add(now), ..extra }
}

/// Returns what an existing element carries afterwards: it keeps its counters, unless they are given again.
fn counting_on(new: Extra, old: Extra, [packets, bytes]: [bool; 2]) -> Extra {
    Extra {
        packets: if packets { new.packets } else { old.packets },
        bytes: if bytes { new.bytes } else { old.bytes },
        ..new
    }
}

fn ends(words: &mut LineWords<'_>) -> Result<(), Wrong> {
    match words.next() {
        None => Ok(()),
        Some((word, column)) => {
            Err((column, format!("expected the end of the line, found \"{word}\"")))
        }
    }
}

fn syntax(What { column, what }: What) -> Wrong {
    (column, format!("expected {what}"))
}
