//! Standard output and standard error, which may have lost their readers: `tamis test … | head`.
//!
//! Contract: a reader that has closed its end changes nothing of what a command found. Nothing more is written,
//! quietly, and the exit code stays what it would have been.

use std::borrow::Cow;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use packet::visible;
use replay::json_text;
use serde::Serialize;

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

/// Lines on standard output while a command runs. Once nobody reads them, it is asked to end.
pub(crate) struct Lines {
    out: BufWriter<io::Stdout>,
    stop: Arc<AtomicBool>,
}

impl Lines {
    /// Starts without lines; the flag asks the command to end.
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        Self { out: BufWriter::new(io::stdout()), stop }
    }

    /// Whether somebody still reads them, as far as is known.
    #[cfg(feature = "live")]
    pub(crate) fn has_reader(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn unless_closed<T>(&self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.stop.store(true, Ordering::Relaxed);
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.unless_closed(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.unless_closed(done, ())
    }
}

/// Writes text to standard output.
///
/// # Errors
/// Standard output cannot be written; a closed reader is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Writes a document to standard output.
///
/// # Errors
/// Standard output cannot be written; a closed reader is no error.
pub(crate) fn json(document: &impl Serialize) -> Result<()> {
    write(|out| json_text::pretty(out, document))
}

/// Text that is data, such as rules: as it is for a file or a program, made visible for a terminal.
pub(crate) fn data(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { visible::text(text) } else { text.into() }
}

/// Writes text of ours to standard error; nothing can be done where that fails.
pub(crate) fn tell_text(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Writes a line to standard error, made visible; nothing can be done where that fails.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", visible::word(line));
}
