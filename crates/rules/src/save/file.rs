//! Reads a whole file of save text, line by line.

use super::kind::{backend_of, family_of, other_text};
use super::open_table::OpenTable;
use super::options::Arguments;
use super::rule::RuleLine;
use super::warnings::{LineWarnings, Warnings};
use super::{FamilyFrom, LoadOptions, Loaded, rule};
use crate::backend::Backend;
use crate::error::{LoadError, What};
use crate::ext;
use crate::family::{Family, TableKind};
use crate::lexer::{Word, bare_words, words};
use crate::model::{Counters, Ruleset, Table};

/// Most bytes of rules that address lists may stand for in a file: `-s a,b,c -d x,y,z` is one rule per pair, each with
/// all matches of its line, so a short text could ask for more memory than any machine has. A byte of rules takes up to
/// 25 of memory.
const MAX_LISTED_BYTES: usize = 1 << 25;
/// What a rule takes besides its text, in the same measure.
const RULE_BYTES: usize = 32;
/// What some editors write before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads save text.
///
/// # Errors
/// The first line and column that is not what was expected there.
pub fn load(text: &str, options: &LoadOptions<'_>) -> Result<Loaded, LoadError> {
    let mark = text.strip_prefix(BYTE_ORDER_MARK);
    let (text, has_mark) = (mark.unwrap_or(text), mark.is_some());
    let (family, family_from) = match options.family {
        Some(family) => (family, FamilyFrom::Given),
        None => family_of(text),
    };
    let mut file = File::new(family, options);
    if has_mark {
        let what = "byte order mark before the first line";
        file.warnings.lenient(1, 1, what).map_err(|what| what.at_line(1))?;
    }
    match file.read(text) {
        Ok(()) => file.finish(family_from),
        Err(error) if matches!(family_from, FamilyFrom::Text | FamilyFrom::Assumed) => {
            Err(with_hint(error, text, family, options))
        }
        Err(error) => Err(error),
    }
}

/// The error, and the family as whose rules the text would do.
fn with_hint(
    mut error: LoadError,
    text: &str,
    refused: Family,
    options: &LoadOptions<'_>,
) -> LoadError {
    let reads_as = |family: &Family| {
        let options = LoadOptions { family: Some(*family), ..*options };
        *family != refused && load(text, &options).is_ok()
    };
    let all = [Family::Ipv4, Family::Ipv6, Family::Arp, Family::Bridge];
    if let Some(family) = all.iter().find(|family| reads_as(family)) {
        let (tool, name) = (family.tool(), family.name());
        error.what += &format!(" (these do read as {tool} rules: --family {name})");
    }
    error
}

struct File<'a, 'o> {
    family: Family,
    backend: Backend,
    options: &'o LoadOptions<'o>,
    tables: Vec<Table>,
    open: Option<OpenTable<'a>>,
    warnings: Warnings,
    listed: usize,
    last_line: u32,
    /// Some line has a NUL.
    has_nul: bool,
}

impl<'a, 'o> File<'a, 'o> {
    fn new(family: Family, options: &'o LoadOptions<'o>) -> Self {
        Self {
            family,
            backend: Backend::default(),
            options,
            tables: Vec::new(),
            open: None,
            warnings: Warnings { strict: options.strict, ..Warnings::default() },
            listed: 0,
            last_line: 0,
            has_nul: false,
        }
    }

    fn read(&mut self, text: &'a str) -> Result<(), LoadError> {
        self.has_nul = memchr::memchr(0, text.as_bytes()).is_some();
        let mut start = 0;
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
        for (index, end) in ends.enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            self.line(number, &text[start..end])?;
            start = end + 1;
        }
        Ok(())
    }

    fn line(&mut self, number: u32, line: &'a str) -> Result<(), LoadError> {
        self.last_line = number;
        if self.has_nul
            && let Some(at) = memchr::memchr(0, line.as_bytes())
        {
            return Err(What::new(column_after(&line[..at]), "text, found a NUL").at_line(number));
        }
        let line = self.trimmed(number, line).map_err(|what| what.at_line(number))?;
        let read = match line.as_bytes().first() {
            None => Ok(()),
            Some(b'#') => {
                self.comment(number, line);
                Ok(())
            }
            Some(b'*') => self.open_table(number, &line[1..]),
            Some(b':') => self.declare(number, &line[1..]),
            Some(b'[' | b'-') => self.rule(number, line),
            Some(_) if line == "COMMIT" => return self.commit(number),
            Some(_) => Err(not_save_text(line)),
        };
        read.map_err(|what| what.at_line(number))
    }

    fn comment(&mut self, number: u32, line: &str) {
        let Some((backend, old)) = backend_of(line) else { return };
        self.backend = backend;
        if old {
            let what = "saved by iptables-nft before 1.8.8, whose tcp and udp matches are those of \
                        xtables: evaluated as legacy";
            self.warnings.add(number, what);
        }
    }

    /// The line without what editors and old tools leave at its end.
    fn trimmed(&mut self, number: u32, line: &'a str) -> Result<&'a str, What> {
        if !matches!(line.as_bytes().last(), Some(b'\r' | b' ' | b'\t')) {
            return Ok(line);
        }
        let unix = match line.strip_suffix('\r') {
            Some(unix) => {
                self.warnings.lenient(number, column_after(unix), "CRLF at the end of a line")?;
                unix
            }
            None => line,
        };
        let trimmed = unix.trim_end_matches([' ', '\t']);
        let significant = trimmed.starts_with(['*', ':']) || trimmed == "COMMIT";
        if significant && trimmed.len() < unix.len() {
            self.warnings.lenient(number, column_after(trimmed), "blanks at the end of a line")?;
        }
        Ok(trimmed)
    }

    fn open_table(&mut self, number: u32, name: &'a str) -> Result<(), What> {
        if !self.family.dialect().commits
            && let Some(open) = self.open.take()
        {
            self.close(open).map_err(|error| What::new(error.column, error.what))?;
        }
        if let Some(open) = &self.open {
            let what = format!("COMMIT of table {} (line {}) first", open.table.name, open.line);
            return Err(What::new(1, what));
        }
        let kind = self.table_kind(name)?;
        if let Some(earlier) = self.tables.iter().position(|table| table.name == kind.name) {
            self.warnings.add(number, format!("table {name} is given twice: the last one counts"));
            self.tables.remove(earlier);
        }
        self.open = Some(OpenTable::new(self.family, kind.name, number, true));
        Ok(())
    }

    fn table_kind(&self, name: &str) -> Result<&'static TableKind, What> {
        self.family.table(name).ok_or_else(|| {
            let names: Vec<&str> = self.family.tables().iter().map(|kind| kind.name).collect();
            What::new(2, format!("a table ({}), found \"{name}\"", names.join(" ")))
        })
    }

    /// Returns the open table, or the table that the options name if the text names none.
    fn open(&mut self, number: u32) -> Result<&mut OpenTable<'a>, What> {
        if self.open.is_none() {
            let Some(name) = self.options.table.filter(|_| self.tables.is_empty()) else {
                let what =
                    "a *table line first (for `iptables -S` text, name the table: --table filter)";
                return Err(What::new(1, what));
            };
            let kind = self.table_kind(name)?;
            self.open = Some(OpenTable::new(self.family, kind.name, number, false));
        }
        self.open.as_mut().ok_or_else(|| What::new(1, "a *table line first"))
    }

    /// `:CHAIN POLICY [packets:bytes]`.
    fn declare(&mut self, number: u32, text: &'a str) -> Result<(), What> {
        let end = column_after(text) + 1;
        let mut list = Arguments::new(bare_words(text, 2), end);
        let name = list.value("the chain")?;
        let policy = list.value("the chain's policy")?;
        let counters = match list.next() {
            Some(word) => parse_counters(&word)?,
            None => Counters::default(),
        };
        self.open(number)?.declare(number, &name, &policy, counters)
    }

    fn commit(&mut self, number: u32) -> Result<(), LoadError> {
        let none = || What::new(1, "a *table line before COMMIT").at_line(number);
        let open = self.open.take().ok_or_else(none)?;
        self.close(open)
    }

    fn close(&mut self, open: OpenTable<'a>) -> Result<(), LoadError> {
        self.tables.push(open.close(&mut self.warnings)?);
        Ok(())
    }

    fn rule(&mut self, number: u32, line: &'a str) -> Result<(), What> {
        let end = column_after(line);
        let mut list = Arguments::of_line(line, end)?;
        let counters = match list.peek().filter(|word| word.text.starts_with('[')) {
            Some(word) => Some(parse_counters(word)?),
            None => None,
        };
        if counters.is_some() {
            list.next();
        }
        if list.peek().is_some_and(declares) {
            let words = words(line, 1)?;
            if let [command, name, rest @ ..] = &words[usize::from(counters.is_some())..] {
                return match &*command.text {
                    "-N" | "--new-chain" => self.new_chain(number, name),
                    _ => self.set_policy(number, name, rest, end),
                };
            }
        }
        self.open(number)?;
        let Some(open) = &self.open else { return Ok(()) };
        let is_chain = |name: &str| open.has_chain(name);
        list.read_as(self.family);
        let (place, chain) = rule::command(&mut list)?;
        let mut parsed = RuleLine::new(place, chain, self.family);
        let warnings = &mut LineWarnings { warnings: &mut self.warnings, line: number };
        parsed.read(&mut list, is_chain, warnings)?;
        if parsed.other_family {
            self.warnings.add(number, "rules of the other family (-4, -6) are left out");
            return Ok(());
        }
        let counters = counters.or(parsed.counters).unwrap_or_default();
        self.check_lists(&parsed, end)?;
        self.add_rules(number, &parsed, counters)
    }

    fn new_chain(&mut self, number: u32, name: &Word<'a>) -> Result<(), What> {
        if ext::find_target(&name.text, self.family).is_some() {
            let what = "chain named as a target (`-N LOG`)";
            self.warnings.lenient(number, name.column, what)?;
        }
        let dash = Word { text: "-".into(), column: name.column, quoted: false };
        self.open(number)?.declare(number, name, &dash, Counters::default())
    }

    fn set_policy(
        &mut self,
        number: u32,
        name: &Word<'a>,
        rest: &[Word<'_>],
        end: u32,
    ) -> Result<(), What> {
        let policy = rest.first().ok_or_else(|| What::new(end, "ACCEPT or DROP after -P CHAIN"))?;
        let counters = match rest {
            [_, option, packets, bytes] if option.text == "-c" => Counters {
                packets: packets.text.parse().unwrap_or(0),
                bytes: bytes.text.parse().unwrap_or(0),
            },
            _ => Counters::default(),
        };
        self.open(number)?.declare(number, name, policy, counters)
    }

    /// Refuses address lists that stand for too many rules. The line ends at a column.
    fn check_lists(&mut self, parsed: &RuleLine<'a>, end: u32) -> Result<(), What> {
        let [sources, destinations] = parsed.list_lengths();
        let count = sources.saturating_mul(destinations);
        if count <= 1 {
            return Ok(());
        }
        let each = RULE_BYTES + (end as usize).saturating_sub(parsed.list_bytes());
        self.listed = self.listed.saturating_add(count.saturating_mul(each));
        if self.listed <= MAX_LISTED_BYTES {
            return Ok(());
        }
        let what = format!(
            "address lists that stand for at most {MAX_LISTED_BYTES} bytes of rules in a file, found {sources} \
             sources x {destinations} destinations x {each} bytes here, and {} bytes up to here",
            self.listed
        );
        Err(What::new(parsed.chain.column, what))
    }

    fn add_rules(
        &mut self,
        number: u32,
        parsed: &RuleLine<'a>,
        counters: Counters,
    ) -> Result<(), What> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let index = open.rule_chain(&parsed.chain)?;
        for header in parsed.headers() {
            open.add_rule(index, number, parsed, header, counters, self.options.strict)?;
        }
        Ok(())
    }

    fn finish(mut self, family_from: FamilyFrom) -> Result<Loaded, LoadError> {
        let family = self.family;
        if let Some(open) = self.open.take() {
            if open.starred && family.dialect().commits {
                let what = format!("COMMIT for table {} (line {})", open.table.name, open.line);
                return Err(What::new(1, what).at_line(self.last_line));
            }
            self.close(open)?;
        }
        if self.tables.is_empty() {
            let what = "iptables-save text (a *table line, chains, rules, COMMIT), found none";
            return Err(What::new(1, what).at_line(1));
        }
        let Self { family, backend, tables, warnings, .. } = self;
        let mut ruleset = Ruleset { family, backend, tables };
        ruleset.evaluate_as(backend);
        ruleset.number();
        Ok(Loaded { ruleset, family_from, warnings: warnings.list })
    }
}

/// Whether a command of `iptables -S` text declares a chain.
fn declares(command: &Word<'_>) -> bool {
    matches!(&*command.text, "-N" | "--new-chain" | "-P" | "--policy")
}

fn column_after(line: &str) -> u32 {
    u32::try_from(line.len() + 1).unwrap_or(u32::MAX)
}

/// `[packets:bytes]`.
fn parse_counters(word: &Word<'_>) -> Result<Counters, What> {
    let counters = word.text.strip_prefix('[').and_then(|text| {
        let (packets, bytes) = text.strip_suffix(']')?.split_once(':')?;
        Some(Counters { packets: packets.parse().ok()?, bytes: bytes.parse().ok()? })
    });
    counters.ok_or_else(|| {
        What::new(word.column, format!("counters [packets:bytes], found \"{}\"", word.text))
    })
}

fn not_save_text(line: &str) -> What {
    let found = match other_text(line) {
        Some(name) => name.to_owned(),
        None => format!("\"{}\"", line.chars().take(40).collect::<String>()),
    };
    What::new(
        1,
        format!("iptables-save text (a line that starts with * : - [ # or COMMIT), found {found}"),
    )
}
