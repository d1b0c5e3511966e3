//! The kinds of matches and targets ([`MatchKind`], [`TargetKind`]) and the options of each: what it declares ([`Opt`])
//! and what a rule gave it ([`Args`]).
//!
//! The front end collects options by these declarations, so that each extension's `parse` sees only
//! its own, in order, with their columns.

use std::fmt;

use crate::error::What;
use crate::ext::extension::{Match, Target};
use crate::ext::kit::opaque::OpaqueWord;
use crate::family::{Family, Hook};
use crate::header::{Field, FieldTest, ProtocolTest};
use crate::lexer::Word;

/// What tamis does with an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Evaluated as the kernel does.
    Evaluated,
    /// Parsed and printed; what depends on it is unknown.
    Parsed,
}

/// A set of families, for the kinds below.
pub type Families = &'static [Family];

/// IPv4 and IPv6.
pub const IP: Families = &[Family::Ipv4, Family::Ipv6];
/// IPv4 alone.
pub const V4: Families = &[Family::Ipv4];
/// IPv6 alone.
pub const V6: Families = &[Family::Ipv6];
/// ARP alone.
pub const ARP: Families = &[Family::Arp];
/// Bridges alone.
pub const BRIDGE: Families = &[Family::Bridge];

/// A kind of match: its name, its options and how to read it.
pub struct MatchKind {
    /// Name after `-m`, as printed.
    pub name: &'static str,
    /// Other names after `-m`.
    pub aliases: &'static [&'static str],
    /// Families that have it.
    pub families: Families,
    /// Protocol number whose `-p` loads it without `-m`.
    pub protocol: Option<u8>,
    /// The options of the match.
    pub options: &'static [Opt],
    /// Evaluated or only parsed.
    pub support: Support,
    /// Makes the match from its options.
    pub parse: fn(&Args<'_>) -> Result<Box<dyn Match>, What>,
}

impl fmt::Debug for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A kind of target.
pub struct TargetKind {
    /// Name after `-j`.
    pub name: &'static str,
    /// Families that have it.
    pub families: Families,
    /// The options of the target.
    pub options: &'static [Opt],
    /// Evaluated or only parsed.
    pub support: Support,
    /// Makes the target from its options.
    pub parse: fn(&Args<'_>) -> Result<Box<dyn Target>, What>,
}

impl fmt::Debug for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// One option that an extension declares.
#[derive(Debug)]
pub struct Opt {
    /// Long name without the dashes, as it is printed.
    pub name: &'static str,
    /// Other spellings, without the dashes.
    pub aliases: &'static [&'static str],
    /// Number of words it takes.
    pub values: u8,
    /// The value may be missing: the next word is then an option, a `!` or the end.
    pub optional: bool,
    /// May be preceded by `!`.
    pub invert: bool,
    /// May be given more than once.
    pub many: bool,
}

impl Opt {
    /// An option that takes no value.
    #[must_use]
    pub const fn flag(name: &'static str) -> Self {
        Self { name, aliases: &[], values: 0, optional: false, invert: false, many: false }
    }

    /// An option that takes one value.
    #[must_use]
    pub const fn value(name: &'static str) -> Self {
        Self { name, aliases: &[], values: 1, optional: false, invert: false, many: false }
    }

    /// An option that takes two values, as `--tcp-flags` does.
    #[must_use]
    pub const fn pair(name: &'static str) -> Self {
        Self { name, aliases: &[], values: 2, optional: false, invert: false, many: false }
    }

    /// Makes the value of the option optional.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Adds other spellings of the option.
    #[must_use]
    pub const fn alias(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Allows `!` before the option.
    #[must_use]
    pub const fn invertible(self) -> Self {
        Self { invert: true, ..self }
    }

    /// Allows the option more than once.
    #[must_use]
    pub const fn repeatable(self) -> Self {
        Self { many: true, ..self }
    }

    /// Whether `name` (without dashes) is one of its spellings.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether `name` abbreviates one of its spellings, as getopt_long allows.
    #[must_use]
    pub fn is_abbreviated(&self, name: &str) -> bool {
        self.name.starts_with(name) || self.aliases.iter().any(|alias| alias.starts_with(name))
    }
}

/// One option as a rule gave it.
#[derive(Debug, Clone)]
pub struct Given<'a> {
    /// The declared name.
    pub name: &'static str,
    /// Preceded by `!`.
    pub invert: bool,
    /// Column of the option word.
    pub column: u32,
    /// The option's values.
    pub values: Vec<Word<'a>>,
}

impl Given<'_> {
    /// The first value; empty for a flag.
    #[must_use]
    pub fn text(&self) -> &str {
        self.values.first().map_or("", |word| &word.text)
    }

    /// The second value of a pair; empty otherwise.
    #[must_use]
    pub fn second(&self) -> &str {
        self.values.get(1).map_or("", |word| &word.text)
    }

    /// An error at the value: `--name: expected …, found "value"`.
    pub fn expected(&self, what: impl fmt::Display) -> What {
        let column = self.values.first().map_or(self.column, |word| word.column);
        What::new(column, format!("{what} for --{}, found \"{}\"", self.name, self.text()))
    }

    /// An error at the second value.
    pub fn second_expected(&self, what: impl fmt::Display) -> What {
        let column = self.values.get(1).map_or(self.column, |word| word.column);
        What::new(column, format!("{what} for --{}, found \"{}\"", self.name, self.second()))
    }
}

/// A match or target that a rule has named, with the options it was given so far.
#[derive(Debug)]
pub(crate) struct Loading<'a, K: 'static> {
    /// The kind of match or target; `None` if tamis does not know it.
    pub(crate) kind: Option<&'static K>,
    pub(crate) name: Word<'a>,
    pub(crate) given: Vec<Given<'a>>,
    /// The words of an unknown one.
    pub(crate) words: Vec<OpaqueWord>,
}

impl<'a, K> Loading<'a, K> {
    pub(crate) fn new(kind: Option<&'static K>, name: Word<'a>) -> Self {
        Self { kind, name, given: Vec::new(), words: Vec::new() }
    }
}

/// Everything a rule says to one match or target.
#[derive(Debug)]
pub struct Args<'a> {
    /// Family of the ruleset.
    pub family: Family,
    /// Table of the rule.
    pub table: &'a str,
    /// Name of the chain.
    pub chain: &'a str,
    /// Hook of the chain, if it is built in.
    pub hook: Option<Hook>,
    /// The rule's `-p`, if any, wherever it stands in the line.
    pub protocol: Option<ProtocolTest>,
    /// The rule's tests of single fields.
    pub fields: &'a [FieldTest],
    /// Refuse what the newest tool refuses, even where older ones took it.
    pub strict: bool,
    /// Name of the extension as the rule spells it.
    pub name: &'a str,
    /// Column of that name.
    pub column: u32,
    /// The options in the order given.
    pub given: &'a [Given<'a>],
    /// The matches of the rule, for targets that ask for one.
    pub(crate) matches: &'a [Loading<'a, MatchKind>],
}

impl<'a> Args<'a> {
    /// The option of this declared name, if given (the first, when given more than once).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Given<'a>> {
        self.given.iter().find(|given| given.name == name)
    }

    /// Whether the option was given.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The option, or an error that says it is missing.
    pub fn required(&self, name: &str) -> Result<&Given<'a>, What> {
        self.get(name).ok_or_else(|| self.expected(format!("--{name}")))
    }

    /// At least one of these options must be given.
    pub fn any_of(&self, names: &[&str]) -> Result<(), What> {
        if names.iter().any(|name| self.has(name)) {
            return Ok(());
        }
        let list: Vec<String> = names.iter().map(|name| format!("--{name}")).collect();
        Err(self.expected(format!("one of {}", list.join(" "))))
    }

    /// At most one of these options may be given.
    pub fn one_of(&self, names: &[&str]) -> Result<(), What> {
        let mut given = self.given.iter().filter(|given| names.contains(&given.name));
        match (given.next(), given.next()) {
            (Some(first), Some(second)) => Err(What::new(
                second.column,
                format!("only one of --{} and --{}", first.name, second.name),
            )),
            _ => Ok(()),
        }
    }

    /// The options of each use of a match in the rule.
    pub(crate) fn options_of(&self, name: &str) -> impl Iterator<Item = &'a [Given<'a>]> {
        let named = move |loading: &&Loading<'_, MatchKind>| {
            loading.kind.is_some_and(|kind| kind.name == name)
        };
        self.matches.iter().filter(named).map(|loading| loading.given.as_slice())
    }

    /// The rule must say `-p` with one of these protocols, not inverted.
    pub fn needs_protocol(&self, numbers: &[u8]) -> Result<(), What> {
        match self.protocol {
            Some(test) if !test.invert && numbers.contains(&test.number) => Ok(()),
            _ => {
                let names: Vec<&str> = numbers
                    .iter()
                    .filter_map(|number| crate::names::protocol_name(*number))
                    .collect();
                Err(self.expected(format!("-p {}", names.join(" or -p "))))
            }
        }
    }

    /// The rule must say `-p` with one of these EtherTypes, not inverted.
    pub fn needs_ethertype(&self, numbers: &[u16]) -> Result<(), What> {
        let tested = |test: &&FieldTest| test.field == Field::EtherType && !test.invert;
        let found = self.fields.iter().find(tested).map(FieldTest::value_u16);
        if found.is_some_and(|number| numbers.contains(&number)) {
            return Ok(());
        }
        let names: Vec<&str> =
            numbers.iter().filter_map(|number| crate::names::ethertype_name(*number)).collect();
        Err(self.expected(format!("-p {}", names.join(" or -p "))))
    }

    /// The rule must stand in one of these tables.
    pub fn needs_table(&self, tables: &[&str]) -> Result<(), What> {
        if tables.contains(&self.table) {
            return Ok(());
        }
        Err(self.expected(format!("table {}, not {}", tables.join(" or "), self.table)))
    }

    /// The rule must not stand in a built-in chain other than of these hooks. User chains pass here;
    /// they are checked by what reaches them.
    pub fn needs_hook(&self, hooks: &[Hook]) -> Result<(), What> {
        match self.hook {
            Some(hook) if !hooks.contains(&hook) => {
                let names: Vec<&str> = hooks.iter().map(|hook| hook.chain_name()).collect();
                Err(self.expected(format!("chain {}, not {}", names.join(" or "), self.chain)))
            }
            _ => Ok(()),
        }
    }

    /// An error at the name of the extension: `expected … with NAME`.
    pub fn expected(&self, what: impl fmt::Display) -> What {
        What::new(self.column, format!("{what} with {}", self.name))
    }
}
