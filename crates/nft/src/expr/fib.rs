//! `fib`: a question to the routes.

use crate::headers::{self, FIB, Key};
use crate::json::Json;
use crate::text::{Parser, Printer, Result};

/// What is asked, and by what.
#[derive(Debug, Clone, PartialEq)]
pub struct Fib {
    /// `type`, `oif`, `oifname` or `check`.
    pub result: &'static Key,
    /// What the question holds: `saddr`, `daddr`, `mark`, `iif`, `oif`.
    pub flags: Vec<&'static str>,
}

const FLAGS: [&str; 5] = ["saddr", "daddr", "mark", "iif", "oif"];

impl Fib {
    /// Asks only whether there is a route.
    pub(crate) fn check(&mut self) {
        if self.result.0 == "oif" {
            self.result = &FIB[3];
        }
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put(&format!("fib {} {}", self.flags.join(" . "), self.result.0));
    }

    pub(super) fn json(&self) -> Json {
        let flags = Json::List(self.flags.iter().map(|flag| Json::text(flag)).collect());
        Json::object(vec![(
            "fib",
            Json::object(vec![("result", Json::text(self.result.0)), ("flags", flags)]),
        )])
    }

    pub(super) fn parse(p: &mut Parser) -> Result<Self> {
        let mut flags = vec![p.one_of(&FLAGS, "saddr, daddr, mark, iif or oif")?];
        while p.eat(".") {
            flags.push(p.one_of(&FLAGS, "saddr, daddr, mark, iif or oif")?);
        }
        let word = p.word("type, oif, oifname or check")?;
        let Some(result) = headers::key(FIB, &word) else {
            return Err(p.refused("expected type, oif, oifname or check"));
        };
        Ok(Self { result, flags: ordered(flags) })
    }

    pub(super) fn read(body: &Json) -> Option<Self> {
        let mut flags = Vec::new();
        for flag in body.get("flags")?.items() {
            flags.push(FLAGS.into_iter().find(|name| flag.as_text() == Some(name))?);
        }
        Some(Self {
            result: headers::key(FIB, body.get("result")?.as_text()?)?,
            flags: ordered(flags),
        })
    }
}

fn ordered(flags: Vec<&'static str>) -> Vec<&'static str> {
    FLAGS.into_iter().filter(|flag| flags.contains(flag)).collect()
}
