//! Reads text files that a person wrote; `-` is standard input.

use std::io::Read;

use crate::error::Error;

/// The whole text of a file.
///
/// # Errors
/// The file cannot be read, begins with binary bytes, or is not UTF-8 from a line and column on.
pub fn read_text(file: &str) -> Result<String, Error> {
    let failed = |source| Error::File { file: file.to_owned(), source };
    let bytes = if file == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(failed)?;
        bytes
    } else {
        std::fs::read(file).map_err(failed)?
    };
    // Captures and compressed files begin with such bytes; farther on, one is an error of its line.
    if bytes.iter().take(64).any(|byte| *byte == 0) {
        return Err(Error::Binary { file: file.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let (line, column) = line_and_column(good, good.len());
        Error::Encoding { file: file.to_owned(), line, column }
    })
}

/// Line and column, both from 1 and the column in bytes, of an offset into a text.
pub(crate) fn line_and_column(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    (line, before.len() - line_start + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one() {
        let text = b"ab\ncd\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 2), (1, 3));
        assert_eq!(line_and_column(text, 3), (2, 1));
        assert_eq!(line_and_column(text, 6), (3, 1));
        assert_eq!(line_and_column(text, 99), (3, 1));
    }
}
