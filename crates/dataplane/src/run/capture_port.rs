//! [`CapturePort`]: frames come from one capture file, at its pace or another, and go to another.
//!
//! Contract: what it transmits is written as [`CaptureWriter`] does, and is whole once the port is flushed. What a
//! capture holds is never an error: it ends early.

use std::fs::File;
use std::path::Path;

use pktio::{
    Burst, CaptureReader, CaptureWriter, Pace, PacedReader, Port, PortError, Readiness, Stats,
};

/// A port between two files, either of which may be missing.
pub(super) struct CapturePort {
    reader: Option<PacedReader>,
    writer: Option<CaptureWriter<File>>,
    /// Of what is transmitted while there is no file for it.
    stats: Stats,
}

impl CapturePort {
    /// Opens both files; the second is made anew, and names `port`.
    ///
    /// # Errors
    /// A file cannot be opened, or the first is no capture.
    pub(super) fn open(
        port: &str,
        file: Option<&Path>,
        pace: Pace,
        out: Option<&Path>,
    ) -> Result<Self, PortError> {
        let reader = file.map(|file| CaptureReader::open(&file.to_string_lossy())).transpose()?;
        let reader = reader.map(|reader| PacedReader::new(reader, pace));
        let writer = out.map(|out| create(port, out)).transpose()?;
        Ok(Self { reader, writer, stats: Stats::default() })
    }
}

fn create(port: &str, out: &Path) -> Result<CaptureWriter<File>, PortError> {
    let name = out.to_string_lossy();
    let failed = |source| PortError::Io { name: name.to_string(), offset: 0, source };
    CaptureWriter::new(&name, Some(port), File::create(out).map_err(failed)?)
}

impl Port for CapturePort {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        self.reader.as_mut().map_or(Ok(0), |reader| reader.rx_burst(burst))
    }

    /// Takes all; without a file nobody keeps them.
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
