//! A text too long to stand on the page as markup: its lines, deflated and in base64, which a script makes into
//! markup as they come near the screen.
//!
//! Contract: what is packed is the markup that would stand there, one line after the other with [`BETWEEN`], so
//! that every word of it has been escaped. A reader without scripts is told what is missing.

use std::fmt::{Result, Write};
use std::io::{self, Write as _};

use base64ct::{Base64, Encoding};
use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::report::text::plural;

/// Between two lines: a control character, which no escaped text has.
const BETWEEN: char = '\u{1e}';
/// Lines that are deflated at once.
const AT_ONCE: usize = 1024;

/// Writes lines packed.
pub(super) fn write_packed<L>(
    out: &mut String,
    lines: impl ExactSizeIterator<Item = L>,
    mut write: impl FnMut(&mut String, L) -> Result,
) -> Result {
    let all = plural(lines.len() as u64, "line");
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
    let mut rows = String::new();
    for (at, line) in lines.enumerate() {
        if at > 0 {
            rows.push(BETWEEN);
        }
        write(&mut rows, line)?;
        if at % AT_ONCE == 0 {
            deflate(&mut deflated, &mut rows)?;
        }
    }
    deflate(&mut deflated, &mut rows)?;
    let deflated = deflated.finish().map_err(unfit)?;
    write!(
        out,
        "<noscript><p class=\"dim\">The {all} of this text are packed: a browser shows them with \
         scripts allowed. What decided most stands above.</p></noscript>\n\
         <script type=\"text/plain\">{}</script>\n",
        Base64::encode_string(&deflated)
    )
}

fn deflate(to: &mut DeflateEncoder<Vec<u8>>, rows: &mut String) -> Result {
    to.write_all(rows.as_bytes()).map_err(unfit)?;
    rows.clear();
    Ok(())
}

/// Memory takes all that is written, so this does not happen.
fn unfit(_: io::Error) -> std::fmt::Error {
    std::fmt::Error
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;

    use super::*;

    #[test]
    fn what_was_packed_comes_back_line_by_line() {
        let mut out = String::new();
        write_packed(&mut out, 0..3000_u32, |row, line| writeln!(row, "<i>{line}</i>")).unwrap();
        let packed = out.split_once("\"text/plain\">").unwrap().1.split_once('<').unwrap().0;
        let mut text = String::new();
        let deflated = Base64::decode_vec(packed).unwrap();
        DeflateDecoder::new(&*deflated).read_to_string(&mut text).unwrap();
        let lines: Vec<String> = (0..3000).map(|line| format!("<i>{line}</i>\n")).collect();
        assert_eq!(text.split(BETWEEN).collect::<Vec<_>>(), lines);
        assert!(out.contains("The 3,000 lines of this text"));
    }
}
