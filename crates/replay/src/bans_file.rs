//! `--bans FILE`: timed changes of the access list, as [`bans_text`] reads them.

use access::list::Schedule;
use dataplane::bans_text::{self, BansError};

use crate::error::Error;

/// Reads a file of changes.
///
/// # Errors
/// It cannot be read, or a line says something else: file, line, column and what was expected there.
pub fn open(file: &str) -> Result<Schedule, Error> {
    let failed = |source| Error::File { file: file.to_owned(), source };
    let bytes = std::fs::read(file).map_err(failed)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line_start = before.iter().rposition(|&c| c == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|&&c| c == b'\n').count() + 1;
        let column = before.len() - line_start + 1;
        Error::Encoding { file: file.to_owned(), line, column }
    })?;
    bans_text::parse(file, text).map_err(|BansError { line, column, what }| Error::Bans {
        file: file.to_owned(),
        line,
        column,
        what,
    })
}
