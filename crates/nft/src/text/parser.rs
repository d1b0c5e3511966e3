//! The parser: its place in the text, and what all its parts need.

use std::collections::HashMap;

use super::Result;
use super::lexer::{Error, Kind, Lexer};
use crate::family::{Family, Position};
use crate::model::Ruleset;
use crate::types::{self, INTEGER, Ty};

/// Most expressions within each other.
const DEPTH: u32 = 24;

/// Reads the files that `include` names: a pattern in, their names and texts out, or why not.
pub type Includes<'a> = dyn Fn(&str) -> std::result::Result<Vec<(String, String)>, String> + 'a;

/// Reads text.
pub struct Parser<'a> {
    pub(super) lex: Lexer,
    /// Family of the table that is read.
    pub family: Family,
    depth: u32,
    /// Where the word began that was taken last.
    last: Position,
    pub(super) ruleset: Ruleset,
    pub(super) table: usize,
    pub(super) nameless: u32,
    /// Where the chains of each table stand, for tables have tens of thousands; cleared where a chain or table goes.
    pub(super) chains: HashMap<(usize, Box<str>), usize>,
    pub(super) includes: &'a Includes<'a>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(file: &str, text: &str, includes: &'a Includes<'a>) -> Self {
        Self {
            lex: Lexer::new(file, text),
            family: Family::Ip,
            depth: 0,
            last: Position::default(),
            ruleset: Ruleset::default(),
            table: 0,
            nameless: 0,
            chains: HashMap::new(),
            includes,
        }
    }

    /// Returns the current word or sign; of text in quotes what they hold.
    pub fn peek(&self) -> &str {
        &self.lex.word
    }

    /// Says whether the current token is in quotes.
    pub fn is_quoted(&self) -> bool {
        self.lex.kind == Kind::Quoted
    }

    /// Says whether the current token is a word or sign.
    pub fn is(&self, word: &str) -> bool {
        self.lex.kind != Kind::Quoted && self.lex.word == word && !word.is_empty()
    }

    /// Goes to the next token.
    pub fn next(&mut self) {
        self.lex.next();
    }

    /// Passes a word or sign, if it is the current one.
    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.is(word);
        if found {
            self.next();
        }
        found
    }

    /// Passes a word or sign that must follow.
    pub fn expect(&mut self, word: &str) -> Result<()> {
        if self.eat(word) { Ok(()) } else { Err(self.wanted(word)) }
    }

    /// Makes the error that something else was expected here.
    pub fn wanted(&self, what: &str) -> Error {
        let found = match self.lex.kind {
            Kind::Newline => "the end of the line".to_owned(),
            Kind::End => "the end of the text".to_owned(),
            _ => self.lex.word.clone(),
        };
        self.lex.error_at(self.lex.at, &format!("expected {what} instead of {found}"))
    }

    /// Makes an error about the word that was taken last.
    pub fn refused(&self, message: &str) -> Error {
        self.lex.error_at(self.last, message)
    }

    /// The place of the current word.
    pub fn place(&self) -> Position {
        self.lex.at
    }

    /// Makes an error about what stands at a place.
    pub fn refused_at(&self, place: Position, message: &str) -> Error {
        self.lex.error_at(place, message)
    }

    /// Takes a word, in quotes or not.
    pub fn word(&mut self, what: &str) -> Result<String> {
        if !matches!(self.lex.kind, Kind::Word | Kind::Quoted) {
            return Err(self.wanted(what));
        }
        let word = std::mem::take(&mut self.lex.word);
        self.last = self.lex.at;
        self.next();
        Ok(word)
    }

    /// Takes one of several words.
    pub fn one_of(&mut self, words: &[&'static str], what: &str) -> Result<&'static str> {
        match words.iter().find(|word| self.is(word)) {
            Some(word) => {
                self.next();
                Ok(word)
            }
            None => Err(self.wanted(what)),
        }
    }

    /// Takes a whole number, decimal or hexadecimal.
    pub fn integer<T: TryFrom<u128>>(&mut self) -> Result<T> {
        let value = types::number(self.peek()).and_then(|value| T::try_from(value).ok());
        match value {
            Some(value) => {
                self.next();
                Ok(value)
            }
            None => Err(self.wanted("a number")),
        }
    }

    /// Takes a span of time, in milliseconds.
    pub fn span(&mut self) -> Result<u128> {
        match types::span(self.peek()) {
            Some(ms) => {
                self.next();
                Ok(ms)
            }
            None => Err(self.wanted("a span of time such as 1h30m")),
        }
    }

    /// Takes `@name`.
    pub fn set_name(&mut self) -> Result<Box<str>> {
        match self.peek().strip_prefix('@') {
            Some(name) if !name.is_empty() => {
                let name = name.into();
                self.next();
                Ok(name)
            }
            _ => Err(self.wanted("@ and the name of a set")),
        }
    }

    /// Goes one expression deeper, if there may be one.
    pub fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH {
            Err(self.refused("expressions are nested too deeply"))
        } else {
            Ok(())
        }
    }

    /// Leaves an expression.
    pub fn shallower(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Passes ends of lines.
    pub(super) fn lines(&mut self) {
        while self.lex.kind == Kind::Newline {
            self.next();
        }
    }

    /// Passes ends of lines and of statements.
    pub(super) fn ends(&mut self) {
        while self.lex.kind == Kind::Newline || self.is(";") {
            self.next();
        }
    }

    /// Says that a line ends here, as it has to before a closing brace, too.
    pub(super) fn separator(&self) -> Result<()> {
        let ends = self.lex.kind == Kind::Newline || self.is(";");
        if ends { Ok(()) } else { Err(self.wanted("; or the end of the line")) }
    }

    /// Says whether a statement ends here.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.lex.kind, Kind::Newline | Kind::End) || self.is(";") || self.is("}")
    }

    /// Passes an opening brace and the ends of lines after it.
    pub fn open(&mut self) -> Result<()> {
        self.expect("{")?;
        self.lines();
        Ok(())
    }

    /// Passes a closing brace and the ends of lines before it.
    pub fn close(&mut self) -> Result<()> {
        self.lines();
        self.expect("}")
    }

    /// Says of what family the address is that follows, if one does.
    pub fn address_family(&self) -> Option<&'static str> {
        if self.is("[") || self.peek().parse::<std::net::Ipv6Addr>().is_ok() {
            return Some("ip6");
        }
        self.peek().parse::<std::net::Ipv4Addr>().is_ok().then_some("ip")
    }

    /// Returns the types of the keys of a set of the current table; none if it is not there.
    pub fn set_types(&self, name: &str) -> Vec<Ty> {
        let table = self.ruleset.tables.get(self.table);
        let set = table.and_then(|table| table.sets.iter().find(|set| &*set.name == name));
        set.map_or_else(Vec::new, |set| set.key.types())
    }

    /// Cuts the current word before a character.
    pub fn cut_at(&mut self, before: char) {
        if let Some(at) = self.peek().find(before).filter(|at| *at > 0) {
            self.lex.cut(at);
        }
    }

    /// Returns the types of what a map of the current table gives.
    pub fn map_types(&self, name: &str) -> Vec<Ty> {
        let table = self.ruleset.tables.get(self.table);
        let set = table.and_then(|table| table.sets.iter().find(|set| &*set.name == name));
        set.and_then(|set| set.data.as_ref()).map_or_else(|| vec![&INTEGER], |data| data.types())
    }

    /// Takes the handle that a comment gave.
    pub(super) fn handle(&mut self) -> Option<u64> {
        self.lex.handle.take()
    }
}
