//! Standard output and standard error, which may have lost their readers: `tamis test … | head`.
//!
//! Contract: a reader that is gone changes nothing of what a command found. Nothing more is written, quietly, and the
//! exit code is the one that the command would have had.

use std::borrow::Cow;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use anyhow::{Context, Result};
use packet::visible;

/// Writes to standard output, all of it in one go.
///
/// # Errors
/// It cannot be written, though somebody reads it.
pub(crate) fn write(what: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    // Standard output by itself writes line by line.
    let mut out = BufWriter::new(io::stdout().lock());
    match what(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.context("standard output"),
    }
}

/// Writes text to standard output.
///
/// # Errors
/// As [`write()`].
pub(crate) fn print(text: &str) -> Result<()> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Text that is data, such as rules: as it is for a file or a program, made visible for a terminal.
pub(crate) fn data(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { visible::text(text) } else { text.into() }
}

/// Writes a line to standard error, made visible; nothing can be done where that fails.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", visible::word(line));
}
