//! Reads one rule: the words after the counters.

mod build;

use super::dialect::Part;
use super::header;
use super::options::{Arguments, Extensions, is_bang};
use super::warnings::LineWarnings;
use crate::error::What;
use crate::ext;
use crate::family::Family;
use crate::header::HeaderTests;
use crate::lexer::Word;
use crate::model::Counters;
use header::Addresses;
use smallvec::smallvec;

pub(super) use build::{Setting, unknown_target};

/// Where a rule goes in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// `-A`.
    Append,
    /// `-I CHAIN number`, from 1.
    Insert(usize),
}

/// One line with a rule, its options collected but its extensions not yet read.
#[derive(Debug)]
pub(super) struct RuleLine<'a> {
    pub(super) position: Position,
    pub(super) chain: Word<'a>,
    pub(super) counters: Option<Counters>,
    /// `-4` or `-6` names another family: the rule is not meant for this one.
    pub(super) other_family: bool,
    sources: Addresses,
    destinations: Addresses,
    /// Bytes of text that list these.
    list_bytes: usize,
    /// The tests of the common header, but for the addresses.
    header: HeaderTests,
    pub(super) verdict: Option<Verdict<'a>>,
    extensions: Extensions<'a>,
    /// Options that may stand once and have: a bit for each, see [`bit_of`].
    seen: u32,
}

/// The bit of `-j` and `-g`.
const JUMP: u32 = 1 << 31;

/// The bit of a test.
fn bit_of(part: Part) -> u32 {
    let bit = match part {
        Part::Source => 0,
        Part::Destination => 1,
        Part::Input => 2,
        Part::Output => 3,
        Part::LogicalInput => 4,
        Part::LogicalOutput => 5,
        Part::Protocol => 6,
        Part::Fragment => 7,
        Part::Field(field) => 8 + field as u32,
    };
    1 << bit
}

/// An option that takes no `!` and belongs to no extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    Match,
    Jump,
    Goto,
    Counters,
    /// The rule is only for this family.
    Only(Family),
}

impl Plain {
    fn named(option: &str) -> Option<Self> {
        Some(match option {
            "-m" | "--match" => Self::Match,
            "-j" | "--jump" => Self::Jump,
            "-g" | "--goto" => Self::Goto,
            "-c" | "--set-counters" => Self::Counters,
            "-4" | "--ipv4" => Self::Only(Family::Ipv4),
            "-6" | "--ipv6" => Self::Only(Family::Ipv6),
            _ => return None,
        })
    }
}

/// What `-j` or `-g` names, when it is no extension.
#[derive(Debug)]
pub(super) enum Verdict<'a> {
    Accept,
    Drop,
    Return,
    Jump(Word<'a>),
    Goto(Word<'a>),
}

/// Reads the words of a rule that name its chain and, but for the number of `-I`, its place there.
pub(super) fn command<'a>(words: &mut Arguments<'a>) -> Result<(Position, Word<'a>), What> {
    let command = words.next().ok_or_else(|| What::new(1, "-A CHAIN"))?;
    let position = match &*command.text {
        "-A" | "--append" => Position::Append,
        "-I" | "--insert" => Position::Insert(1),
        other => {
            let what = format!("-A, -I, -N or -P in save text, found \"{other}\"");
            return Err(What::new(command.column, what));
        }
    };
    Ok((position, words.value(&command.text)?))
}

/// A warning that an extension is not known.
pub(super) fn unevaluated(option: &str, name: &str) -> String {
    format!("{option} {name}: not evaluated, kept as it stands")
}

impl<'a> RuleLine<'a> {
    /// A rule without any test.
    pub(super) fn new(position: Position, chain: Word<'a>, family: Family) -> Self {
        Self {
            position,
            chain,
            counters: None,
            other_family: false,
            sources: smallvec![None],
            destinations: smallvec![None],
            list_bytes: 0,
            header: HeaderTests { fields: header::implied(family), ..HeaderTests::default() },
            verdict: None,
            extensions: Extensions::new(family),
            seen: 0,
        }
    }

    /// Reads the words after the chain.
    pub(super) fn read(
        &mut self,
        words: &mut Arguments<'a>,
        is_chain: impl Fn(&str) -> bool,
        warnings: &mut LineWarnings<'_>,
    ) -> Result<(), What> {
        self.insert_number(words);
        while let Some(word) = words.next() {
            self.option(word, words, &is_chain, warnings)?;
        }
        match self.extensions.take_bare_target() {
            Some(name) => self.verdict = Some(Verdict::Jump(name)),
            None => {
                let unknown =
                    self.extensions.target.as_ref().filter(|target| target.kind.is_none());
                unknown
                    .into_iter()
                    .for_each(|target| warnings.add(unevaluated("-j", &target.name.text)));
            }
        }
        Ok(())
    }

    fn insert_number(&mut self, words: &mut Arguments<'a>) {
        if let Position::Insert(_) = self.position
            && let Some(word) = words.peek()
            && let Ok(number) = word.text.parse::<usize>()
        {
            self.position = Position::Insert(number);
            words.next();
        }
    }

    fn option(
        &mut self,
        word: Word<'a>,
        words: &mut Arguments<'a>,
        is_chain: &impl Fn(&str) -> bool,
        warnings: &mut LineWarnings<'_>,
    ) -> Result<(), What> {
        let (invert, word) = if is_bang(&word) { (true, words.value("!")?) } else { (false, word) };
        if word.quoted || !word.text.starts_with('-') {
            if invert && self.extensions.has_unknown() {
                return self.extensions.keep(&word, invert, words);
            }
            return Err(What::new(word.column, format!("an option, found \"{}\"", word.text)));
        }

        let word = words.split_option(word);
        // `--proto` is also an option of a loaded `-m policy`, and maybe of an unknown extension.
        let known = self.extensions.family.dialect().part(&word.text);
        match known.filter(|_| !self.extensions.declare(&word.text)) {
            Some((part, name)) => self.test(part, name, invert, &word, words, warnings),
            None => self.plain_option(word, invert, words, is_chain, warnings),
        }
    }

    /// A test that needs no extension.
    fn test(
        &mut self,
        part: Part,
        name: &'static str,
        invert: bool,
        word: &Word<'a>,
        words: &mut Arguments<'a>,
        warnings: &mut LineWarnings<'_>,
    ) -> Result<(), What> {
        let family = self.extensions.family;
        if part == Part::Fragment {
            self.once(bit_of(part), name, word)?;
            if family != Family::Ipv4 {
                return Err(What::new(word.column, "no -f: only IPv4 has it (-m frag)"));
            }
            self.header.fragment = Some(invert);
            return Ok(());
        }
        self.once(bit_of(part), name, word)?;
        let invert = invert || words.late_invert(warnings)?;
        let value = words.value(&word.text)?;
        if matches!(part, Part::Source | Part::Destination) {
            self.list_bytes += value.text.len();
        }
        match part {
            Part::Source => self.sources = header::addresses(&value, invert, family)?,
            Part::Destination => self.destinations = header::addresses(&value, invert, family)?,
            Part::Input => self.header.input = header::interface(&value, invert)?,
            Part::Output => self.header.output = header::interface(&value, invert)?,
            Part::LogicalInput => self.header.logical_input = header::interface(&value, invert)?,
            Part::LogicalOutput => self.header.logical_output = header::interface(&value, invert)?,
            Part::Protocol => self.header.protocol = header::protocol(&value, invert)?,
            Part::Field(field) => {
                let test = header::field(field, &value, invert)?;
                self.header.fields.retain(|implied| implied.field != field);
                self.header.fields.push(test);
            }
            Part::Fragment => {}
        }
        Ok(())
    }

    /// Takes an option that allows no `!`, or an option of an extension.
    fn plain_option(
        &mut self,
        word: Word<'a>,
        invert: bool,
        words: &mut Arguments<'a>,
        is_chain: &impl Fn(&str) -> bool,
        warnings: &mut LineWarnings<'_>,
    ) -> Result<(), What> {
        let Some(plain) = Plain::named(&word.text) else {
            let protocol = self.header.protocol;
            return self.extensions.take(&word, invert, words, protocol, warnings);
        };
        if plain == Plain::Match && !self.extensions.family.dialect().names_matches {
            return Err(What::new(word.column, "the options of a match, which need no -m here"));
        }
        if invert {
            return Err(What::new(word.column, format!("no ! before {}", word.text)));
        }
        match plain {
            Plain::Match => self.load_match(words.value("-m")?, warnings),
            Plain::Jump => {
                self.once(JUMP, "-j", &word)?;
                let name = words.value("-j")?;
                self.jump(name, is_chain)
            }
            Plain::Goto => {
                self.once(JUMP, "-j", &word)?;
                self.verdict = Some(Verdict::Goto(words.value("-g")?));
                Ok(())
            }
            Plain::Counters => self.set_counters(words),
            Plain::Only(family) => {
                self.other_family |= self.extensions.family != family;
                Ok(())
            }
        }
    }

    fn once(&mut self, bit: u32, name: &'static str, word: &Word<'_>) -> Result<(), What> {
        if self.seen & bit != 0 {
            return Err(What::new(word.column, format!("{name} only once")));
        }
        self.seen |= bit;
        Ok(())
    }

    fn set_counters(&mut self, words: &mut Arguments<'a>) -> Result<(), What> {
        let first = words.value("-c")?;
        let (packets, bytes) = match first.text.split_once(',') {
            Some((packets, bytes)) => (packets.to_owned(), bytes.to_owned()),
            None => (first.text.to_string(), words.value("-c")?.text.into_owned()),
        };
        let counters = packets.parse().ok().zip(bytes.parse().ok());
        let (packets, bytes) = counters
            .ok_or_else(|| What::new(first.column, "two counters: packets and bytes for -c"))?;
        self.counters = Some(Counters { packets, bytes });
        Ok(())
    }

    fn load_match(&mut self, name: Word<'a>, warnings: &mut LineWarnings<'_>) -> Result<(), What> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '"';
        if name.text.is_empty() || name.text.starts_with('-') || name.text.contains(odd) {
            return Err(What::new(
                name.column,
                format!("a match after -m, found \"{}\"", name.text),
            ));
        }
        let kind = ext::find_match(&name.text, self.extensions.family);
        if kind.is_none() {
            if let Some(meant) = ext::misspelt_match(&name.text, self.extensions.family) {
                let what = format!("a match after -m, found \"{}\" (is it {meant}?)", name.text);
                return Err(What::new(name.column, what));
            }
            warnings.add(unevaluated("-m", &name.text));
        }
        self.extensions.load(kind, name);
        Ok(())
    }

    fn jump(&mut self, name: Word<'a>, is_chain: &impl Fn(&str) -> bool) -> Result<(), What> {
        self.verdict = match &*name.text {
            "ACCEPT" => Some(Verdict::Accept),
            "DROP" => Some(Verdict::Drop),
            "RETURN" => Some(Verdict::Return),
            none if self.extensions.family.dialect().no_verdict == Some(none) => None,
            "" => return Err(What::new(name.column, "a chain or target after -j")),
            chain if is_chain(chain) => Some(Verdict::Jump(name)),
            target => {
                let kind = ext::find_target(target, self.extensions.family);
                self.extensions.load_target(kind, name);
                None
            }
        };
        Ok(())
    }
}
