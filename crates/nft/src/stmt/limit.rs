//! `limit` and `quota`, in rules, in elements and as named objects.

use crate::json::Json;
use crate::text::{Parser, Printer, Result};

const SPANS: [&str; 5] = ["second", "minute", "hour", "day", "week"];
const UNITS: [(&str, u64); 4] =
    [("gbytes", 1 << 30), ("mbytes", 1 << 20), ("kbytes", 1 << 10), ("bytes", 1)];

/// A limit of the rate of packets or bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Whether it matches what exceeds it.
    pub over: bool,
    /// Packets or bytes in a span.
    pub rate: u64,
    /// `second`, `minute`, `hour`, `day` or `week`
    pub per: &'static str,
    /// How many more at once.
    pub burst: u64,
    /// Whether bytes are counted, rather than packets.
    pub bytes: bool,
}

/// A quota of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Whether it matches what exceeds it.
    pub over: bool,
    /// Bytes.
    pub bytes: u64,
    /// Bytes that were used.
    pub used: u64,
}

fn scaled(value: u64) -> (u64, &'static str) {
    let (name, unit) = UNITS[1..]
        .iter()
        .find(|(_, unit)| value != 0 && value.is_multiple_of(*unit))
        .unwrap_or(&UNITS[3]);
    (value / unit, name)
}

/// Reads a number, and the unit of bytes that may follow it.
fn amount(p: &mut Parser) -> Result<(u64, bool)> {
    let word = p.word("a number")?;
    let mut unit = String::new();
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let Ok(value) = word[..digits].parse::<u64>() else {
        return Err(p.refused("expected a number"));
    };
    unit.push_str(&word[digits..]);
    p.cut_at('/');
    if unit.is_empty() && UNITS.iter().any(|(name, _)| p.is(name)) {
        unit = p.word("a unit")?;
    }
    if unit.is_empty() {
        return Ok((value, false));
    }
    let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(p.refused(&format!("expected bytes, kbytes or mbytes instead of {unit}")));
    };
    match value.checked_mul(*factor) {
        Some(bytes) => Ok((bytes, true)),
        None => Err(p.refused("a number of bytes is too large")),
    }
}

fn bytes_of(body: &Json, name: &str, unit: &str) -> Option<u64> {
    let value = u64::try_from(body.get(name)?.as_number()?).ok()?;
    let factor = match body.get(unit) {
        Some(unit) => {
            UNITS.iter().find(|(name, _)| unit.as_text() == Some(name)).map_or(1, |unit| unit.1)
        }
        None => 1,
    };
    value.checked_mul(factor)
}

impl Limit {
    /// Reads what follows `rate`.
    pub fn parse(p: &mut Parser) -> Result<Self> {
        let over = p.eat("over");
        let (rate, bytes) = amount(p)?;
        p.expect("/")?;
        let per = p.one_of(&SPANS, "second, minute, hour, day or week")?;
        let mut burst = if bytes { 0 } else { 5 };
        if p.eat("burst") {
            let (value, unit) = amount(p)?;
            if !unit {
                p.eat("packets");
            }
            if unit != bytes {
                return Err(p.refused("a limit and its burst count the same: packets or bytes"));
            }
            burst = value;
        }
        Ok(Self { over, rate, per, burst, bytes })
    }

    /// Writes what follows `rate`; a named limit leaves the usual burst out.
    pub fn print(&self, p: &mut Printer, named: bool) {
        p.put(if self.over { "over " } else { "" });
        if self.bytes {
            let (rate, unit) = scaled(self.rate);
            p.put(&format!("{rate} {unit}/{}", self.per));
            if self.burst != 0 {
                let (burst, unit) = scaled(self.burst);
                p.put(&format!(" burst {burst} {unit}"));
            }
            return;
        }
        p.put(&format!("{}/{}", self.rate, self.per));
        if !named || self.burst != 5 {
            p.put(&format!(" burst {} packets", self.burst));
        }
    }

    /// Writes the members of its JSON.
    pub fn json(&self, named: bool) -> Vec<(&'static str, Json)> {
        let (rate, unit) = if self.bytes { scaled(self.rate) } else { (self.rate, "") };
        let (burst, burst_unit) = if self.bytes { scaled(self.burst) } else { (self.burst, "") };
        let mut members = vec![("rate", Json::of(rate)), ("per", Json::text(self.per))];
        let has_burst = !(named && self.bytes && self.burst == 0);
        if has_burst {
            members.insert(if named { 2 } else { 1 }, ("burst", Json::of(burst)));
        }
        if self.over {
            members.push(("inv", Json::Bool(true)));
        }
        if self.bytes {
            members.push(("rate_unit", Json::text(unit)));
        }
        if self.bytes && has_burst {
            members.push(("burst_unit", Json::text(burst_unit)));
        }
        members
    }

    /// Reads it of JSON.
    pub fn read(body: &Json) -> Option<Self> {
        let bytes = body.get("rate_unit").is_some_and(|unit| unit.as_text() != Some("packets"));
        let rate = bytes_of(body, "rate", "rate_unit")?;
        let per = body.get("per")?.as_text()?;
        let per = SPANS.into_iter().find(|span| *span == per)?;
        let burst = match body.get("burst") {
            Some(_) => bytes_of(body, "burst", "burst_unit")?,
            None if bytes => 0,
            None => 5,
        };
        Some(Self { over: body.is_true("inv"), rate, per, burst, bytes })
    }
}

impl Quota {
    /// Reads a quota.
    pub fn parse(p: &mut Parser) -> Result<Self> {
        let over = p.eat("over");
        if !over {
            p.eat("until");
        }
        let (bytes, _) = amount(p)?;
        let used = if p.eat("used") { amount(p)?.0 } else { 0 };
        Ok(Self { over, bytes, used })
    }

    /// Writes it as text.
    pub fn print(&self, p: &mut Printer) {
        let (bytes, unit) = scaled(self.bytes);
        p.put(&format!("{}{bytes} {unit}", if self.over { "over " } else { "" }));
        if self.used != 0 && !p.stateless {
            let (used, unit) = scaled(self.used);
            p.put(&format!(" used {used} {unit}"));
        }
    }

    pub(super) fn json(&self) -> Json {
        let (bytes, unit) = scaled(self.bytes);
        let mut members = vec![("val", Json::of(bytes)), ("val_unit", Json::text(unit))];
        if self.over {
            members.push(("inv", Json::Bool(true)));
        }
        if self.used != 0 {
            let (used, unit) = scaled(self.used);
            members.extend([("used", Json::of(used)), ("used_unit", Json::text(unit))]);
        }
        Json::object(members)
    }

    pub(super) fn read(body: &Json) -> Option<Self> {
        let bytes = bytes_of(body, "val", "val_unit")?;
        let used = bytes_of(body, "used", "used_unit").unwrap_or(0);
        Some(Self { over: body.is_true("inv"), bytes, used })
    }

    /// Reads a named quota of JSON.
    pub fn read_object(body: &Json) -> Option<Self> {
        let number = |name| {
            body.get(name).and_then(Json::as_number).and_then(|value| u64::try_from(value).ok())
        };
        Some(Self {
            over: body.is_true("inv"),
            bytes: number("bytes")?,
            used: number("used").unwrap_or(0),
        })
    }
}
