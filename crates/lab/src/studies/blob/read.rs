//! The kernel's form of a table into the model, by way of its text.

use std::collections::BTreeMap;
use std::fmt::Write;

use rules::model::{Family, Hook, Ruleset};
use rules::save::{self, LoadOptions};

use super::bytes::{byte, text, u16_at, u32_at, u64_at};
use super::extensions::{self, Kind};
use super::{ACCEPT, Blob, DROP, ERROR, RETURN, STANDARD, Shape, USE, USE_NAME, header};

/// Reads a table.
///
/// # Errors
/// It is no table, or holds what is not translated.
pub fn read(blob: &Blob) -> Result<Ruleset, String> {
    let text = Reader { blob, shape: blob.width.shape(blob.family) }.text()?;
    let options = LoadOptions { family: Some(blob.family), ..LoadOptions::default() };
    let loaded = save::load(&text, &options).map_err(|why| format!("{why}\n{text}"))?;
    Ok(loaded.ruleset)
}

/// An entry where it lies.
struct Entry<'b> {
    at: usize,
    bytes: &'b [u8],
    target: usize,
}

impl Entry<'_> {
    fn next(&self) -> usize {
        self.at + self.bytes.len()
    }

    /// The name of its target, and the target's data.
    fn target(&self) -> Result<(&str, u8, &[u8]), String> {
        piece(self.bytes, self.target).map(|(name, revision, data, _)| (name, revision, data))
    }

    fn verdict(&self) -> i32 {
        u32_at(self.bytes, self.target + USE) as i32
    }
}

/// A chain: the indexes of its first entry, and of its last, which is its end.
struct Span {
    name: String,
    first: usize,
    last: usize,
}

/// The match or target at a place: its name, revision and data, and its length.
fn piece(entry: &[u8], at: usize) -> Result<(&str, u8, &[u8], usize), String> {
    let len = usize::from(u16_at(entry, at));
    let whole = entry.get(at..at + len).filter(|whole| whole.len() >= USE);
    let whole = whole.ok_or_else(|| format!("a match or target of {len} bytes"))?;
    Ok((text(whole, 2, USE_NAME)?, byte(whole, super::REVISION), &whole[USE..], len))
}

/// A table that is read.
struct Reader<'b> {
    blob: &'b Blob,
    shape: Shape,
}

impl<'b> Reader<'b> {
    fn text(&self) -> Result<String, String> {
        let entries = self.entries()?;
        let chains = self.chains(&entries)?;
        let mut said = format!("*{}\n", self.blob.table);
        for Span { name, last, .. } in &chains {
            let Some(last) = entries.get(*last) else { return Err(format!("{name}: no end")) };
            let policy = match (hook_of(self.blob.family, name), last.verdict()) {
                (Some(_), ACCEPT) => "ACCEPT",
                (Some(_), DROP) => "DROP",
                (None, RETURN) => "-",
                (_, verdict) => return Err(format!("{name} ends with {verdict}")),
            };
            let counters = if policy == "-" { "[0:0]".to_owned() } else { self.counters(last) };
            // Writing to a String cannot fail.
            let _ = writeln!(said, ":{name} {policy} {counters}");
        }
        let starts: BTreeMap<usize, &str> =
            chains.iter().map(|chain| (entries[chain.first].at, &*chain.name)).collect();
        for Span { name, first, last } in &chains {
            for (number, entry) in entries[*first..*last].iter().enumerate() {
                let rule = self.rule(entry, &starts);
                let rule = rule.map_err(|why| format!("{name} {}: {why}", number + 1))?;
                let _ = writeln!(said, "{} -A {name}{rule}", self.counters(entry));
            }
        }
        said.push_str("COMMIT\n");
        Ok(said)
    }

    fn counters(&self, entry: &Entry<'_>) -> String {
        let [packets, bytes] = [0, 8].map(|at| u64_at(entry.bytes, self.shape.counters + at));
        format!("[{packets}:{bytes}]")
    }

    fn entries(&self) -> Result<Vec<Entry<'b>>, String> {
        let (mut entries, mut at) = (Vec::new(), 0);
        while at < self.blob.entries.len() {
            let rest = &self.blob.entries[at..];
            let [target, next] =
                [self.shape.target, self.shape.next].map(|place| usize::from(u16_at(rest, place)));
            let bytes = rest.get(..next).filter(|_| (self.shape.len..next).contains(&target));
            let bytes = bytes.ok_or_else(|| format!("the entry at {at} makes no sense"))?;
            entries.push(Entry { at, bytes, target });
            at += next;
        }
        Ok(entries)
    }

    /// Chains in their order.
    fn chains(&self, entries: &[Entry<'_>]) -> Result<Vec<Span>, String> {
        let mut chains: Vec<Span> = Vec::new();
        let begin = |name: &str, first| Span { name: name.to_owned(), first, last: first };
        for (index, entry) in entries.iter().enumerate() {
            let begun = self.blob.hooks.iter().find(|(_, start, _)| *start as usize == entry.at);
            if let Some((hook, ..)) = begun {
                chains.push(begin(hook.chain_name(), index));
            }
            let (name, _, data) = entry.target()?;
            if name == ERROR {
                chains.push(begin(text(data, 0, data.len())?, index + 1));
            } else {
                chains.last_mut().ok_or("a rule before all chains")?.last = index;
            }
        }
        // The last entry begins no chain.
        let last = chains.pop().filter(|chain| chain.name == ERROR);
        last.map(|_| chains).ok_or_else(|| "no end".to_owned())
    }

    /// A rule, behind `-A` and its chain.
    fn rule(&self, entry: &Entry<'_>, starts: &BTreeMap<usize, &str>) -> Result<String, String> {
        let (mut said, is_goto) = header::decode(self.blob.family, entry.bytes)?;
        let mut at = self.shape.len;
        while at < entry.target {
            let (name, revision, data, len) = piece(entry.bytes, at)?;
            said.push_str(&self.extension(Kind::Match, name, revision, data)?);
            at += len;
        }
        let (name, revision, data) = entry.target()?;
        if name != STANDARD {
            said.push_str(&self.extension(Kind::Target, name, revision, data)?);
            return Ok(said);
        }
        let _ = match entry.verdict() {
            ACCEPT => write!(said, " -j ACCEPT"),
            DROP => write!(said, " -j DROP"),
            RETURN => write!(said, " -j RETURN"),
            to if to >= 0 && to as usize == entry.next() && !is_goto => Ok(()),
            to => {
                let chain = usize::try_from(to).ok().and_then(|to| starts.get(&to));
                let chain = chain.ok_or_else(|| format!("verdict {to}"))?;
                write!(said, " {} {chain}", if is_goto { "-g" } else { "-j" })
            }
        };
        Ok(said)
    }

    fn extension(
        &self,
        kind: Kind,
        name: &str,
        revision: u8,
        data: &[u8],
    ) -> Result<String, String> {
        let option = if kind == Kind::Match { "-m" } else { "-j" };
        let known = extensions::of(self.blob.family, kind);
        for codec in known.filter(|one| one.kernel == name && one.revision == revision) {
            if data.len() < codec.len(self.blob.width) {
                return Err(format!("{name}: {} bytes", data.len()));
            }
            if let Some(said) = (codec.decode)(data)? {
                return Ok(format!(" {option} {}{said}", codec.name));
            }
        }
        Err(format!("{name} of revision {revision}: not translated"))
    }
}

/// The hook of a built-in chain's name.
fn hook_of(family: Family, name: &str) -> Option<Hook> {
    super::hooks(family).iter().find(|hook| hook.chain_name() == name).copied()
}
