//! Collects the options of one rule: the words go to the family's own tests, to the matches and to the
//! target, in the order in which iptables would hand them out.
//!
//! An option belongs to the newest match or target that declares it; failing that to the match that `-p`
//! brings along; failing that it may abbreviate one. Source: iptables `command_default`, getopt_long(3).
//!
//! Nobody can know which options a match or target has that tamis does not know. It gets all options that the rule
//! gives after its name, except options of the common header and options that a later extension declares: so a rule
//! never tests something that it does not say.

use super::dialect::is_abbreviation;
use super::warnings::LineWarnings;
use crate::error::What;
use crate::ext;
use crate::ext::kit::args::Loading;
use crate::ext::{Given, MatchKind, OpaqueWord, Opt, TargetKind};
use crate::family::Family;
use crate::header::ProtocolTest;
use crate::lexer::{Unquoted, Word, words};
use std::borrow::Cow;

/// An extension that tamis does not know: a match by its place, or the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Match(usize),
    Target,
}

/// The extensions of one rule.
#[derive(Debug)]
pub(super) struct Extensions<'a> {
    pub(super) family: Family,
    pub(super) matches: Vec<Loading<'a, MatchKind>>,
    /// The newest match of each kind, by its place: an option is looked for among as many as there are kinds, however
    /// many matches a rule has.
    of_kinds: Vec<(&'static MatchKind, usize)>,
    pub(super) target: Option<Loading<'a, TargetKind>>,
    /// Number of matches that the rule names before its target.
    before_target: usize,
    /// The unknown extension that the rule named last.
    unknown: Option<Unknown>,
}

/// The words of a rule, read one by one.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    words: Source<'a>,
    /// The second half of a word that was split.
    split: Option<Word<'a>>,
    /// The next word, if it was looked at already.
    peeked: Option<Word<'a>>,
    /// Column after the last word, for what is missing.
    pub(super) end: u32,
    /// `!` may stand after its option.
    late_invert: bool,
}

/// Where words come from.
#[derive(Debug)]
enum Source<'a> {
    /// Most lines have no quotes: their words are found as they are read.
    Line(Unquoted<'a>),
    List(std::vec::IntoIter<Word<'a>>),
}

impl<'a> Arguments<'a> {
    pub(super) fn new(words: Vec<Word<'a>>, end: u32) -> Self {
        Self::from(Source::List(words.into_iter()), end)
    }

    /// The words of a line.
    ///
    /// # Errors
    /// A quote that does not close.
    pub(super) fn of_line(line: &'a str, end: u32) -> Result<Self, What> {
        let words = match Unquoted::of(line) {
            Some(words) => Source::Line(words),
            None => Source::List(words(line, 1)?.into_iter()),
        };
        Ok(Self::from(words, end))
    }

    fn from(words: Source<'a>, end: u32) -> Self {
        Self { words, split: None, peeked: None, end, late_invert: false }
    }

    /// From here on words are read as this family's text reads them.
    pub(super) fn read_as(&mut self, family: Family) {
        self.late_invert = family.dialect().late_invert;
    }

    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        if self.split.is_some() {
            return self.split.take();
        }
        if self.peeked.is_some() {
            return self.peeked.take();
        }
        match &mut self.words {
            Source::Line(words) => words.next(),
            Source::List(words) => words.next(),
        }
    }

    /// Splits a value off its option, as getopt_long takes them: `--sport=1`, `-ptcp`. Only words that
    /// look like an option are split.
    pub(super) fn split_option(&mut self, word: Word<'a>) -> Word<'a> {
        let at = match word.text.strip_prefix("--") {
            Some(_) => word.text.find('=').map(|at| (at, at + 1)),
            None if word.text.starts_with(['-']) && word.text.is_char_boundary(2) => {
                (word.text.len() > 2).then_some((2, 2))
            }
            None => None,
        };
        let Some((end, start)) = at else { return word };
        let part = |range: std::ops::Range<usize>| match &word.text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
            Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
        };
        let column = word.column + start as u32;
        self.split = Some(Word { text: part(start..word.text.len()), column, quoted: true });
        Word { text: part(0..end), column: word.column, quoted: false }
    }

    pub(super) fn peek(&mut self) -> Option<&Word<'a>> {
        if self.split.is_some() {
            return self.split.as_ref();
        }
        if self.peeked.is_none() {
            self.peeked = self.next();
        }
        self.peeked.as_ref()
    }

    /// The next word, if it is such a one.
    fn next_if(&mut self, is: impl FnOnce(&mut Word<'a>) -> bool) -> Option<Word<'a>> {
        self.peek()?;
        let kept = if self.split.is_some() { &mut self.split } else { &mut self.peeked };
        kept.take_if(is)
    }

    /// The word before it as it stood, with the value that was split off it, where that needs no quotes.
    fn rejoined(&mut self, option: &str) -> Option<String> {
        let needs_quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '\'');
        let value = self.split.take_if(|value| !value.text.contains(needs_quotes))?;
        let between = if option.starts_with("--") { "=" } else { "" };
        Some(format!("{option}{between}{}", value.text))
    }

    /// The value of an option.
    pub(super) fn value(&mut self, option: &str) -> Result<Word<'a>, What> {
        let end = self.end;
        self.next().ok_or_else(|| What::new(end, format!("a value for {option}")))
    }

    /// Whether the next word may be a `!`: false at a glance, nearly always.
    fn may_be_bang(&self) -> bool {
        match &self.words {
            Source::Line(words) if self.split.is_none() && self.peeked.is_none() => {
                words.is_at(b'!')
            }
            _ => true,
        }
    }

    /// A `!` between an option and its value, as old tools wrote it.
    pub(super) fn late_invert(&mut self, warnings: &mut LineWarnings<'_>) -> Result<bool, What> {
        if !self.may_be_bang() {
            return Ok(false);
        }
        let late = self.peek().filter(|word| is_bang(word)).map(|word| word.column);
        if let Some(column) = late {
            if self.late_invert {
                self.next();
                return Ok(true);
            }
            warnings.lenient(column, "`!` after its option (`-d ! x` for `! -d x`)")?;
            self.next();
        }
        Ok(late.is_some())
    }
}

pub(super) fn is_bang(word: &Word<'_>) -> bool {
    !word.quoted && word.text == "!"
}

fn is_option(word: &Word<'_>) -> bool {
    is_bang(word) || (!word.quoted && word.text.starts_with('-'))
}

fn is_negative_number(word: &Word<'_>) -> bool {
    word.text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Which loaded extension an option belongs to.
enum Owner {
    Match(usize, &'static Opt),
    Target(&'static Opt),
}

impl<'a> Extensions<'a> {
    pub(super) fn new(family: Family) -> Self {
        let (matches, of_kinds) = (Vec::new(), Vec::new());
        Self { family, matches, of_kinds, target: None, before_target: 0, unknown: None }
    }

    /// Loads a match.
    pub(super) fn load(&mut self, kind: Option<&'static MatchKind>, name: Word<'a>) {
        let place = self.matches.len();
        self.matches.push(Loading::new(kind, name));
        let Some(kind) = kind else {
            self.unknown = Some(Unknown::Match(place));
            return;
        };
        match self.of_kinds.iter_mut().find(|(known, _)| std::ptr::eq(*known, kind)) {
            Some((_, newest)) => *newest = place,
            None => self.of_kinds.push((kind, place)),
        }
    }

    /// Loads the target.
    pub(super) fn load_target(&mut self, kind: Option<&'static TargetKind>, name: Word<'a>) {
        if kind.is_none() {
            self.unknown = Some(Unknown::Target);
        }
        self.before_target = self.matches.len();
        self.target = Some(Loading::new(kind, name));
    }

    /// Takes the target away that has no options and is not known: it may be a chain that is declared later.
    pub(super) fn take_bare_target(&mut self) -> Option<Word<'a>> {
        let is_bare =
            |target: &mut Loading<'_, _>| target.kind.is_none() && target.words.is_empty();
        self.target.take_if(is_bare).map(|target| target.name)
    }

    /// Hands an option with its values to the extension that declares it.
    pub(super) fn take(
        &mut self,
        option: &Word<'a>,
        mut invert: bool,
        words: &mut Arguments<'a>,
        protocol: Option<ProtocolTest>,
        warnings: &mut LineWarnings<'_>,
    ) -> Result<(), What> {
        let Some(owner) = self.owner(&option.text, protocol) else {
            return self.keep(option, invert, words);
        };
        let opt = match owner {
            Owner::Match(_, opt) | Owner::Target(opt) => opt,
        };
        if opt.values > 0 && opt.invert && !invert {
            invert = words.late_invert(warnings)?;
        }
        if invert && !opt.invert {
            return Err(What::new(option.column, format!("no ! before --{}", opt.name)));
        }
        let mut values = Vec::with_capacity(opt.values.into());
        for _ in 0..opt.values {
            if opt.optional && words.peek().is_none_or(is_option) {
                break;
            }
            values.push(words.value(&option.text)?);
        }
        let given = Given { name: opt.name, invert, column: option.column, values };
        let list = match owner {
            Owner::Match(index, _) => &mut self.matches[index].given,
            Owner::Target(_) => match &mut self.target {
                Some(target) => &mut target.given,
                None => return Ok(()),
            },
        };
        if !opt.many && list.iter().any(|earlier| earlier.name == opt.name) {
            return Err(What::new(option.column, format!("--{} only once", opt.name)));
        }
        list.push(given);
        Ok(())
    }

    fn owner(&mut self, option: &str, protocol: Option<ProtocolTest>) -> Option<Owner> {
        let name = option.strip_prefix("--")?;
        if let Some(owner) = self.declared(|opt| opt.is_called(name)) {
            return Some(owner);
        }
        if self.unknown.is_some() {
            return None;
        }
        if !self.family.dialect().names_matches {
            let kind = ext::find_match_with(name, self.family)?;
            let word = Word { text: kind.name.into(), column: 1, quoted: false };
            self.load(Some(kind), word);
            return self.declared(|opt| opt.is_called(name));
        }
        let implied = protocol
            .and_then(|protocol| ext::find_implied(protocol.number, self.family))
            .filter(|kind| !self.has(kind) && kind.options.iter().any(|opt| opt.is_called(name)));
        if let Some(kind) = implied {
            let word = Word { text: kind.name.into(), column: 1, quoted: false };
            self.load(Some(kind), word);
            return self.declared(|opt| opt.is_called(name));
        }
        self.declared(|opt| opt.is_abbreviated(name))
    }

    fn has(&self, kind: &'static MatchKind) -> bool {
        self.of_kinds.iter().any(|(known, _)| std::ptr::eq(*known, kind))
    }

    /// Whether a loaded extension has an option of this very name, or may have it.
    pub(super) fn declare(&self, option: &str) -> bool {
        let name = option.strip_prefix("--");
        name.is_some_and(|name| self.declared(|opt| opt.is_called(name)).is_some())
            || self.unknown.is_some() && is_abbreviation(option)
    }

    /// The extension that declares an option, the target before the newest match. One that the rule named before an
    /// unknown one does not count: the option may be the unknown one's.
    fn declared(&self, is: impl Fn(&Opt) -> bool) -> Option<Owner> {
        let (first_match, has_target) = match self.unknown {
            None => (0, true),
            Some(Unknown::Match(place)) => (place, self.before_target > place),
            Some(Unknown::Target) => (self.before_target, false),
        };
        let of_target = self
            .target
            .as_ref()
            .filter(|_| has_target)
            .and_then(|target| target.kind)
            .and_then(|kind| kind.options.iter().find(|opt| is(opt)).map(Owner::Target));
        of_target.or_else(|| {
            let later = self.of_kinds.iter().filter(|(_, place)| *place >= first_match);
            let found = later.filter_map(|(kind, place)| {
                Some((*place, kind.options.iter().find(|opt| is(opt))?))
            });
            found.max_by_key(|(place, _)| *place).map(|(place, opt)| Owner::Match(place, opt))
        })
    }

    /// Whether the rule named an extension that tamis does not know.
    pub(super) fn has_unknown(&self) -> bool {
        self.unknown.is_some()
    }

    /// Keeps a word of the unknown extension that the rule named last, and what follows it up to the next option.
    pub(super) fn keep(
        &mut self,
        word: &Word<'a>,
        invert: bool,
        words: &mut Arguments<'a>,
    ) -> Result<(), What> {
        let kept = match self.unknown {
            None => None,
            Some(Unknown::Target) => self.target.as_mut().map(|target| &mut target.words),
            Some(Unknown::Match(place)) => self.matches.get_mut(place).map(|one| &mut one.words),
        };
        let Some(kept) = kept else {
            let what = format!("an option of this rule's matches or target, found {}", word.text);
            return Err(What::new(word.column, what));
        };
        if invert {
            kept.push(OpaqueWord::bare("!"));
        }
        kept.push(match words.rejoined(&word.text) {
            Some(whole) => OpaqueWord::bare(whole),
            None => OpaqueWord::of(word),
        });
        let is_value = |word: &mut Word<'_>| !is_option(word) || is_negative_number(word);
        while let Some(value) = words.next_if(is_value) {
            kept.push(OpaqueWord::of(&value));
        }
        Ok(())
    }
}
