//! Statements: what a rule is made of, in order. A kind is a file of this folder, with its text and its JSON both ways.

mod compare;
mod forward;
mod limit;
mod log;
mod nat;
mod object;
mod reject;
mod update;
mod verdict;

pub use compare::{Compare, Op};
pub use forward::{Forward, Queue, Synproxy};
pub use limit::{Limit, Quota};
pub use log::Log;
pub use nat::Nat;
pub use object::{KINDS, Named};
pub use reject::Reject;
pub use update::Update;
pub use verdict::Verdict;

use crate::expr::{Expr, Field, Part, Space};
use crate::json::{self, Json};
use crate::text::{Parser, Printer, Result};

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// A comparison that must hold.
    Compare(Compare),
    /// `key vmap { … }`: the verdict that the key's element holds, if there is one.
    Vmap(Expr, Expr),
    /// A verdict.
    Verdict(Verdict),
    /// `key set value`
    Mangle(Expr, Expr),
    /// `counter`: packets and bytes, unless the listing left them out.
    Counter(Option<(u64, u64)>),
    /// A limit of the rate.
    Limit(Limit),
    /// A quota of bytes.
    Quota(Quota),
    /// `ct count`: the number, and whether more than it match.
    CtCount(u32, bool),
    /// `last`: how long ago it was reached, in milliseconds.
    Last(Option<u64>),
    /// A use of a named object.
    Named(Named),
    /// `log`
    Log(Log),
    /// `reject`
    Reject(Reject),
    /// `snat`, `dnat`, `masquerade`, `redirect`
    Nat(Box<Nat>),
    /// `tproxy`, `dup`, `fwd`
    Forward(Box<Forward>),
    /// `queue`
    Queue(Queue),
    /// `synproxy`
    Synproxy(Synproxy),
    /// `notrack`
    Notrack,
    /// `flow add @flowtable`
    Flow(Box<str>),
    /// `add @set { … }` and the like, meters too.
    Update(Box<Update>),
    /// `reset tcp option …`
    Reset(Part),
    /// An extension of iptables: `match` or `target`, and its name. Its parameters are not listed.
    Xt(Box<str>, Box<str>),
    /// What this release does not know, as JSON has it.
    Unknown(Json),
}

impl Stmt {
    /// Reads a statement.
    pub fn parse(p: &mut Parser) -> Result<Self> {
        if let Some(verdict) = Verdict::parse(p)? {
            return Ok(Self::Verdict(verdict));
        }
        let word = p.peek().to_owned();
        if let Some(stmt) = Self::state(&word, p)? {
            return Ok(stmt);
        }
        Ok(match word.as_str() {
            "log" => Self::Log(Log::parse(p)?),
            "reject" => Self::Reject(Reject::parse(p)?),
            "snat" | "dnat" | "masquerade" | "redirect" => Self::Nat(Box::new(Nat::parse(p)?)),
            "tproxy" | "dup" | "fwd" => Self::Forward(Box::new(Forward::parse(p)?)),
            "queue" => Self::Queue(Queue::parse(p)?),
            "notrack" => {
                p.next();
                Self::Notrack
            }
            "flow" => {
                p.next();
                if !p.eat("add") {
                    p.expect("offload")?;
                }
                Self::Flow(p.set_name()?)
            }
            "add" | "update" | "delete" | "set" | "meter" => {
                Self::Update(Box::new(Update::parse(p)?))
            }
            "reset" => {
                p.next();
                p.expect("tcp")?;
                p.expect("option")?;
                Self::Reset(Part::option(Space::Tcp, p)?)
            }
            "xt" => {
                p.next();
                let kind = p.one_of(&["match", "target", "watcher"], "match or target")?;
                Self::Xt(kind.into(), p.word("the name of an extension")?.into())
            }
            _ => Self::field(p)?,
        })
    }

    /// Reads a statement that elements of sets may hold as well.
    pub fn state(word: &str, p: &mut Parser) -> Result<Option<Self>> {
        if !matches!(word, "counter" | "quota" | "limit" | "last" | "synproxy" | "tunnel" | "ct") {
            return Ok(None);
        }
        if word == "ct" {
            return Self::connection(p);
        }
        if word == "tunnel" {
            let first = Field::parse_tunnel(p)?;
            return match first {
                Some(field) => Self::begun(p, Some(field)).map(Some),
                None => Named::parse("tunnel", p).map(|named| Some(Self::Named(named))),
            };
        }
        p.next();
        if p.eat("name") {
            return Named::parse(word, p).map(|named| Some(Self::Named(named)));
        }
        if matches!(word, "counter" | "quota" | "limit") && p.is_quoted() {
            return Named::parse(word, p).map(|named| Some(Self::Named(named)));
        }
        Ok(Some(match word {
            "counter" => Self::Counter(counter(p)?),
            "quota" => Self::Quota(Quota::parse(p)?),
            "limit" => {
                p.expect("rate")?;
                Self::Limit(Limit::parse(p)?)
            }
            "last" => Self::Last(last(p)?),
            _ => Self::Synproxy(Synproxy::parse(p)?),
        }))
    }

    fn connection(p: &mut Parser) -> Result<Option<Self>> {
        p.next();
        if p.eat("count") {
            let over = p.eat("over");
            return Ok(Some(Self::CtCount(p.integer()?, over)));
        }
        for kind in ["timeout", "expectation"] {
            if p.eat(kind) {
                p.expect("set")?;
                return Named::parse(&format!("ct {kind}"), p)
                    .map(|named| Some(Self::Named(named)));
            }
        }
        let ct = crate::expr::Ct::parse(p)?;
        if ct.key.0 == "helper" && p.eat("set") {
            return Named::parse("ct helper", p).map(|named| Some(Self::Named(named)));
        }
        Self::begun(p, Some(Field::Ct(ct))).map(Some)
    }

    /// Reads a comparison, `vmap` or `set`, whose first field may have been read.
    fn begun(p: &mut Parser, first: Option<Field>) -> Result<Self> {
        let left = p.left_from(first)?;
        if p.eat("vmap") {
            let data = p.map_data(&left.types(), &[&crate::types::VERDICT])?;
            return Ok(Self::Vmap(left, data));
        }
        if p.eat("set") {
            if matches!(&left, Expr::Field(field) if matches!(&**field, Field::Keyed(key) if key.key.0 == "secmark"))
                && !Field::begins(p.peek())
                || p.is_secmark_map(&left)
            {
                return Named::parse("secmark", p).map(Self::Named);
            }
            let value = p.data(&left.types())?;
            return Ok(Self::Mangle(left, value));
        }
        Compare::rest(left, p).map(Self::Compare)
    }

    fn field(p: &mut Parser) -> Result<Self> {
        if !Field::begins(p.peek()) && !p.is("(") {
            return Err(p.wanted("a statement"));
        }
        Self::begun(p, None)
    }

    /// Writes it as text.
    pub fn print(&self, p: &mut Printer) {
        match self {
            Self::Compare(compare) => compare.print(p),
            Self::Vmap(key, data) => {
                key.print(p);
                p.put(" vmap ");
                data.print(p);
            }
            Self::Verdict(verdict) => verdict.print(p),
            Self::Mangle(key, value) => {
                key.print(p);
                p.put(" set ");
                match value {
                    Expr::Value(value) => value.print(&mut p.out, p.style),
                    other => other.print(p),
                }
            }
            Self::Counter(Some((packets, bytes))) if !p.stateless => {
                p.put(&format!("counter packets {packets} bytes {bytes}"));
            }
            Self::Counter(_) => p.put("counter"),
            Self::Limit(limit) => {
                p.put("limit rate ");
                limit.print(p, false);
            }
            Self::Quota(quota) => {
                p.put("quota ");
                quota.print(p);
            }
            Self::CtCount(count, over) => {
                p.put(&format!("ct count {}{count}", if *over { "over " } else { "" }))
            }
            Self::Last(Some(ms)) if !p.stateless => {
                p.put("last used ");
                p.span(u128::from(*ms));
            }
            Self::Last(_) => p.put(if p.stateless { "last" } else { "last used never" }),
            Self::Named(named) => named.print(p),
            Self::Log(log) => log.print(p),
            Self::Reject(reject) => reject.print(p),
            Self::Nat(nat) => nat.print(p),
            Self::Forward(forward) => forward.print(p),
            Self::Queue(queue) => queue.print(p),
            Self::Synproxy(synproxy) => {
                p.put("synproxy");
                synproxy.print(p, " ");
            }
            Self::Notrack => p.put("notrack"),
            Self::Flow(table) => p.put(&format!("flow add @{table}")),
            Self::Update(update) => update.print(p),
            Self::Reset(part) => {
                p.put("reset ");
                part.print(p);
            }
            Self::Xt(kind, name) => p.put(&format!("xt {kind} \"{name}\"")),
            Self::Unknown(json) => p.put(&format!("unknown {}", json.to_text())),
        }
    }

    /// Writes it as JSON.
    pub fn json(&self, p: &Printer) -> Json {
        let one = |name: &str, body: Json| Json::object(vec![(name, body)]);
        match self {
            Self::Compare(compare) => compare.json(p),
            Self::Vmap(key, data) => {
                one("vmap", Json::object(vec![("key", key.json(p)), ("data", data.json(p))]))
            }
            Self::Verdict(verdict) => verdict.json(),
            Self::Mangle(key, value) => {
                one("mangle", Json::object(vec![("key", key.json(p)), ("value", value.json(p))]))
            }
            Self::Counter(Some((packets, bytes))) if !p.stateless => one(
                "counter",
                Json::object(vec![("packets", Json::of(*packets)), ("bytes", Json::of(*bytes))]),
            ),
            Self::Counter(_) => one("counter", Json::Null),
            Self::Limit(limit) => one("limit", Json::object(limit.json(false))),
            Self::Quota(quota) => one("quota", quota.json()),
            Self::CtCount(count, over) => {
                let mut members = vec![("val", Json::of(*count))];
                members.extend(over.then_some(("inv", Json::Bool(true))));
                one("ct count", Json::object(members))
            }
            Self::Last(Some(ms)) if !p.stateless => {
                one("last", Json::object(vec![("used", Json::of(*ms))]))
            }
            Self::Last(_) => one("last", Json::Null),
            Self::Named(named) => named.json(p),
            Self::Log(log) => one("log", log.json()),
            Self::Reject(reject) => one("reject", reject.json(p)),
            Self::Nat(nat) => nat.json(p),
            Self::Forward(forward) => forward.json(p),
            Self::Queue(queue) => one("queue", queue.json(p)),
            Self::Synproxy(synproxy) => one("synproxy", Json::object(synproxy.json()).or_null()),
            Self::Notrack => one("notrack", Json::Null),
            Self::Flow(table) => {
                let members =
                    vec![("op", Json::text("add")), ("flowtable", Json::Text(format!("@{table}")))];
                one("flow", Json::object(members))
            }
            Self::Update(update) => update.json(p),
            Self::Reset(part) => one("reset", Field::Part(part.clone()).json(p)),
            Self::Xt(kind, name) => one(
                "xt",
                Json::object(vec![("type", Json::text(kind)), ("name", Json::text(name))]),
            ),
            Self::Unknown(json) => json.clone(),
        }
    }

    fn known(name: &str, body: &Json, cx: &json::Cx) -> Option<Self> {
        if let Some(verdict) = Verdict::read(name, body) {
            return Some(Self::Verdict(verdict));
        }
        let integer = |name| body.get(name).and_then(Json::as_number);
        Some(match name {
            "match" => Self::Compare(Compare::read(body)?),
            "vmap" => {
                let (key, data) = body.map(&[&crate::types::VERDICT])?;
                Self::Vmap(key, data)
            }
            "mangle" => {
                let key = body.get("key")?.left()?;
                let value = body.get("value")?.data(&key.types())?;
                Self::Mangle(key, value)
            }
            "counter" if body == &Json::Null => Self::Counter(None),
            "counter" if body.get("packets").is_some() => {
                let number = |name| integer(name).and_then(|value| u64::try_from(value).ok());
                Self::Counter(Some((number("packets")?, number("bytes")?)))
            }
            "limit" if body.get("rate").is_some() => Self::Limit(Limit::read(body)?),
            "quota" if body.get("val").is_some() => Self::Quota(Quota::read(body)?),
            "ct count" => Self::CtCount(json::integer(body.get("val")?)?, body.is_true("inv")),
            "last" => Self::Last(integer("used").and_then(|ms| u64::try_from(ms).ok())),
            "log" => Self::Log(Log::read(body)?),
            "reject" => Self::Reject(Reject::read(body)?),
            "snat" | "dnat" | "masquerade" | "redirect" => {
                Self::Nat(Box::new(Nat::read(name, body, cx)?))
            }
            "tproxy" | "dup" | "fwd" => Self::Forward(Box::new(Forward::read(name, body, cx)?)),
            "queue" => Self::Queue(Queue::read(body)?),
            "synproxy" if body == &Json::Null || body.get("map").is_none() && body.is_object() => {
                Self::Synproxy(Synproxy::read(body)?)
            }
            "notrack" => Self::Notrack,
            "flow" => Self::Flow(body.get("flowtable")?.as_text()?.trim_start_matches('@').into()),
            "set" | "map" | "meter" => Self::Update(Box::new(Update::read(name, body, cx)?)),
            "reset" => {
                let (name, part) = body.one()?;
                match Field::read(name, part)? {
                    Field::Part(part) => Self::Reset(part),
                    _ => return None,
                }
            }
            "xt" => {
                let text = |name| body.get(name).and_then(Json::as_text);
                Self::Xt(text("type")?.into(), text("name")?.into())
            }
            _ => Self::Named(Named::read(name, body)?),
        })
    }
}

impl Json {
    /// Reads the statement that an object is; what is not known is kept as it is.
    pub fn statement(&self, cx: &json::Cx) -> Stmt {
        self.one()
            .and_then(|(name, body)| Stmt::known(name, body, cx))
            .unwrap_or_else(|| Stmt::Unknown(self.clone()))
    }
}

pub(crate) fn counter(p: &mut Parser) -> Result<Option<(u64, u64)>> {
    if p.eat("bytes") {
        let bytes = p.integer()?;
        p.expect("packets")?;
        return Ok(Some((p.integer()?, bytes)));
    }
    if !p.eat("packets") {
        return Ok(None);
    }
    let packets = p.integer()?;
    p.expect("bytes")?;
    Ok(Some((packets, p.integer()?)))
}

fn last(p: &mut Parser) -> Result<Option<u64>> {
    if !p.eat("used") || p.eat("never") {
        return Ok(None);
    }
    Ok(u64::try_from(p.span()?).ok())
}
