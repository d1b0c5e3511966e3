//! Reads text files that a person wrote, plain or compressed; `-` is standard input.

use std::io::{self, Cursor, Read};
use std::path::Path;

use dataplane::keys::LineStarts;
use pktio::file::{self, LONGEST_TEXT, NamedBy};
use pktio::pcap_file::decompressed;

use crate::error::Error;

/// Bytes that are looked at to tell what is no text.
const HEAD: usize = 64;

/// The whole text of a file that a person named.
///
/// # Errors
/// The file cannot be read or decompressed, begins as no text does, or is not UTF-8 from a line and column on.
pub fn read_text(file: &str) -> Result<String, Error> {
    match file {
        "-" => text_from(file, Ok(std::io::stdin())),
        _ => text_of(file, NamedBy::Person),
    }
}

/// Reads the text of a file; `by` says who named it, and so what may be opened.
pub(crate) fn text_of(file: &str, by: NamedBy<'_>) -> Result<String, Error> {
    text_from(file, file::open(Path::new(file), by))
}

fn text_from(file: &str, from: io::Result<impl Read + Send + 'static>) -> Result<String, Error> {
    let failed = |source| Error::File { file: file.to_owned(), source };
    let mut from = from.and_then(decompressed).map_err(failed)?;
    // A device without an end is known by its beginning.
    let mut head = Vec::new();
    from.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    if let Some(what) = no_text(&head) {
        return Err(Error::Binary { file: file.to_owned(), what });
    }
    let bytes = file::bounded(Cursor::new(head).chain(from), LONGEST_TEXT).map_err(failed)?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let (line, column) = LineStarts::of(good).place(good.len());
        Error::Encoding { file: file.to_owned(), line, column }
    })
}

/// What begins so and is no text that is read here; farther on, a NUL is an error of its line.
fn no_text(head: &[u8]) -> Option<&'static str> {
    const UTF_16: &str = "UTF-16 (convert it: iconv -f utf-16 -t utf-8)";
    const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
    let is_zero = |at: usize| head.iter().skip(at).step_by(2).all(|byte| *byte == 0);
    let magic =
        head.first_chunk().map(|magic| [u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)]);
    let is_classic = |magic: u32| matches!(magic, 0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34);
    match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some(UTF_16),
        _ if head.starts_with(&PCAPNG)
            || magic.is_some_and(|all| all.into_iter().any(is_classic)) =>
        {
            Some("a capture (captures stand after the rules)")
        }
        _ if !head.contains(&0) => None,
        // Without a mark: ASCII in two bytes each.
        _ if head.len() > 1 && (is_zero(0) != is_zero(1)) => Some(UTF_16),
        _ => Some("a binary file"),
    }
}

/// What a text is that is no rules but is often given in their place, and where it belongs.
pub(crate) fn instead_of_rules(text: &str) -> Option<&'static str> {
    let text = text.trim_start_matches('\u{feff}');
    if text.lines().any(|line| line.trim_end() == "[[case]]") {
        return Some("a file of cases (tamis test RULES CASES.toml)");
    }
    let is_json = text.trim_start().starts_with('{');
    is_json.then_some("JSON (tamis convert writes rules in JSON as text)")
}

/// Whether a text is save text, given where something else is expected.
pub(crate) fn is_save_text(text: &str) -> bool {
    let line = text.lines().find(|line| !line.starts_with('#') && !line.trim().is_empty());
    line.is_some_and(|line| line.starts_with('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_named() {
        let utf_16 =
            |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        assert!(no_text(&utf_16("*filter\n")).unwrap().starts_with("UTF-16"));
        assert!(no_text(&utf_16("\u{feff}*filter\n")).unwrap().starts_with("UTF-16"));
        assert!(no_text(b"\xd4\xc3\xb2\xa1\x02\0\x04\0").unwrap().starts_with("a capture"));
        assert!(no_text(b"\x0a\x0d\x0d\x0a\x1c\0\0\0").unwrap().starts_with("a capture"));
        assert_eq!(no_text(b"\x7fELF\x02\x01\0\0"), Some("a binary file"));
        assert_eq!(no_text(b"\0"), Some("a binary file"));
        assert_eq!((no_text(b"*filter"), no_text(b"")), (None, None));
    }
}
