//! Collects the options of one rule: the words go to the family's own tests, to the matches and to the
//! target, in the order in which iptables would hand them out.
//!
//! An option belongs to the newest match or target that declares it; failing that to the match that `-p`
//! brings along; failing that it may abbreviate one. Source: iptables `command_default`, getopt_long(3).

use super::LineWarnings;
use crate::error::What;
use crate::ext;
use crate::ext::kit::args::Loading;
use crate::ext::{Given, MatchKind, OpaqueWord, Opt, TargetKind};
use crate::family::Family;
use crate::header::ProtocolTest;
use crate::lexer::{Unquoted, Word, words};
use std::borrow::Cow;

/// Where the next unknown option goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Newest {
    None,
    Match,
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
    pub(super) newest: Newest,
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

/// Which loaded extension an option belongs to.
enum Owner {
    Match(usize, &'static Opt),
    Target(&'static Opt),
}

impl<'a> Extensions<'a> {
    pub(super) fn new(family: Family) -> Self {
        let (matches, of_kinds) = (Vec::new(), Vec::new());
        Self { family, matches, of_kinds, target: None, newest: Newest::None }
    }

    /// Loads a match.
    pub(super) fn load(&mut self, kind: Option<&'static MatchKind>, name: Word<'a>) {
        let place = self.matches.len();
        self.matches.push(Loading::new(kind, name));
        let Some(kind) = kind else { return };
        match self.of_kinds.iter_mut().find(|(known, _)| std::ptr::eq(*known, kind)) {
            Some((_, newest)) => *newest = place,
            None => self.of_kinds.push((kind, place)),
        }
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
            return self.take_unknown(option, invert, words);
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
        if !self.family.dialect().names_matches {
            let kind = ext::find_match_with(name, self.family)?;
            let word = Word { text: kind.name.into(), column: 1, quoted: false };
            self.load(Some(kind), word);
            return self.declared(|opt| opt.is_called(name));
        }
        let implied = protocol
            .and_then(|protocol| ext::find_implied(protocol.number, self.family))
            .filter(|kind| !self.has(kind) && kind.options.iter().any(|opt| opt.is_called(name)));
        if let (Some(kind), false) = (implied, self.newest_is_unknown()) {
            let word = Word { text: kind.name.into(), column: 1, quoted: false };
            self.load(Some(kind), word);
            return self.declared(|opt| opt.is_called(name));
        }
        if self.newest_is_unknown() {
            return None;
        }
        self.declared(|opt| opt.is_abbreviated(name))
    }

    fn has(&self, kind: &'static MatchKind) -> bool {
        self.of_kinds.iter().any(|(known, _)| std::ptr::eq(*known, kind))
    }

    /// Whether a loaded extension has an option of this very name.
    pub(super) fn declare(&self, option: &str) -> bool {
        let name = option.strip_prefix("--");
        name.is_some_and(|name| self.declared(|opt| opt.is_called(name)).is_some())
    }

    fn declared(&self, is: impl Fn(&Opt) -> bool) -> Option<Owner> {
        let of_target = self
            .target
            .as_ref()
            .and_then(|target| target.kind)
            .and_then(|kind| kind.options.iter().find(|opt| is(opt)).map(Owner::Target));
        of_target.or_else(|| {
            let found = self.of_kinds.iter().filter_map(|(kind, place)| {
                Some((*place, kind.options.iter().find(|opt| is(opt))?))
            });
            found.max_by_key(|(place, _)| *place).map(|(place, opt)| Owner::Match(place, opt))
        })
    }

    fn newest_is_unknown(&self) -> bool {
        match self.newest {
            Newest::None => false,
            Newest::Match => self.matches.last().is_some_and(|newest| newest.kind.is_none()),
            Newest::Target => self.target.as_ref().is_some_and(|target| target.kind.is_none()),
        }
    }

    /// Keeps the words of an extension that tamis does not know, up to the next option.
    fn take_unknown(
        &mut self,
        option: &Word<'a>,
        invert: bool,
        words: &mut Arguments<'a>,
    ) -> Result<(), What> {
        let kept = match self.newest {
            _ if !self.newest_is_unknown() => None,
            Newest::Target => self.target.as_mut().map(|target| &mut target.words),
            _ => self.matches.last_mut().map(|newest| &mut newest.words),
        };
        let Some(kept) = kept else {
            let what = format!("an option of this rule's matches or target, found {}", option.text);
            return Err(What::new(option.column, what));
        };
        if invert {
            kept.push(OpaqueWord::Option("!".into()));
        }
        kept.push(OpaqueWord::Option(option.text.as_ref().into()));
        while let Some(value) = words.peek() {
            if is_option(value) {
                break;
            }
            if let Some(value) = words.next() {
                kept.push(OpaqueWord::Value(value.text.as_ref().into()));
            }
        }
        Ok(())
    }
}
