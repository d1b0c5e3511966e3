//! A table of the model into the kernel's form.

use std::collections::BTreeSet;

use rules::ext::Printer;
use rules::model::{Action, Chain, Counters, FallThrough, Family, Policy, Rule, Ruleset, Table};

use super::bytes::{put, put_u16, put_u32, u16_at, u32_at};
use super::extensions::{self, Kind};
use super::options::Options;
use super::{ACCEPT, Blob, DROP, ERROR, RETURN, STANDARD, USE, Width, header, hooks};

/// Bytes of a chain's name in its head.
const NAME_LEN: usize = 30;

/// Lays the tables of a ruleset out, with the counters of its text.
///
/// # Errors
/// A rule has something that is not translated.
pub fn write(ruleset: &Ruleset, width: Width) -> Result<Vec<Blob>, String> {
    (0..ruleset.tables.len()).map(|table| of_table(ruleset, table, width)).collect()
}

fn of_table(ruleset: &Ruleset, number: usize, width: Width) -> Result<Blob, String> {
    let (family, table) = (ruleset.family, &ruleset.tables[number]);
    if family == Family::Bridge {
        return Err(format!("{}: not translated", family.name()));
    }
    let mut writer = Writer { family, width, entries: Vec::new(), jumps: Vec::new(), count: 0 };
    let mut starts = vec![0; table.chains.len()];
    let mut ends = vec![0; table.chains.len()];
    for index in order(family, table) {
        let chain = &table.chains[index];
        if chain.base.is_none() {
            writer.head(&chain.name);
        }
        starts[index] = writer.entries.len() as u32;
        for (at, rule) in chain.rules.iter().enumerate() {
            let wrong = |why| format!("{} {}: {why}", chain.name, at + 1);
            writer.rule(rule, ruleset.counters(number, index, Some(at))).map_err(wrong)?;
        }
        ends[index] = writer.entries.len() as u32;
        writer.verdict(end(chain)?, ruleset.counters(number, index, None));
    }
    writer.head(ERROR);
    writer.settle(&starts)?;
    let Writer { mut entries, count, .. } = writer;
    let mut begun = Vec::new();
    for (number, hook) in hooks(family).iter().enumerate() {
        let Some(chain) = table.base_chain(*hook) else { continue };
        reach(&mut entries, starts[chain], 1 << number, width, family);
        begun.push((*hook, starts[chain], ends[chain]));
    }
    Ok(Blob { width, family, table: table.name.to_string(), hooks: begun, count, entries })
}

/// Chains in the kernel's order: built-in ones in the order of hooks, then the others in their own.
fn order(family: Family, table: &Table) -> Vec<usize> {
    let built_in: Vec<_> =
        hooks(family).iter().filter_map(|hook| table.base_chain(*hook)).collect();
    let others = (0..table.chains.len()).filter(|index| !built_in.contains(index));
    built_in.iter().copied().chain(others).collect()
}

/// The verdict at the end of a chain.
fn end(chain: &Chain) -> Result<i32, String> {
    match (chain.base.map(|base| base.policy), chain.fall_through) {
        (Some(Policy::Accept), _) => Ok(ACCEPT),
        (Some(Policy::Drop), _) => Ok(DROP),
        (None, FallThrough::Return) => Ok(RETURN),
        (None, FallThrough::Policy(_)) => Err(format!("{}: a policy", chain.name)),
    }
}

/// Entries so far.
struct Writer {
    family: Family,
    width: Width,
    entries: Vec<u8>,
    /// Where offsets of chains belong, which are not known yet: the place, and the chain.
    jumps: Vec<(usize, u32)>,
    count: u32,
}

impl Writer {
    /// The entry with a user chain's name, or the last one.
    fn head(&mut self, name: &str) {
        let mut data = [0; NAME_LEN];
        put(&mut data, 0, &name.as_bytes()[..name.len().min(NAME_LEN - 1)]);
        let target = self.piece(ERROR, 0, &data);
        self.entry(None, &Action::None, &[], &target, Counters::default());
    }

    /// An entry that every packet matches.
    fn verdict(&mut self, verdict: i32, counters: Counters) {
        let target = self.piece(STANDARD, 0, &verdict.to_ne_bytes());
        self.entry(None, &Action::None, &[], &target, counters);
    }

    fn rule(&mut self, rule: &Rule, counters: Counters) -> Result<(), String> {
        let mut matches = Vec::new();
        for used in &rule.matches {
            let mut text = Printer::new("");
            used.body.print(&mut text);
            matches.extend(self.extension(Kind::Match, &used.name, &text.finish())?);
        }
        let standard = |verdict: i32| self.piece(STANDARD, 0, &verdict.to_ne_bytes());
        let target = match &rule.action {
            Action::Accept => standard(ACCEPT),
            Action::Drop => standard(DROP),
            Action::Return => standard(RETURN),
            // Offsets of chains, and that of the next entry, are put in once they are known.
            Action::None | Action::Jump(_) | Action::Goto(_) => standard(0),
            Action::Target(used) => {
                let mut text = Printer::new("");
                used.body.print(&mut text);
                self.extension(Kind::Target, &used.name, &text.finish())?
            }
        };
        let at = self.entry(rule.header.as_ref(), &rule.action, &matches, &target, counters);
        match &rule.action {
            Action::None => {
                let next = self.entries.len() as u32;
                put_u32(&mut self.entries, at + USE, next);
            }
            Action::Jump(chain) | Action::Goto(chain) => self.jumps.push((at + USE, *chain)),
            _ => {}
        }
        Ok(())
    }

    /// A match or a target with its data.
    fn extension(&self, kind: Kind, name: &str, text: &str) -> Result<Vec<u8>, String> {
        let codec = extensions::of(self.family, kind).find(|one| one.name == name);
        let codec = codec.ok_or_else(|| format!("{name}: not translated"))?;
        let mut options = Options::of(text)?;
        let mut data = vec![0; codec.len(self.width)];
        (codec.encode)(&mut options, &mut data)?;
        options.end()?;
        Ok(self.piece(codec.kernel, codec.revision, &data))
    }

    fn piece(&self, name: &str, revision: u8, data: &[u8]) -> Vec<u8> {
        let mut piece = vec![0; self.width.aligned(USE + data.len())];
        let len = piece.len() as u16;
        put_u16(&mut piece, 0, len);
        put(&mut piece, 2, name.as_bytes());
        put(&mut piece, super::REVISION, &[revision]);
        put(&mut piece, USE, data);
        piece
    }

    /// Adds an entry; where its target is.
    fn entry(
        &mut self,
        tests: Option<&rules::model::Header>,
        action: &Action,
        matches: &[u8],
        target: &[u8],
        counters: Counters,
    ) -> usize {
        let shape = self.width.shape(self.family);
        let mut head = header::encode(self.family, tests, action);
        head.resize(shape.len, 0);
        let offset = shape.len + matches.len();
        put_u16(&mut head, shape.target, offset as u16);
        put_u16(&mut head, shape.next, (offset + target.len()) as u16);
        put(&mut head, shape.counters, &counters.packets.to_ne_bytes());
        put(&mut head, shape.counters + 8, &counters.bytes.to_ne_bytes());
        let at = self.entries.len() + offset;
        self.entries.extend([&head, matches, target].into_iter().flatten());
        self.count += 1;
        at
    }

    /// Puts the offsets of chains into jumps.
    fn settle(&mut self, starts: &[u32]) -> Result<(), String> {
        for (place, chain) in &self.jumps {
            let start = starts.get(*chain as usize).ok_or("a jump to no chain")?;
            put_u32(&mut self.entries, *place, *start);
        }
        Ok(())
    }
}

/// Notes in every entry that is reached from an offset on that it is: what comes after an entry is, unless every packet
/// gets a verdict there; so is where it jumps to.
fn reach(entries: &mut [u8], start: u32, bit: u32, width: Width, family: Family) {
    let shape = width.shape(family);
    let (mut seen, mut left) = (BTreeSet::new(), vec![start as usize]);
    while let Some(at) = left.pop() {
        if at >= entries.len() || !seen.insert(at) {
            continue;
        }
        let entry = &mut entries[at..];
        let from = u32_at(entry, shape.comefrom);
        put_u32(entry, shape.comefrom, from | bit);
        let [target, next] =
            [shape.target, shape.next].map(|place| usize::from(u16_at(entry, place)));
        let is_standard = entry.get(target + 2) == Some(&0);
        let verdict = u32_at(entry, target + USE) as i32;
        let matches_all =
            target == shape.len && entry.iter().take(shape.header).all(|byte| *byte == 0);
        if is_standard && verdict >= 0 {
            left.push(verdict as usize);
        }
        if !(is_standard && verdict < 0 && matches_all) {
            left.push(at + next);
        }
    }
}
