//! [`CapturePort`]: a port that reads frames from one capture file, at its pace or another, and writes them to another
//! file.
//!
//! Contract: what it transmits is written as [`CaptureWriter`] does, and is whole once the port is flushed. What a
//! capture holds is never an error: it ends early.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use pktio::file::{self, NamedBy};
use pktio::{
    Burst, CaptureReader, CaptureWriter, Pace, PacedReader, Port, PortError, Readiness, Stats,
};

/// A port between two files, either of which may be missing.
pub(crate) struct CapturePort {
    reader: Option<PacedReader>,
    writer: Option<CaptureWriter<File>>,
    /// Counters of what is transmitted while there is no file for it.
    stats: Stats,
}

impl CapturePort {
    /// Opens both files; `out` is created empty, and names `port`.
    ///
    /// # Errors
    /// A file cannot be opened, or the first is no capture.
    pub(crate) fn open(
        port: &str,
        file: Option<&Path>,
        pace: Pace,
        out: Option<&Path>,
    ) -> Result<Self, PortError> {
        let reader = file.map(read).transpose()?;
        let reader = reader.map(|reader| PacedReader::new(reader, pace));
        let writer = out.map(|out| create(port, out)).transpose()?;
        Ok(Self { reader, writer, stats: Stats::default() })
    }
}

/// Opens a capture: a file, since a pipe can be read only once.
pub(crate) fn read(path: &Path) -> Result<CaptureReader, PortError> {
    let name = path.to_string_lossy();
    let opened = file::open(path, NamedBy::Configuration);
    CaptureReader::new(&name, opened.map_err(|source| failed(&name, source))?)
}

fn create(port: &str, out: &Path) -> Result<CaptureWriter<File>, PortError> {
    let name = out.to_string_lossy();
    // A worker that writes to a pipe may wait for ever.
    let is_pipe = fs::metadata(out).is_ok_and(|found| found.file_type().is_fifo());
    let created = match is_pipe {
        true => Err(io::Error::other("expected a file, found a pipe")),
        false => File::create(out),
    };
    CaptureWriter::new(&name, Some(port), created.map_err(|source| failed(&name, source))?)
}

fn failed(name: &str, source: io::Error) -> PortError {
    PortError::Io { name: name.to_owned(), offset: 0, source }
}

impl Port for CapturePort {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        self.reader.as_mut().map_or(Ok(0), |reader| reader.rx_burst(burst))
    }

    /// Takes all frames; without a file they are lost.
    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        if let Some(writer) = &mut self.writer {
            return writer.tx_burst(burst);
        }
        let taken = burst.len();
        self.stats.tx_frames += taken as u64;
        self.stats.tx_bytes += burst.iter().map(|frame| frame.bytes.len() as u64).sum::<u64>();
        burst.clear();
        Ok(taken)
    }

    fn flush(&mut self) -> Result<(), PortError> {
        self.writer.as_mut().map_or(Ok(()), Port::flush)
    }

    fn readiness(&self) -> Readiness<'_> {
        self.reader.as_ref().map_or(Readiness::Never, Port::readiness)
    }

    fn stats(&self) -> Stats {
        let received = self.reader.as_ref().map(Port::stats).unwrap_or_default();
        let sent = self.writer.as_ref().map_or(self.stats, Port::stats);
        let Stats { tx_frames, tx_bytes, tx_too_long, tx_refused, .. } = sent;
        Stats { tx_frames, tx_bytes, tx_too_long, tx_refused, ..received }
    }
}
