//! Named objects of a table.

use super::{Parser, Result};
use crate::json::Json;
use crate::model::{Body, Object};
use crate::stmt::{self, Limit, Quota, Synproxy};

impl Parser<'_> {
    /// Reads an object whose first word was passed: its kind, its name and its body.
    pub(super) fn object(&mut self, word: &str) -> Result<()> {
        if word == "ct" {
            let kind = self
                .one_of(&["helper", "timeout", "expectation"], "helper, timeout or expectation")?;
            return self.object_of(&format!("ct {kind}"));
        }
        self.object_of(word)
    }

    /// Reads an object whose kind was passed.
    pub(super) fn object_of(&mut self, kind: &str) -> Result<()> {
        let name = self.word("the name of an object")?;
        self.handle();
        let braces = self.eat("{");
        let handle = self.handle();
        let mut comment = None;
        let mut body = empty(kind);
        loop {
            if braces {
                self.ends();
                if self.eat("}") {
                    break;
                }
            } else if self.at_end() {
                break;
            }
            if self.eat("comment") {
                comment = Some(self.word("a comment")?.into());
            } else {
                self.object_line(&mut body)?;
            }
        }
        if let Body::Helper(_, _, of) | Body::Timeout(_, of, _) | Body::Expectation(.., of) =
            &mut body
            && of.is_empty()
        {
            *of = self.family.name().into();
        }
        if let Body::Helper(_, protocol, _)
        | Body::Timeout(protocol, ..)
        | Body::Expectation(protocol, ..) = &body
            && protocol.is_empty()
        {
            return Err(self.refused(&format!("expected the protocol of {kind} {name}")));
        }
        let object = Object { name: name.into(), handle, comment, body };
        let objects = &mut self.here().objects;
        objects
            .retain(|other| other.name != object.name || other.body.kind() != object.body.kind());
        objects.push(object);
        Ok(())
    }

    fn object_line(&mut self, body: &mut Body) -> Result<()> {
        match body {
            Body::Counter(counter) => {
                if !self.is("packets") {
                    return Err(self.wanted("packets or }"));
                }
                *counter = stmt::counter(self)?;
            }
            Body::Quota(quota) => *quota = Quota::parse(self)?,
            Body::Limit(limit) => {
                self.expect("rate")?;
                *limit = Limit::parse(self)?;
            }
            Body::Synproxy(synproxy) => {
                let line = Synproxy::parse(self)?;
                if line == Synproxy::default() {
                    return Err(self.wanted("mss, wscale, timestamp, sack-perm or }"));
                }
                synproxy.merge(&line);
            }
            Body::Secmark(label) => *label = self.word("a label")?.into(),
            Body::Tunnel(json) => {
                let line = self.tunnel_line()?;
                json.merge(line);
            }
            Body::Helper(..) | Body::Timeout(..) | Body::Expectation(..) => self.ct_line(body)?,
        }
        Ok(())
    }

    fn ct_line(&mut self, body: &mut Body) -> Result<()> {
        let word = self.word("a line of the object or }")?;
        match (word.as_str(), body) {
            ("type", Body::Helper(helper, protocol, _)) => {
                *helper = self.word("the name of a helper")?.into();
                self.expect("protocol")?;
                *protocol = self.word("a protocol")?.into();
            }
            ("protocol", Body::Timeout(protocol, ..) | Body::Expectation(protocol, ..)) => {
                *protocol = self.word("a protocol")?.into();
            }
            (
                "l3proto",
                Body::Helper(_, _, family)
                | Body::Timeout(_, family, _)
                | Body::Expectation(.., family),
            ) => {
                *family = self.word("a family")?.into();
            }
            ("policy", Body::Timeout(_, _, states)) => {
                self.expect("=")?;
                self.open()?;
                while !self.is("}") {
                    let state = self.word("a state")?.to_ascii_lowercase();
                    self.expect(":")?;
                    let seconds = u32::try_from(self.span()? / 1000).unwrap_or(u32::MAX);
                    states.push((state.into(), seconds));
                    self.eat(",");
                    self.lines();
                }
                self.close()?;
            }
            ("dport", Body::Expectation(_, port, ..)) => *port = self.integer()?,
            ("timeout", Body::Expectation(_, _, timeout, ..)) => {
                *timeout = u64::try_from(self.span()?).unwrap_or(u64::MAX);
            }
            ("size", Body::Expectation(_, _, _, size, _)) => *size = self.integer()?,
            _ => {
                return Err(
                    self.refused(&format!("expected a line of the object instead of {word}"))
                );
            }
        }
        Ok(())
    }

    /// Reads a line of a tunnel, which may hold a block of its own.
    fn tunnel_line(&mut self) -> Result<Json> {
        self.deeper()?;
        let name = self.word("an option of a tunnel")?;
        let mut members = Vec::new();
        let value = if self.eat("{") {
            loop {
                self.ends();
                if self.eat("}") {
                    break;
                }
                if let Json::Object(more) = self.tunnel_line()? {
                    members.extend(more);
                }
            }
            Json::Object(members)
        } else {
            let mut words = Vec::new();
            while !self.at_end() {
                let quote = if self.is_quoted() { "\"" } else { "" };
                words.push(format!("{quote}{}{quote}", self.word("a value")?));
            }
            Json::Text(words.join(" "))
        };
        self.shallower();
        Ok(Json::object(vec![(&name, value)]))
    }
}

fn empty(kind: &str) -> Body {
    let blank = || "".into();
    match kind {
        "counter" => Body::Counter(None),
        "quota" => Body::Quota(Quota { over: false, bytes: 0, used: 0 }),
        "limit" => {
            Body::Limit(Limit { over: false, rate: 0, per: "second", burst: 5, bytes: false })
        }
        "ct helper" => Body::Helper(blank(), blank(), blank()),
        "ct timeout" => Body::Timeout(blank(), blank(), Vec::new()),
        "ct expectation" => Body::Expectation(blank(), 0, 0, 0, blank()),
        "synproxy" => Body::Synproxy(Synproxy::default()),
        "secmark" => Body::Secmark(blank()),
        _ => Body::Tunnel(Json::Object(Vec::new())),
    }
}
