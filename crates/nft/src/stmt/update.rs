//! Elements that rules add to sets and maps, and meters.

use crate::expr::Element;
use crate::json::{self, Json};
use crate::text::{Parser, Printer, Result};

/// An element added, updated or deleted by a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// `add`, `update`, `delete`, or `meter`.
    pub op: &'static str,
    /// The set, the map or the meter.
    pub set: Box<str>,
    /// What is added: key, statements, data.
    pub element: Element,
    /// Size of a meter.
    pub size: Option<u32>,
}

const OPS: [&str; 4] = ["add", "update", "delete", "meter"];

impl Update {
    pub(super) fn parse(p: &mut Parser) -> Result<Self> {
        if p.eat("set") {
            return Self::parse_old(p);
        }
        let op = p.one_of(&OPS, "add, update or delete")?;
        let set: Box<str> = if op == "meter" { p.word("a name")?.into() } else { p.set_name()? };
        let size = if op == "meter" && p.eat("size") { Some(p.integer()?) } else { None };
        let types = p.map_types(&set);
        p.open()?;
        let key = p.key(&p.set_types(&set))?;
        let mut element = p.element_rest(key)?;
        if p.eat(":") {
            element.data = Some(p.data(&types)?);
        }
        p.close()?;
        Ok(Self { op, set, element, size })
    }

    /// Reads the older form: `set update ip saddr timeout 5s @s`.
    fn parse_old(p: &mut Parser) -> Result<Self> {
        let op = p.one_of(&OPS[..3], "add, update or delete")?;
        let key = p.left()?;
        let element = p.element_rest(key)?;
        Ok(Self { op, set: p.set_name()?, element, size: None })
    }

    pub(super) fn print(&self, p: &mut Printer) {
        p.put(self.op);
        p.put(if self.op == "meter" { " " } else { " @" });
        p.put(&self.set);
        if let Some(size) = self.size {
            p.put(&format!(" size {size}"));
        }
        p.put(" { ");
        // Here the timeout comes before the statements.
        let (mut head, mut tail) = (self.element.clone(), self.element.clone());
        head.stmts.clear();
        head.data = None;
        head.print(p);
        for stmt in std::mem::take(&mut tail.stmts) {
            p.put(" ");
            stmt.print(p);
        }
        if let Some(data) = &self.element.data {
            p.put(" : ");
            data.print(p);
        }
        p.put(" }");
    }

    pub(super) fn json(&self, p: &Printer) -> Json {
        let mut bare = self.element.clone();
        bare.stmts.clear();
        bare.data = None;
        let stmts = Json::each(&self.element.stmts, |stmt| stmt.json(p));
        if self.op == "meter" {
            let mut members = vec![("key", bare.json(p)), ("stmt", stmts.single())];
            members.extend(self.size.map(|size| ("size", Json::of(size))));
            members.push(("name", Json::text(&self.set)));
            return Json::object(vec![("meter", Json::object(members))]);
        }
        let kind = if self.element.data.is_some() { "map" } else { "set" };
        let mut members = vec![("op", Json::text(self.op)), ("elem", bare.json(p))];
        members.extend(self.element.data.as_ref().map(|data| ("data", data.json(p))));
        members.push((kind, Json::Text(format!("@{}", self.set))));
        if !self.element.stmts.is_empty() {
            members.push(("stmt", stmts));
        }
        Json::object(vec![(kind, Json::object(members))])
    }

    pub(super) fn read(name: &str, body: &Json, cx: &json::Cx) -> Option<Self> {
        let meter = name == "meter";
        let op = if meter { "meter" } else { body.get("op")?.as_text()? };
        let op = OPS.into_iter().find(|name| *name == op)?;
        let set: Box<str> =
            body.get(if meter { "name" } else { name })?.as_text()?.trim_start_matches('@').into();
        let key = body.get(if meter { "key" } else { "elem" })?;
        let mut element = match key.get("elem") {
            Some(elem) => elem.element_rest(elem.get("val")?.right(&cx.set_types(&set))?, cx)?,
            None => Element::new(key.right(&cx.set_types(&set))?),
        };
        for stmt in body.get("stmt").map_or(&[][..], Json::items) {
            element.stmts.push(stmt.statement(cx));
        }
        if let Some(data) = body.get("data") {
            element.data = Some(data.data(&cx.map_types(&set))?);
        }
        let size = body.get("size").and_then(json::integer);
        Some(Self { op, set, element, size })
    }
}
