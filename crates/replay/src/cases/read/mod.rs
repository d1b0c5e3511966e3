//! Reads a cases file. Every error names its line and column; unknown keys are errors.
//!
//! Source: TOML, as [`dataplane::keys`] reads it; [`super`] lists the keys.

use conntrack::Mode;
use dataplane::Path;
use dataplane::keys::{LineStarts, Section, Value, Wrong, document, only, string};
use host::{Network, Queues, parse_verdict};

use super::{Case, Cases, Defaults, Expect, Expected, ExpectedBy, NamedFile, PlaceName};
use crate::error::Error;
use crate::input::{is_save_text, read_text};
use crate::report::ct_name;
use crate::spec::{self, Contents};

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
        let reader = Reader { file, text, lines: LineStarts::of(text.as_bytes()) };
        reader.cases().map_err(|(span, what)| {
            if is_save_text(text) {
                let found = "rules (these stand first: tamis test RULES CASES.toml)";
                return Error::Swapped { file: file.to_owned(), expected: "cases in TOML", found };
            }
            let (line, column) = reader.lines.place(span.start);
            Error::Cases { file: file.to_owned(), line, column, what }
        })
    }
}

struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    lines: LineStarts,
}

impl<'t> Reader<'t> {
    fn cases(&self) -> Result<Cases, Wrong> {
        let document = document(self.text)?;
        let top = document.get_ref();
        only(top, &["rules", "rules6", "defaults", "case"], &[])?;
        let defaults = top.get("defaults").map(defaults).transpose()?.unwrap_or_default();
        let end = self.text.len();
        let nothing = || (end..end, "expected at least one [[case]]".to_owned());
        let cases = top.get("case").ok_or_else(nothing)?;
        let listed = cases.get_ref().as_array();
        let listed = listed.ok_or_else(|| expected(cases, "[[case]] tables"))?;
        let cases = listed.iter().map(|case| self.case(case, &defaults));
        let cases = cases.collect::<Result<Vec<_>, _>>()?;
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
        let at = self.lines.place(byte);
        NamedFile { cases: self.file.to_owned(), at, name: name.to_owned() }
    }

    fn case(&self, value: &Value<'t>, usual: &Defaults) -> Result<Case, Wrong> {
        let keys = ["name", "packet", "packets", "expect", "by", "by_text"];
        let case = Section::new("[[case]]", value, &keys, &[])?;
        let name = string(case.need("name")?)?.to_owned();
        let specs = match case.get("packets") {
            None => vec![case.need("packet")?],
            Some(packets) if case.get("packet").is_none() => {
                list(packets, "a list of SPECs, at least one")?
            }
            Some(second) => return Err(expected(second, "either packet or packets")),
        };
        let verdicts = expects(case.need("expect")?, specs.len())?;
        let packets = specs.into_iter().zip(verdicts);
        let packets = packets.map(|(spec, verdict)| self.packet(spec, verdict, usual));
        let line = self.lines.place(value.span().start).0;
        Ok(Case { name, line, packets: packets.collect::<Result<_, _>>()?, by: by(&case)? })
    }

    fn packet(
        &self,
        value: &Value<'t>,
        verdict: Expect,
        usual: &Defaults,
    ) -> Result<Expected, Wrong> {
        let text = string(value)?;
        let spec = spec::parse_with(text, &usual.contents).map_err(|error| {
            // Escapes move columns: then the string itself is named.
            let written = self.text.get(value.span()).unwrap_or_default();
            let within = written.find(text).map_or(0, |at| at + error.column - 1);
            let start = value.span().start + within;
            (start..start, format!("expected {}", error.what))
        })?;
        let at = self.lines.place(value.span().start);
        let typed = typed(text, &usual.written);
        Ok(Expected { text: text.to_owned(), typed, at, spec, verdict })
    }
}

/// A SPEC with what these keys say of packets that do not, where they have it.
fn typed(text: &str, written: &[(&'static str, String)]) -> String {
    // A line of another program takes no key.
    let ours = spec::of_line(text).ok().flatten().map(|line| line.packet);
    let mut typed = ours.filter(|_| !written.is_empty()).unwrap_or_else(|| text.to_owned());
    for (key, value) in written {
        let own = |word: &str| {
            let found = word.split_once('=').map(|(key, _)| key);
            found == Some(key) || (*key, found) == ("payload", Some("dns"))
        };
        let with_it = format!("{typed} {key}={value}");
        if !typed.split_ascii_whitespace().any(own) && spec::parse(&with_it).is_ok() {
            typed = with_it;
        }
    }
    typed
}

/// The members of a list that is not empty.
fn list<'a, 't>(value: &'a Value<'t>, what: &str) -> Result<Vec<&'a Value<'t>>, Wrong> {
    match value.get_ref().as_array() {
        Some(members) if !members.is_empty() => Ok(members.iter().collect()),
        _ => Err(expected(value, what)),
    }
}

/// One string, or a list of them.
fn one_or_more<'a, 't>(value: &'a Value<'t>, what: &str) -> Result<Vec<&'a Value<'t>>, Wrong> {
    if value.get_ref().is_str() { Ok(vec![value]) } else { list(value, what) }
}

fn expected(value: &Value<'_>, what: &str) -> Wrong {
    (value.span(), format!("expected {what}"))
}

fn misread(value: &Value<'_>, form: &str, text: &str) -> Wrong {
    (value.span(), format!("expected {form}, found \"{text}\""))
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
        return Err(expected(value, &what));
    }
    Ok(verdicts)
}

fn expect(value: &Value<'_>) -> Result<Expect, Wrong> {
    let word = string(value)?;
    let words = || Expect::ALL.map(Expect::word).join(" ");
    Expect::from_word(word).ok_or_else(|| misread(value, &format!("one of {}", words()), word))
}

fn by(case: &Section<'_, '_>) -> Result<Option<ExpectedBy>, Wrong> {
    match (case.get("by"), case.get("by_text")) {
        (None, None) => Ok(None),
        (Some(_), Some(second)) => Err(expected(second, "either by or by_text")),
        (None, Some(text)) => Ok(Some(ExpectedBy::Text(string(text)?.to_owned()))),
        (Some(value), None) => {
            let text = string(value)?;
            let form = "TABLE/CHAIN/NUMBER, TABLE/CHAIN/policy or ttl";
            let place = PlaceName::parse(text).ok_or_else(|| misread(value, form, text))?;
            Ok(Some(ExpectedBy::Place(place)))
        }
    }
}

fn defaults(value: &Value<'_>) -> Result<Defaults, Wrong> {
    let own = ["in", "out", "net", "local", "path", "ct", "queue-verdict"];
    let keys: Vec<&str> = own.into_iter().chain(spec::USUAL_KEYS).collect();
    let table = Section::new("[defaults]", value, &keys, &[])?;
    let owned = |key: &str| table.get(key).map(|value| Ok(string(value)?.to_owned())).transpose();
    let path = |path: Path| (path.name(), Some(path));
    let paths = [path(Path::Forward), path(Path::Input), path(Path::Output), ("auto", None)];
    let modes = [Mode::Kernel, Mode::Midstream, Mode::Off].map(|mode| (ct_name(mode), mode));
    Ok(Defaults {
        input: owned("in")?,
        output: owned("out")?,
        nets: each(&table, "net", "IFACE=ADDRESS/BITS", |text| {
            let (name, net) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
            Some((name.to_owned(), Network::parse(net)?))
        })?,
        local: each(&table, "local", "ADDRESS or ADDRESS/BITS", Network::parse)?,
        path: table.choice("path", &paths, &[])?.flatten(),
        ct: table.choice("ct", &modes, &[])?,
        queues: queues(&table)?,
        contents: contents(&table)?,
        written: written(&table)?,
    })
}

/// Writes contents as a SPEC has them.
fn written(table: &Section<'_, '_>) -> Result<Vec<(&'static str, String)>, Wrong> {
    let given = spec::USUAL_KEYS.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    given.map(|(key, value)| Ok((key, string(value)?.to_owned()))).collect()
}

/// What packets hold that do not say so themselves.
fn contents(table: &Section<'_, '_>) -> Result<Contents, Wrong> {
    let mut contents = Contents::default();
    for key in spec::USUAL_KEYS {
        let Some(value) = table.get(key) else { continue };
        contents.set(key, string(value)?).map_err(|what| expected(value, &what))?;
    }
    Ok(contents)
}

/// What programs on queues answer.
fn queues(table: &Section<'_, '_>) -> Result<Queues, Wrong> {
    let form = "accept, drop, none or unknown, or NUM=VERDICT";
    let given = each(table, "queue-verdict", form, parse_verdict)?;
    match (Queues::of(&given), table.get("queue-verdict")) {
        (Ok(queues), _) => Ok(queues),
        (Err(_), Some(value)) => Err(expected(value, "one verdict of each queue")),
        (Err(_), None) => Ok(Queues::default()),
    }
}

/// A value, or each of a list.
fn each<T>(
    table: &Section<'_, '_>,
    key: &str,
    form: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Wrong> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let given = one_or_more(value, &format!("{form}, or a list of them"))?;
    let parsed = given.into_iter().map(|value| {
        let text = string(value)?;
        parse(text).ok_or_else(|| misread(value, form, text))
    });
    parsed.collect()
}

#[cfg(test)]
mod tests;
