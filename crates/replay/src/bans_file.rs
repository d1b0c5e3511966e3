//! `--bans FILE`: timed changes of the access list, as [`bans_text`] reads them.

use access::list::Schedule;
use dataplane::bans_text::{self, BansError};
use pktio::file::NamedBy;

use crate::error::Error;
use crate::input::text_of;

/// Reads a file of changes that a person named.
///
/// # Errors
/// It cannot be read, or a line says something else: file, line, column and what was expected there.
pub fn open(file: &str) -> Result<Schedule, Error> {
    open_by(file, NamedBy::Person)
}

pub(crate) fn open_by(file: &str, by: NamedBy<'_>) -> Result<Schedule, Error> {
    let text = text_of(file, by)?;
    bans_text::parse(file, &text).map_err(|BansError { line, column, what }| Error::Bans {
        file: file.to_owned(),
        line,
        column,
        what,
    })
}
