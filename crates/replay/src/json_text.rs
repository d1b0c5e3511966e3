//! JSON as it is written: a document that is read back as any other, but whose text steers no screen and commands no CI
//! server (see [`packet::visible`]). JSON has a spelling for every character: `\u202e`.

use std::io::{self, Write};

use packet::visible::{commands, steers};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Writes a document for people, with an end of line.
///
/// # Errors
/// `to` cannot be written.
pub fn pretty(mut to: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    document.serialize(&mut Serializer::with_formatter(&mut to, Pretty::default()))?;
    writeln!(to)
}

/// Writes a document on a line of its own.
///
/// # Errors
/// `to` cannot be written.
pub fn line(mut to: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    document.serialize(&mut Serializer::with_formatter(&mut to, Compact))?;
    to.write_all(b"\n")
}

/// JSON that was written elsewhere, made to steer nothing: what does so is in its strings.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        // Writing to memory cannot fail.
        let _ = fragment(&mut out, text);
        out.extend_from_slice(end.as_bytes());
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Characters of a string that JSON itself leaves as they are.
fn fragment<W: ?Sized + Write>(to: &mut W, text: &str) -> io::Result<()> {
    let mut written = 0;
    for (at, c) in text.char_indices() {
        let is_odd = steers(c) || c == '#' && commands(&text[at..]);
        if !is_odd {
            continue;
        }
        to.write_all(&text.as_bytes()[written..at])?;
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(to, "\\u{unit:04x}")?;
        }
        written = at + c.len_utf8();
    }
    to.write_all(&text.as_bytes()[written..])
}

struct Compact;

impl Formatter for Compact {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, f: &str) -> io::Result<()> {
        fragment(to, f)
    }
}

#[derive(Default)]
struct Pretty(PrettyFormatter<'static>);

impl Formatter for Pretty {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, f: &str) -> io::Result<()> {
        fragment(to, f)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_array(to)
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array(to)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(to, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_array_value(to)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_written_reads_back_and_steers_nothing() {
        let document =
            json!({ "a\u{9b}": ["b\u{202e}\u{e0041}", "##[error]x \n", "# ##[y]"], "c": {} });
        let (mut wide, mut flat) = (Vec::new(), Vec::new());
        pretty(&mut wide, &document).unwrap();
        line(&mut flat, &document).unwrap();
        let elsewhere = visible(&format!("{document:#}\n"));
        assert_eq!(elsewhere.as_bytes(), wide);
        for text in [wide, flat].map(|bytes| String::from_utf8(bytes).unwrap()) {
            assert!(!text.contains(|c| steers(c) && c != '\n') && !text.contains("##["), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
        }
    }

    #[test]
    fn nothing_else_changes() {
        let document = json!({ "a": [1, { "b": "é ## [" }], "c": null });
        let mut wide = Vec::new();
        pretty(&mut wide, &document).unwrap();
        assert_eq!(String::from_utf8(wide).unwrap(), format!("{document:#}\n"));
    }
}
