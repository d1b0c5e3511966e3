//! Reads a cases file. Every error names its line and column; unknown keys are errors.
//!
//! Source: TOML (<https://toml.io>), read by the `toml` crate; the keys are those of [`super`].

use std::ops::Range;

use conntrack::Mode;
use dataplane::Path;
use host::Network;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Case, Cases, Defaults, Expect, Expected, ExpectedBy, NamedFile, PlaceName};
use crate::error::Error;
use crate::input::{line_and_column, read_text};
use crate::report::ct_name;
use crate::spec;

type Value<'t> = Spanned<DeValue<'t>>;

/// What was expected, and at which bytes.
type Wrong = (Range<usize>, String);

impl Cases {
    /// Reads a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read, or is refused at a line and column.
    pub fn open(file: &str) -> Result<Self, Error> {
        Self::from_text(file, &read_text(file)?)
    }

    /// Reads text that came from `file`.
    ///
    /// # Errors
    /// It is refused at a line and column.
    pub fn from_text(file: &str, text: &str) -> Result<Self, Error> {
        Reader { file, text }.cases().map_err(|(span, what)| {
            let (line, column) = line_and_column(text.as_bytes(), span.start);
            Error::Cases { file: file.to_owned(), line, column, what }
        })
    }
}

struct Reader<'t> {
    file: &'t str,
    text: &'t str,
}

impl<'t> Reader<'t> {
    fn cases(&self) -> Result<Cases, Wrong> {
        let document = DeTable::parse(self.text).map_err(|error| {
            let end = self.text.len();
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            (error.span().unwrap_or(end..end), format!("TOML: {message}"))
        })?;
        let top = document.get_ref();
        only(top, &["rules", "rules6", "defaults", "case"])?;
        let defaults = match top.get("defaults") {
            Some(value) => defaults(table(value)?)?,
            None => Defaults::default(),
        };
        let end = self.text.len();
        let nothing = || (end..end, "at least one [[case]]".to_owned());
        let cases = top.get("case").ok_or_else(nothing)?;
        let listed = cases.get_ref().as_array();
        let listed = listed.ok_or_else(|| (cases.span(), "[[case]] tables".to_owned()))?;
        let cases = listed.iter().map(|case| self.case(case)).collect::<Result<Vec<_>, _>>()?;
        if cases.is_empty() {
            return Err(nothing());
        }
        let beside = |key: &str| {
            top.get(key).map(|value| Ok(self.named(value.span().start, string(value)?))).transpose()
        };
        let (rules, rules6) = (beside("rules")?, beside("rules6")?);
        Ok(Cases { file: self.file.to_owned(), rules, rules6, defaults, cases })
    }

    /// A file named in the cases file, at a byte of it.
    fn named(&self, byte: usize, name: &str) -> NamedFile {
        let at = line_and_column(self.text.as_bytes(), byte);
        NamedFile { cases: self.file.to_owned(), at, name: name.to_owned() }
    }

    fn case(&self, value: &Value<'t>) -> Result<Case, Wrong> {
        let case = table(value)?;
        only(case, &["name", "packet", "packets", "expect", "by", "by_text"])?;
        let missing = |key: &str| (value.span(), format!("{key} = … in this [[case]]"));
        let need = |key: &str| case.get(key).ok_or_else(|| missing(key));
        let name = string(need("name")?)?.to_owned();
        let specs = match (case.get("packet"), case.get("packets")) {
            (Some(packet), None) => vec![packet],
            (None, Some(packets)) => list(packets, "a list of SPECs, at least one")?,
            (None, None) => return Err(missing("packet")),
            (Some(_), Some(second)) => {
                return Err((second.span(), "either packet or packets".to_owned()));
            }
        };
        let verdicts = expects(need("expect")?, specs.len())?;
        let packets = specs.into_iter().zip(verdicts);
        let packets = packets.map(|(spec, verdict)| self.packet(spec, verdict));
        let line = line_and_column(self.text.as_bytes(), value.span().start).0;
        Ok(Case { name, line, packets: packets.collect::<Result<_, _>>()?, by: by(case)? })
    }

    fn packet(&self, value: &Value<'t>, verdict: Expect) -> Result<Expected, Wrong> {
        let text = string(value)?;
        let spec = spec::parse(text).map_err(|error| {
            // Escapes move columns: then the string itself is named.
            let written = self.text.get(value.span()).unwrap_or_default();
            let within = written.find(text).map_or(0, |at| at + error.column - 1);
            let start = value.span().start + within;
            (start..start, error.what)
        })?;
        Ok(Expected { text: text.to_owned(), spec, verdict })
    }
}

/// Refuses the first key that is not one of these.
fn only(table: &DeTable<'_>, keys: &[&str]) -> Result<(), Wrong> {
    let unknown = table.keys().filter(|key| !keys.contains(&&**key.get_ref()));
    match unknown.min_by_key(|key| key.span().start) {
        Some(key) => {
            let what = format!("one of {}, found \"{}\"", keys.join(" "), key.get_ref());
            Err((key.span(), what))
        }
        None => Ok(()),
    }
}

fn table<'a, 't>(value: &'a Value<'t>) -> Result<&'a DeTable<'t>, Wrong> {
    value.get_ref().as_table().ok_or_else(|| wrong(value, "a table"))
}

fn string<'a>(value: &'a Value<'_>) -> Result<&'a str, Wrong> {
    value.get_ref().as_str().ok_or_else(|| wrong(value, "a string"))
}

/// The members of a list that is not empty.
fn list<'a, 't>(value: &'a Value<'t>, what: &str) -> Result<Vec<&'a Value<'t>>, Wrong> {
    match value.get_ref().as_array() {
        Some(members) if !members.is_empty() => Ok(members.iter().collect()),
        _ => Err((value.span(), what.to_owned())),
    }
}

/// One string, or a list of them.
fn one_or_more<'a, 't>(value: &'a Value<'t>, what: &str) -> Result<Vec<&'a Value<'t>>, Wrong> {
    if value.get_ref().is_str() { Ok(vec![value]) } else { list(value, what) }
}

fn wrong(value: &Value<'_>, what: &str) -> Wrong {
    (value.span(), format!("{what}, found {}", value.get_ref().type_str()))
}

/// The verdict of each of N packets.
fn expects(value: &Value<'_>, packets: usize) -> Result<Vec<Expect>, Wrong> {
    let given = one_or_more(value, "a verdict, or a list with one for each packet")?;
    let verdicts = given.iter().map(|value| expect(value)).collect::<Result<Vec<_>, _>>()?;
    if value.get_ref().is_str() {
        return Ok(vec![verdicts[0]; packets]);
    }
    if verdicts.len() != packets {
        let what = format!("as many verdicts as packets ({packets}), found {}", verdicts.len());
        return Err((value.span(), what));
    }
    Ok(verdicts)
}

fn expect(value: &Value<'_>) -> Result<Expect, Wrong> {
    let word = string(value)?;
    Expect::from_word(word).ok_or_else(|| {
        let words = Expect::ALL.map(Expect::word).join(" ");
        (value.span(), format!("one of {words}, found \"{word}\""))
    })
}

fn by(case: &DeTable<'_>) -> Result<Option<ExpectedBy>, Wrong> {
    match (case.get("by"), case.get("by_text")) {
        (None, None) => Ok(None),
        (Some(_), Some(second)) => Err((second.span(), "either by or by_text".to_owned())),
        (None, Some(text)) => Ok(Some(ExpectedBy::Text(string(text)?.to_owned()))),
        (Some(value), None) => {
            let text = string(value)?;
            let form = "TABLE/CHAIN/NUMBER, TABLE/CHAIN/policy or ttl";
            let wrong = || (value.span(), format!("{form}, found \"{text}\""));
            Ok(Some(ExpectedBy::Place(PlaceName::parse(text).ok_or_else(wrong)?)))
        }
    }
}

fn defaults(table: &DeTable<'_>) -> Result<Defaults, Wrong> {
    only(table, &["in", "out", "net", "local", "path", "ct"])?;
    let owned = |key: &str| table.get(key).map(|value| Ok(string(value)?.to_owned())).transpose();
    Ok(Defaults {
        input: owned("in")?,
        output: owned("out")?,
        nets: networks(table, "net", "IFACE=ADDRESS/BITS", |text| {
            let (name, net) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
            Some((name.to_owned(), Network::parse(net)?))
        })?,
        local: networks(table, "local", "ADDRESS or ADDRESS/BITS", Network::parse)?,
        path: table.get("path").map_or(Ok(None), path)?,
        ct: table.get("ct").map(ct).transpose()?,
    })
}

fn networks<T>(
    table: &DeTable<'_>,
    key: &str,
    form: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Wrong> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let given = one_or_more(value, &format!("{form}, or a list of them"))?;
    let parsed = given.into_iter().map(|value| {
        let text = string(value)?;
        parse(text).ok_or_else(|| (value.span(), format!("{form}, found \"{text}\"")))
    });
    parsed.collect()
}

fn path(value: &Value<'_>) -> Result<Option<Path>, Wrong> {
    let text = string(value)?;
    let known = [Path::Forward, Path::Input, Path::Output];
    match known.into_iter().find(|path| path.name() == text) {
        None if text != "auto" => {
            Err((value.span(), format!("one of forward input output auto, found \"{text}\"")))
        }
        path => Ok(path),
    }
}

fn ct(value: &Value<'_>) -> Result<Mode, Wrong> {
    let text = string(value)?;
    let known = [Mode::Kernel, Mode::Midstream, Mode::Off];
    known.into_iter().find(|mode| ct_name(*mode) == text).ok_or_else(|| {
        let words = known.map(ct_name).join(" ");
        (value.span(), format!("one of {words}, found \"{text}\""))
    })
}

#[cfg(test)]
mod tests;
