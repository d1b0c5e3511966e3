//! `log`.

use crate::json::Json;
use crate::json::member as small;
use crate::text::{Parser, Printer, Result};

/// A line in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// Begins the line.
    pub prefix: Option<Box<str>>,
    /// Group of nflog.
    pub group: Option<u32>,
    /// Bytes that nflog gets.
    pub snaplen: Option<u32>,
    /// Packets that nflog gathers.
    pub threshold: Option<u32>,
    /// Level of syslog, unless `warn`.
    pub level: Option<&'static str>,
    /// What the line holds more: a bit for each of `FLAGS`.
    pub flags: u8,
}

const LEVELS: [&str; 9] =
    ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"];
const FLAGS: [&str; 5] = ["tcp sequence", "tcp options", "ip options", "skuid", "ether"];
const ALL: u8 = 31;

impl Log {
    pub(super) fn parse(p: &mut Parser) -> Result<Self> {
        p.next();
        let mut log = Self::default();
        loop {
            if p.eat("prefix") {
                log.prefix = Some(p.word("a prefix")?.into());
            } else if p.eat("group") {
                log.group = Some(p.integer()?);
            } else if p.eat("snaplen") {
                log.snaplen = Some(p.integer()?);
            } else if p.eat("queue-threshold") {
                log.threshold = Some(p.integer()?);
            } else if p.eat("level") {
                let level = p.one_of(&LEVELS, "a level of syslog")?;
                log.level = (level != "warn").then_some(level);
            } else if p.eat("flags") {
                log.flags |= Self::flag(p)?;
            } else {
                return Ok(log);
            }
        }
    }

    fn flag(p: &mut Parser) -> Result<u8> {
        Ok(
            match p
                .one_of(&["all", "tcp", "ip", "skuid", "ether"], "all, tcp, ip, skuid or ether")?
            {
                "all" => ALL,
                "tcp" => {
                    let mut bits = 0;
                    loop {
                        bits |= if p.one_of(&["sequence", "options"], "sequence or options")?
                            == "sequence"
                        {
                            1
                        } else {
                            2
                        };
                        if !p.eat(",") {
                            return Ok(bits);
                        }
                    }
                }
                "ip" => {
                    p.expect("options")?;
                    4
                }
                "skuid" => 8,
                _ => 16,
            },
        )
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put("log");
        if let Some(prefix) = &self.prefix {
            p.put(&format!(" prefix \"{prefix}\""));
        }
        for (name, value) in
            [("group", self.group), ("snaplen", self.snaplen), ("queue-threshold", self.threshold)]
        {
            if let Some(value) = value {
                p.put(&format!(" {name} {value}"));
            }
        }
        if let Some(level) = self.level {
            p.put(&format!(" level {level}"));
        }
        if self.flags == ALL {
            p.put(" flags all");
            return;
        }
        match self.flags & 3 {
            1 => p.put(" flags tcp sequence"),
            2 => p.put(" flags tcp options"),
            3 => p.put(" flags tcp sequence,options"),
            _ => {}
        }
        for (at, name) in FLAGS.iter().enumerate().skip(2) {
            if self.flags >> at & 1 == 1 {
                p.put(&format!(" flags {name}"));
            }
        }
    }

    pub(super) fn json(&self) -> Json {
        let mut members = Vec::new();
        members.extend(self.prefix.as_ref().map(|prefix| ("prefix", Json::text(prefix))));
        for (name, value) in
            [("group", self.group), ("snaplen", self.snaplen), ("queue-threshold", self.threshold)]
        {
            members.extend(value.map(|value| (name, Json::of(value))));
        }
        members.extend(self.level.map(|level| ("level", Json::text(level))));
        if self.flags == ALL {
            members.push(("flags", Json::List(vec![Json::text("all")])));
        } else if self.flags != 0 {
            let set = FLAGS.iter().enumerate().filter(|(at, _)| self.flags >> at & 1 == 1);
            members.push(("flags", Json::List(set.map(|(_, name)| Json::text(name)).collect())));
        }
        Json::object(members).or_null()
    }

    pub(super) fn read(body: &Json) -> Option<Self> {
        let mut log = Self {
            prefix: body.get("prefix").and_then(Json::as_text).map(Into::into),
            group: small(body, "group"),
            snaplen: small(body, "snaplen"),
            threshold: small(body, "queue-threshold"),
            ..Self::default()
        };
        if let Some(level) = body.get("level") {
            let level = LEVELS.into_iter().find(|name| level.as_text() == Some(name))?;
            log.level = (level != "warn").then_some(level);
        }
        for flag in body.get("flags").map_or(&[][..], Json::items) {
            log.flags |= match flag.as_text()? {
                "all" => ALL,
                name => 1 << FLAGS.iter().position(|flag| *flag == name)?,
            };
        }
        Some(log)
    }
}
