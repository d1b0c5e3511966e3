//! Verdicts.

use crate::json::Json;
use crate::text::{Parser, Printer, Result};

/// A verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The base chain lets the packet through.
    Accept,
    /// The packet is dropped.
    Drop,
    /// The next rule follows.
    Continue,
    /// The calling chain goes on.
    Return,
    /// A chain is called.
    Jump(Box<str>),
    /// A chain takes the place of this one.
    Goto(Box<str>),
}

const WORDS: [(&str, Verdict); 4] = [
    ("accept", Verdict::Accept),
    ("drop", Verdict::Drop),
    ("continue", Verdict::Continue),
    ("return", Verdict::Return),
];

impl Verdict {
    fn named(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Accept => ("accept", None),
            Self::Drop => ("drop", None),
            Self::Continue => ("continue", None),
            Self::Return => ("return", None),
            Self::Jump(chain) => ("jump", Some(chain)),
            Self::Goto(chain) => ("goto", Some(chain)),
        }
    }

    /// Reads a verdict, if the current word begins one.
    pub fn parse(p: &mut Parser) -> Result<Option<Self>> {
        if p.is_quoted() {
            return Ok(None);
        }
        let word = p.peek();
        if let Some((_, verdict)) = WORDS.iter().find(|(name, _)| *name == word) {
            p.next();
            return Ok(Some(verdict.clone()));
        }
        let jump = word == "jump";
        if !jump && word != "goto" {
            return Ok(None);
        }
        p.next();
        let chain =
            if p.is("{") { p.nameless_chain()? } else { p.word("the name of a chain")? }.into();
        Ok(Some(if jump { Self::Jump(chain) } else { Self::Goto(chain) }))
    }

    /// Writes it as text.
    pub fn print(&self, p: &mut Printer) {
        let (word, chain) = self.named();
        p.put(word);
        if let Some(chain) = chain {
            p.put(" ");
            p.name(chain);
        }
    }

    /// Writes it as JSON.
    pub fn json(&self) -> Json {
        let (word, chain) = self.named();
        let body =
            chain.map_or(Json::Null, |chain| Json::object(vec![("target", Json::text(chain))]));
        Json::object(vec![(word, body)])
    }

    /// Reads it of JSON.
    pub fn read(name: &str, body: &Json) -> Option<Self> {
        if let Some((_, verdict)) = WORDS.iter().find(|(word, _)| *word == name) {
            return Some(verdict.clone());
        }
        let chain = || body.get("target").and_then(Json::as_text).map(Box::from);
        match name {
            "jump" => Some(Self::Jump(chain()?)),
            "goto" => Some(Self::Goto(chain()?)),
            _ => None,
        }
    }
}
