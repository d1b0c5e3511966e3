//! [`Options`]: options of the command line as a call has them, a JSON object by their long names without dashes.
//!
//! Contract: a value is a string, a number, or a list of such, and `true` where the command line has none. Reading an
//! option takes it out; what is left at the end is refused ([`Options::end`]).

use conntrack::Mode;
use dataplane::Path;
use packet::Checksums;
use replay::walk::{HostFacts, WalkOptions, words};
use rules::Backend;
use serde_json::{Map, Value};

use crate::entry::Thrown;

/// Options that were not read yet.
#[derive(Debug, Default)]
pub(crate) struct Options(Map<String, Value>);

impl Options {
    /// Reads the options of a JSON object; an empty text is an object without options.
    ///
    /// # Errors
    /// The text is no JSON object.
    pub(crate) fn of(json: &str) -> Result<Self, Thrown> {
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        match serde_json::from_str(json) {
            Ok(Value::Object(all)) => Ok(Self(all)),
            Ok(_) => Err(Thrown("options: expected an object".to_owned())),
            Err(error) => Err(Thrown(format!("options: {error}"))),
        }
    }

    /// All values of an option that may be repeated.
    ///
    /// # Errors
    /// A value is no string and no number.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, Thrown> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(all)) => all.iter().map(|value| text(name, value)).collect(),
            Some(value) => Ok(vec![text(name, &value)?]),
        }
    }

    /// The value of an option.
    ///
    /// # Errors
    /// The value is no text, or there are several.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Thrown> {
        let mut all = self.texts(name)?;
        match all.len() {
            0 | 1 => Ok(all.pop()),
            several => Err(Thrown(format!("--{name}: expected one value, found {several}"))),
        }
    }

    /// The parsed value of an option.
    ///
    /// # Errors
    /// The value cannot be parsed, or there are several.
    pub(crate) fn value<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Thrown> {
        let text = self.text(name)?;
        text.map(|text| parsed(name, &text, &parse)).transpose()
    }

    /// The parsed values of an option that may be repeated.
    ///
    /// # Errors
    /// A value cannot be parsed.
    pub(crate) fn values<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, Thrown> {
        self.texts(name)?.iter().map(|text| parsed(name, text, &parse)).collect()
    }

    /// Whether an option that has no value is given.
    ///
    /// # Errors
    /// It has a value.
    pub(crate) fn is_set(&mut self, name: &str) -> Result<bool, Thrown> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is_set)) => Ok(is_set),
            Some(other) => Err(Thrown(format!("--{name}: expected no value, found {other}"))),
        }
    }

    /// How packets walk.
    ///
    /// # Errors
    /// A value cannot be parsed.
    pub(crate) fn walk(&mut self) -> Result<WalkOptions, Thrown> {
        let local = self.texts("local")?;
        let local = local.iter().flat_map(|text| text.split(','));
        let host = HostFacts {
            nets: self.values("net", words::net)?,
            local: local
                .map(|text| parsed("local", text, &words::network))
                .collect::<Result<_, _>>()?,
            addresses: self.values("addr", words::addr)?,
            routes: self.text("routes")?,
            links: self.text("links")?,
            bridge: self.text("bridge")?,
            ipset: self.text("ipset")?,
            geoip: self.text("geoip")?,
            osf_file: self.text("osf-file")?,
            kernel: self.value("kernel", words::kernel)?,
            queue_verdicts: self.values("queue-verdict", words::queue_verdict)?,
            zone: self.value("tz", words::zone)?,
            ignore_nft: self.is_set("ignore-nft")?,
        };
        Ok(WalkOptions {
            host,
            family: self.value("family", words::family)?,
            rules6: self.text("rules6")?,
            table: self.text("table")?,
            path: self.value("path", path)?.flatten(),
            input: self.text("in")?,
            output: self.text("out")?,
            bans: self.text("bans")?,
            ct: self.value("ct", tracking)?,
            ct_max: self.value("ct-max", words::ct_max)?,
            no_pair: self.is_set("no-pair")?,
            checksums: self.value("checksums", checksums)?.unwrap_or_default(),
            semantics: self.value("semantics", backend)?,
            strict_input: self.is_set("strict-input")?,
            legacy_apart: false,
            named: Vec::new(),
        })
    }

    /// Refuses what nobody has read.
    ///
    /// # Errors
    /// There is some.
    pub(crate) fn end(self) -> Result<(), Thrown> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(Thrown(format!("--{name}: expected an option of this call"))),
        }
    }
}

fn text(name: &str, value: &Value) -> Result<String, Thrown> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(Thrown(format!("--{name}: expected a value, found {other}"))),
    }
}

fn parsed<T>(
    name: &str,
    text: &str,
    parse: &impl Fn(&str) -> Result<T, String>,
) -> Result<T, Thrown> {
    parse(text).map_err(|what| Thrown(format!("--{name} {text}: {what}")))
}

/// A number.
pub(crate) fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a number".to_owned())
}

/// Returns the meaning of one of these words.
pub(crate) fn one_of<T: Clone>(words: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| meaning.clone());
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("expected one of {}", words.join(" "))
    })
}

fn path(text: &str) -> Result<Option<Path>, String> {
    let words = [
        ("forward", Some(Path::Forward)),
        ("input", Some(Path::Input)),
        ("output", Some(Path::Output)),
        ("auto", None),
    ];
    one_of(&words, text)
}

fn tracking(text: &str) -> Result<Mode, String> {
    let words = [("kernel", Mode::Kernel), ("midstream", Mode::Midstream), ("off", Mode::Off)];
    one_of(&words, text)
}

fn checksums(text: &str) -> Result<Checksums, String> {
    let words = [
        ("ignore", Checksums::Ignore),
        ("arrivals", Checksums::Arrivals),
        ("verify", Checksums::Verify),
    ];
    one_of(&words, text)
}

/// A backend of rules.
pub(crate) fn backend(text: &str) -> Result<Backend, String> {
    one_of(&[("legacy", Backend::Legacy), ("nft", Backend::Nft)], text)
}
