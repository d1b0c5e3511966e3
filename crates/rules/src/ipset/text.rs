//! Reads `ipset save` text.
//!
//! Contract: one pass, nothing kept but the elements. Comments, hash sizes and what only the memory of the
//! kernel concerns are read and forgotten.

use std::borrow::Cow;
use std::collections::HashMap;

use super::element::{Element, MAX_EXPANDED};
use super::kind::{Dim, KINDS, Kind};
use super::store::{Extra, Store};
use super::{AllSets, Ifaces, Key, Member, Set, Sets, number};
use crate::error::{LoadError, What};
use crate::family::Family;
use crate::value;
use conntrack::SECOND;

const MAX_NAME: usize = 31;
/// Elements of a hash where `create` does not say.
const DEFAULT_MAX: u64 = 65_536;
/// Members of a list where `create` does not say.
const DEFAULT_SIZE: u64 = 8;

impl Sets {
    /// Reads `ipset save` text.
    ///
    /// # Errors
    /// The first line and column that is not what was expected there.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let mut reader = Reader { sets: AllSets::default(), newest: None, expanded: 0 };
        for (index, line) in text.split('\n').enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            reader.line(line).map_err(|what| what.at_line(number))?;
        }
        Ok(Self::own(reader.sets))
    }
}

struct Reader<'a> {
    sets: AllSets,
    /// The set that the last line was about: save text keeps the elements of one set together.
    newest: Option<(&'a str, u32)>,
    expanded: u64,
}

/// The words of a line.
pub(super) struct LineWords<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> LineWords<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { line: line.strip_suffix('\r').unwrap_or(line), at: 0 }
    }

    fn column(&self) -> u32 {
        u32::try_from(self.at + 1).unwrap_or(u32::MAX)
    }

    /// The next word and its column. A comment stands in quotes.
    pub(super) fn next(&mut self) -> Option<(&'a str, u32)> {
        let rest = &self.line[self.at..];
        let word = rest.trim_start_matches([' ', '\t']);
        self.at += rest.len() - word.len();
        let column = self.column();
        if word.is_empty() {
            return None;
        }
        if let Some(quoted) = word.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            self.at += (end + 2).min(word.len());
            return Some((&quoted[..end], column));
        }
        let end = word.find([' ', '\t']).unwrap_or(word.len());
        self.at += end;
        Some((&word[..end], column))
    }

    pub(super) fn value(&mut self, option: &str) -> Result<(&'a str, u32), What> {
        let column = self.column();
        self.next().ok_or_else(|| What::new(column, format!("a value for {option}")))
    }

    fn number(&mut self, option: &str, max: u64) -> Result<u64, What> {
        let (text, column) = self.value(option)?;
        number::number(text, max).ok_or_else(|| {
            What::new(column, format!("a number 0-{max} for {option}, found \"{text}\""))
        })
    }
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) -> Result<(), What> {
        let mut words = LineWords::new(line);
        match words.next() {
            None => Ok(()),
            Some((word, _)) if word.starts_with('#') => Ok(()),
            Some(("add" | "-A", _)) => self.add(&mut words),
            Some(("create" | "-N", _)) => self.create(&mut words),
            Some(("COMMIT", _)) => Ok(()),
            Some((word, column)) => {
                let what = format!("create or add (`ipset save` text), found \"{word}\"");
                Err(What::new(column, what))
            }
        }
    }

    fn create(&mut self, words: &mut LineWords<'a>) -> Result<(), What> {
        let (name, column) = words.value("create")?;
        if name.len() > MAX_NAME {
            return Err(What::new(column, format!("a set name of 1 to {MAX_NAME} bytes")));
        }
        if self.sets.index(name).is_some() {
            return Err(What::new(column, format!("a new set: there is one named \"{name}\"")));
        }
        let (kind, column) = words.value("the set's type")?;
        let kind = Kind::named(kind).ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            What::new(column, format!("a type of {}, found \"{kind}\"", names.join(" ")))
        })?;
        let set = create(kind, words)?;
        let index = self.sets.sets.len() as u32;
        self.sets.names.insert(name.into(), index);
        self.sets.sets.push(set);
        self.newest = Some((name, index));
        Ok(())
    }

    fn find(&mut self, name: &'a str, column: u32) -> Result<u32, What> {
        if let Some((newest, index)) = self.newest
            && newest == name
        {
            return Ok(index);
        }
        let found = self.sets.index(name);
        let index = found
            .ok_or_else(|| What::new(column, format!("a set created before, found \"{name}\"")))?;
        self.newest = Some((name, index));
        Ok(index)
    }

    fn add(&mut self, words: &mut LineWords<'a>) -> Result<(), What> {
        let (set_name, set_column) = words.value("add")?;
        let index = self.find(set_name, set_column)?;
        let (text, column) = words.value("add")?;
        let options = options(&self.sets.sets[index as usize], words)?;
        if self.sets.sets[index as usize].is_list() {
            return self.add_member(index, text, column, options.extra);
        }
        let set = &mut self.sets.sets[index as usize];
        let Element { keys, mac } = set.element(text, column, options.is_wildcard)?;
        if keys.len() > 1 {
            self.expanded += keys.len() as u64;
            if self.expanded > MAX_EXPANDED {
                let what = format!("at most {MAX_EXPANDED} elements from ranges");
                return Err(What::new(column, what));
            }
        }
        for key in &keys {
            set.put(key, mac, &options).ok_or_else(|| {
                let what = format!("at most {} elements (maxelem) in set {}", set.max, set_name);
                What::new(column, what)
            })?;
        }
        Ok(())
    }

    fn add_member(
        &mut self,
        list: u32,
        name: &'a str,
        column: u32,
        extra: Extra,
    ) -> Result<(), What> {
        let member = self.sets.index(name);
        let member = member
            .ok_or_else(|| What::new(column, format!("a set created before, found \"{name}\"")))?;
        if self.sets.sets[member as usize].is_list() {
            return Err(What::new(column, "a set that is no list: lists do not nest"));
        }
        self.sets.sets[list as usize].members.push(Member { set: member, extra });
        Ok(())
    }
}

/// What an `add` line says after its element.
pub(super) struct Options {
    pub(super) nomatch: bool,
    pub(super) is_wildcard: bool,
    /// Whether an existing element is added again, and a missing one need not be removed.
    pub(super) exist: bool,
    /// Whether the line says how many packets, and how many bytes.
    pub(super) counts: [bool; 2],
    pub(super) extra: Extra,
}

pub(super) fn options(set: &Set, words: &mut LineWords<'_>) -> Result<Options, What> {
    let expires = match set.timeout {
        None | Some(0) => u64::MAX,
        Some(seconds) => seconds * SECOND,
    };
    let extra = Extra { expires, mark: (0, 0), ..Extra::NONE };
    let mut options =
        Options { nomatch: false, is_wildcard: false, exist: false, counts: [false; 2], extra };
    let lacks = |what: &str, column| What::new(column, format!("create … {what} for this"));
    while let Some((word, column)) = words.next() {
        options.counts[0] |= word == "packets";
        options.counts[1] |= word == "bytes";
        let extra = &mut options.extra;
        match word {
            "timeout" if set.timeout.is_none() => return Err(lacks("timeout 0", column)),
            "packets" | "bytes" if !set.has_counters => return Err(lacks("counters", column)),
            "skbmark" | "skbprio" | "skbqueue" if !set.has_marks => {
                return Err(lacks("skbinfo", column));
            }
            "timeout" => {
                extra.expires = match words.number(word, u32::MAX.into())? {
                    0 => u64::MAX,
                    seconds => seconds * SECOND,
                };
            }
            "packets" => extra.packets = words.number(word, u64::MAX)?,
            "bytes" => extra.bytes = words.number(word, u64::MAX)?,
            "skbmark" => {
                let (text, column) = words.value(word)?;
                extra.mark = value::masked_u32(text)
                    .ok_or_else(|| What::new(column, format!("MARK[/MASK], found \"{text}\"")))?;
            }
            "comment" | "skbprio" | "skbqueue" => _ = words.value(word)?,
            "-exist" | "-!" => options.exist = true,
            "nomatch" if set.kind.has(Dim::Net) => options.nomatch = true,
            "wildcard" if set.kind.has(Dim::Iface) => options.is_wildcard = true,
            _ => {
                let what = "timeout, packets, bytes, comment, skbmark, skbprio, skbqueue, nomatch \
                            or wildcard";
                let what = format!("{what}, as the set's type has them, found \"{word}\"");
                return Err(What::new(column, what));
            }
        }
    }
    Ok(options)
}

impl Set {
    /// Adds an element that a file holds; `None` if the set is full.
    fn put(&mut self, key: &Key, mac: Option<[u8; 6]>, options: &Options) -> Option<()> {
        let is_full = !self.kind.is_bitmap && self.store.len() as u64 >= self.max;
        if is_full && self.store.get(key).is_none() {
            return None;
        }
        if let Some(mac) = mac.filter(|_| self.kind.fills_mac()) {
            self.macs.insert(key.first_word(), mac);
        }
        let is_new = self.store.put(key, options.nomatch, options.extra);
        if is_new && self.kind.has(Dim::Iface) {
            self.ifaces.note(key);
        }
        Some(())
    }
}

/// What `create` says after the type.
fn create(kind: &'static Kind, words: &mut LineWords<'_>) -> Result<Set, What> {
    let is_list = kind.has(Dim::Set);
    let mut set = Set {
        kind,
        family: kind.has_family().then_some(Family::Ipv4),
        max: if is_list { DEFAULT_SIZE } else { DEFAULT_MAX },
        forces: false,
        has_gaps: false,
        timeout: None,
        has_counters: false,
        has_marks: false,
        mask: None,
        markmask: u32::MAX,
        range: (0, u32::MAX),
        store: Store::new(false, false, [false; 2]),
        ifaces: Ifaces::default(),
        macs: HashMap::new(),
        members: Vec::new(),
        indeterminate: false,
    };
    let mut mask: Option<(Cow<'_, str>, u32)> = None;
    let mut has_range = false;
    let start = words.column();
    while let Some((word, column)) = words.next() {
        match word {
            "family" if kind.has_family() => set.family = Some(family(words, kind)?),
            "hashsize" | "bucketsize" | "initval" | "probes" | "resize" | "gc" => {
                words.value(word)?;
            }
            "maxelem" | "size" => set.max = words.number(word, u32::MAX.into())?,
            "timeout" => set.timeout = Some(words.number(word, u32::MAX.into())?),
            "counters" => set.has_counters = true,
            "skbinfo" => set.has_marks = true,
            "comment" => {}
            "forceadd" => set.forces = true,
            "markmask" => set.markmask = words.number(word, u32::MAX.into())? as u32,
            "netmask" | "bitmask" => {
                let (text, column) = words.value(word)?;
                mask = Some((text.into(), column));
            }
            "range" if kind.is_bitmap => {
                set.range = range(kind, words)?;
                has_range = true;
            }
            _ => {
                let what = format!("an option of create for {}, found \"{word}\"", kind.name);
                return Err(What::new(column, what));
            }
        }
    }
    if kind.is_bitmap && !has_range {
        return Err(What::new(start, format!("range FIRST-LAST for {}", kind.name)));
    }
    if let Some((text, column)) = mask {
        let len = usize::from(set.host_bits() / 8);
        let read = value::mask(&text, len);
        set.mask =
            Some(read.ok_or_else(|| What::new(column, format!("a mask, found \"{text}\"")))?);
        if kind.is_bitmap
            && let Some(mask) = set.mask
        {
            set.range.0 &= u32::from_be_bytes([mask[0], mask[1], mask[2], mask[3]]);
        }
    }
    set.store = Store::new(set.host_bits() == 128, set.has_extras(), Set::nets(kind));
    Ok(set)
}

fn family(words: &mut LineWords<'_>, kind: &Kind) -> Result<Family, What> {
    match words.value("family")? {
        ("inet", _) => Ok(Family::Ipv4),
        ("inet6", _) if !kind.is_bitmap && !kind.has(Dim::Mac) => Ok(Family::Ipv6),
        ("inet6", _) if kind.name == "hash:ip,mac" => Ok(Family::Ipv6),
        (other, column) => {
            Err(What::new(column, format!("a family that {} has, found \"{other}\"", kind.name)))
        }
    }
}

fn range(kind: &Kind, words: &mut LineWords<'_>) -> Result<(u32, u32), What> {
    let (text, column) = words.value("range")?;
    let read = match kind.has(Dim::BarePort) {
        true => number::bare_ports(text).map(|(first, last)| (first.into(), last.into())),
        false => number::addresses_v4(text),
    };
    read.ok_or_else(|| What::new(column, format!("FIRST-LAST for range, found \"{text}\"")))
}
