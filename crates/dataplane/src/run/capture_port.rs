//! [`CapturePort`]: frames come from one capture file and go to another.
//!
//! Contract: what it transmits is written as pcapng, one interface for each link type, and is whole once the port is
//! dropped. What a capture holds is never an error: it ends early.

use std::fs::File;
use std::io;
use std::path::Path;

use pktio::pcap_file::NgWriter;
use pktio::{Burst, CaptureReader, Interface, LinkType, Port, PortError, Readiness, Stats, Taken};

/// A port between two files, either of which may be missing.
pub(super) struct CapturePort {
    reader: Option<CaptureReader>,
    writer: Option<Writer>,
    stats: Stats,
}

struct Writer {
    /// The port's name, which the file says, and that of the file.
    port: String,
    file: String,
    to: NgWriter<File>,
    /// Link types, in the order of their interfaces.
    link_types: Vec<LinkType>,
}

impl CapturePort {
    /// Opens both files; the second is made anew.
    ///
    /// # Errors
    /// A file cannot be opened, or the first is no capture.
    pub(super) fn open(
        port: &str,
        file: Option<&Path>,
        out: Option<&Path>,
    ) -> Result<Self, PortError> {
        let reader = file.map(|file| CaptureReader::open(&file.to_string_lossy())).transpose()?;
        let writer = out.map(|out| Writer::create(port, out)).transpose()?;
        Ok(Self { reader, writer, stats: Stats::default() })
    }
}

impl Port for CapturePort {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let Some(reader) = &mut self.reader else { return Ok(0) };
        let frames = reader.rx_burst(burst)?;
        self.stats.rx_frames += frames as u64;
        self.stats.rx_bytes += burst.iter().map(|frame| frame.bytes.len() as u64).sum::<u64>();
        Ok(frames)
    }

    /// Takes all; without a file nobody keeps them.
    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let mut taken = 0;
        for frame in burst.drain(usize::MAX) {
            if let Some(writer) = &mut self.writer {
                writer.write(&frame, self.stats.tx_bytes)?;
            }
            taken += 1;
            self.stats.tx_frames += 1;
            self.stats.tx_bytes += bytes_of(&frame).len() as u64;
        }
        Ok(taken)
    }

    fn readiness(&self) -> Readiness<'_> {
        if self.reader.is_some() { Readiness::Always } else { Readiness::Never }
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

impl Writer {
    fn create(port: &str, out: &Path) -> Result<Self, PortError> {
        let file = out.to_string_lossy().into_owned();
        let to = File::create(out).and_then(NgWriter::new);
        let to = to.map_err(|source| PortError::Io { name: file.clone(), offset: 0, source })?;
        Ok(Self { port: port.to_owned(), file, to, link_types: Vec::new() })
    }

    fn write(&mut self, frame: &Taken<'_>, offset: u64) -> Result<(), PortError> {
        let written = self.try_write(frame);
        written.map_err(|source| PortError::Io { name: self.file.clone(), offset, source })
    }

    fn try_write(&mut self, taken: &Taken<'_>) -> io::Result<()> {
        let frame = match taken {
            Taken::Lent { bytes, meta } => pktio::Frame { bytes, meta },
            Taken::Moved(frame) => frame.frame(),
        };
        let link_type = frame.meta.link_type;
        let interface = match self.link_types.iter().position(|known| *known == link_type) {
            Some(interface) => interface as u32,
            None => {
                self.link_types.push(link_type);
                let name = Some(self.port.clone());
                self.to.add_interface(&Interface { name, link_type, snaplen: 0 })?
            }
        };
        self.to.write(interface, frame, None)
    }
}

fn bytes_of<'t>(taken: &'t Taken<'_>) -> &'t [u8] {
    match taken {
        Taken::Lent { bytes, .. } => bytes,
        Taken::Moved(frame) => frame.bytes(),
    }
}
