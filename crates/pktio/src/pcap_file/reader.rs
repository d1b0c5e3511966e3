//! Reading a capture file as a port.
//!
//! Contract: each chunk of the file is read straight into the burst's buffer and parsed where it lies. Only
//! the record that a chunk ends in the middle of is copied, into the next burst. Bursts are as large as
//! their buffers allow; reading from a pipe hands over what is there instead of waiting for a full buffer.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

use super::classic::{self, Classic};
use super::decompress::{Decompressed, Stop};
use super::end::{Damage, EndOfFile};
use super::ng::{self, Sections};
use super::piece::{Interface, Piece};
use crate::burst::Burst;
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;

/// Bytes needed to tell what kind of capture a file is.
const MAGIC_LENGTH: usize = 4;

enum Format {
    /// A classic file cut off before the end of its file header.
    Headless,
    Classic(Classic, [Interface; 1]),
    Ng(Sections),
}

/// A capture file being read.
pub struct CaptureReader {
    name: String,
    total_bytes: Option<u64>,
    source: Decompressed,
    format: Format,
    /// Bytes read and not yet parsed: less than one record.
    carry: Vec<u8>,
    /// Place in the decompressed file of the first byte not yet parsed.
    offset: u64,
    end: Option<EndOfFile>,
    stats: Stats,
}

/// What [`CaptureReader::parse`] stopped at.
enum Pause {
    /// The buffer ends before `needed` bytes of `what` do.
    Part {
        needed: usize,
        what: &'static str,
    },
    Damaged(Damage),
}

impl CaptureReader {
    /// Opens the capture at `path`; `-` is standard input.
    ///
    /// # Errors
    /// When the file cannot be read, or is no capture.
    pub fn open(path: &str) -> Result<Self, PortError> {
        if path == "-" {
            return Self::new("<stdin>", io::stdin());
        }
        let file = File::open(path).map_err(|source| unreadable(path, 0, source))?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.is_file());
        let mut reader = Self::new(path, file)?;
        reader.total_bytes = metadata.map(|metadata| metadata.len());
        Ok(reader)
    }

    /// Reads a capture from `reader`, called `name` in messages.
    ///
    /// # Errors
    /// When `reader` fails, or yields no capture.
    pub fn new(name: &str, reader: impl Read + Send + 'static) -> Result<Self, PortError> {
        let source =
            Decompressed::new(Box::new(reader)).map_err(|source| unreadable(name, 0, source))?;
        let mut reader = Self {
            name: name.to_string(),
            total_bytes: None,
            source,
            format: Format::Headless,
            carry: Vec::new(),
            offset: 0,
            end: None,
            stats: Stats::default(),
        };
        reader.read_file_header()?;
        Ok(reader)
    }

    /// The file's name, as messages should call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the file ended; `None` while it has not. Frames returned together with the end are good.
    pub fn end(&self) -> Option<&EndOfFile> {
        self.end.as_ref()
    }

    /// One line that names file, byte and what was expected there, if the file did not end as it should.
    pub fn warning(&self) -> Option<String> {
        match &self.end {
            None | Some(EndOfFile::Clean) => None,
            Some(end) => Some(format!("{}: {end}", self.name)),
        }
    }

    /// Interfaces met so far; [`FrameMeta::interface`](crate::FrameMeta) indexes them. A classic file has
    /// one, without a name. No entry ever changes.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.format {
            Format::Headless => &[],
            Format::Classic(_, interface) => interface,
            Format::Ng(sections) => sections.interfaces(),
        }
    }

    /// Packets that the recorder lost, as far as the file says so up to here (pcapng `isb_ifdrop` and
    /// `isb_osdrop`; classic files cannot say).
    pub fn dropped(&self) -> Option<u64> {
        match &self.format {
            Format::Ng(sections) => sections.dropped(),
            Format::Headless | Format::Classic(..) => None,
        }
    }

    /// Bytes read so far of the file as it is stored (compressed or not): for a progress bar.
    pub fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }

    /// Size of the file as it is stored, where it is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// Reads the magic number and, of a classic file, the whole header.
    fn read_file_header(&mut self) -> Result<(), PortError> {
        self.fill_carry(MAGIC_LENGTH)?;
        if classic::magic(&self.carry).is_some() {
            return self.read_classic_header();
        }
        let magic = self.carry.first_chunk().map(|magic| u32::from_be_bytes(*magic));
        if magic == Some(ng::SECTION_HEADER) {
            self.format = Format::Ng(Sections::new());
            return Ok(());
        }
        Err(PortError::NotACapture {
            name: self.name.clone(),
            offset: 0,
            expected: "a pcap or pcapng magic number",
            found: self.found_instead(),
        })
    }

    fn read_classic_header(&mut self) -> Result<(), PortError> {
        self.fill_carry(classic::FILE_HEADER)?;
        match Classic::from_header(&self.carry) {
            None => {
                if self.end.is_none() {
                    self.finish(classic::FILE_HEADER, "a pcap file header", self.carry.len());
                }
                Ok(())
            }
            Some(Err(version)) => Err(PortError::NotACapture {
                name: self.name.clone(),
                offset: MAGIC_LENGTH as u64,
                expected: "pcap version 2.0 to 2.4",
                found: format!("version {}.{}", version.major, version.minor),
            }),
            Some(Ok(classic)) => {
                self.carry.clear();
                self.offset = classic::FILE_HEADER as u64;
                let interface = [classic.interface()];
                self.format = Format::Classic(classic, interface);
                Ok(())
            }
        }
    }

    /// Reads until `carry` has `wanted` bytes or the file ends.
    fn fill_carry(&mut self, wanted: usize) -> Result<(), PortError> {
        let mut filled = self.carry.len();
        self.carry.resize(wanted, 0);
        let mut stop = None;
        while filled < wanted && stop.is_none() {
            match self.source.read(&mut self.carry[filled..]) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(reason) => stop = Some(reason),
            }
        }
        self.carry.truncate(filled);
        match stop {
            Some(Stop::System(source)) => Err(unreadable(&self.name, self.bytes_read(), source)),
            Some(Stop::Corrupt(method, what)) => {
                let damage = Damage::Compression { method, what };
                self.end = Some(EndOfFile::Corrupt { offset: filled as u64, damage });
                Ok(())
            }
            Some(Stop::Cut(_)) | None => Ok(()),
        }
    }

    /// The first bytes of a file that is no capture, or why there are none.
    fn found_instead(&self) -> String {
        if let Some(EndOfFile::Corrupt { damage: Damage::Compression { method, what }, .. }) =
            &self.end
        {
            return format!("damage in the {method} stream: {what}");
        }
        if self.carry.is_empty() {
            return "the end of the file".to_string();
        }
        let bytes: Vec<_> = self.carry.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    }

    /// Parses the whole records among the bytes `unparsed` of the buffer of `burst`, and appends the packets.
    fn parse(&mut self, burst: &mut Burst, unparsed: &mut Range<usize>) -> Pause {
        let Self { format, offset, stats, .. } = self;
        let from = unparsed.start;
        let pause = match format {
            Format::Headless => Pause::Part { needed: 1, what: "a pcap file header" },
            Format::Classic(file, _) => pieces(burst, unparsed, stats, |bytes| file.next(bytes)),
            Format::Ng(file) => pieces(burst, unparsed, stats, |bytes| file.next(bytes)),
        };
        *offset += (unparsed.start - from) as u64;
        pause
    }

    /// Notes the end of the file with `found` bytes of a `what` of at least `expected` bytes before it.
    fn finish(&mut self, expected: usize, what: &'static str, found: usize) {
        let (offset, expected, found) = (self.offset, expected as u64, found as u64);
        self.end = Some(match found {
            0 => EndOfFile::Clean,
            _ => EndOfFile::Cut { offset, what, expected, found },
        });
    }

    /// Notes why the source yields no more, with `found` bytes of a `what` before that.
    fn stop(
        &mut self,
        stop: Stop,
        expected: usize,
        what: &'static str,
        found: usize,
    ) -> Result<(), PortError> {
        match stop {
            Stop::System(source) => return Err(unreadable(&self.name, self.bytes_read(), source)),
            Stop::Cut(_) if found > 0 => self.finish(expected, what, found),
            Stop::Cut(what) => {
                let offset = self.offset;
                self.end = Some(EndOfFile::Cut { offset, what, expected: 1, found: 0 });
            }
            Stop::Corrupt(method, what) => {
                let offset = self.offset + found as u64;
                let damage = Damage::Compression { method, what };
                self.end = Some(EndOfFile::Corrupt { offset, damage });
            }
        }
        Ok(())
    }

    /// Reads into `burst` until it holds a packet or the file ends.
    ///
    /// The bytes `unparsed` of its buffer were read and belong to no whole record yet.
    fn fill(&mut self, burst: &mut Burst, unparsed: &mut Range<usize>) -> Result<(), PortError> {
        loop {
            let (needed, what) = match self.parse(burst, unparsed) {
                Pause::Part { needed, what } => (needed, what),
                Pause::Damaged(damage) => {
                    self.end = Some(EndOfFile::Corrupt { offset: self.offset, damage });
                    return Ok(());
                }
            };
            if !burst.is_empty() {
                return Ok(());
            }
            burst.buffer_mut().copy_within(unparsed.clone(), 0);
            *unparsed = 0..unparsed.len();
            burst.reserve(needed);
            match self.source.read(&mut burst.buffer_mut()[unparsed.end..]) {
                Ok(0) => self.finish(needed, what, unparsed.len()),
                Ok(length) => unparsed.end += length,
                Err(stop) => self.stop(stop, needed, what, unparsed.len())?,
            }
            if self.end.is_some() {
                return Ok(());
            }
        }
    }
}

impl Port for CaptureReader {
    /// The next packets of the file; 0 at its end, whatever that is ([`CaptureReader::end`]).
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        if self.end.is_some() {
            return Ok(0);
        }
        let mut unparsed = 0..self.carry.len();
        burst.reserve(unparsed.end);
        burst.buffer_mut()[unparsed.clone()].copy_from_slice(&self.carry);
        let filled = self.fill(burst, &mut unparsed);
        self.carry.clear();
        self.carry.extend_from_slice(&burst.buffer()[unparsed]);
        filled.map(|()| burst.len())
    }

    fn tx_burst(&mut self, _: &mut Burst) -> Result<usize, PortError> {
        Err(PortError::ReceiveOnly { name: self.name.clone() })
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Always
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

/// Appends the packets among the bytes `unparsed` of a burst's buffer, piece after piece.
#[inline]
fn pieces(
    burst: &mut Burst,
    unparsed: &mut Range<usize>,
    stats: &mut Stats,
    mut next: impl FnMut(&[u8]) -> Piece,
) -> Pause {
    let Stats { mut rx_frames, mut rx_bytes, .. } = *stats;
    let pause = loop {
        let total = match next(&burst.buffer()[unparsed.clone()]) {
            Piece::Packet { total, start, length, mut meta } => {
                rx_frames += 1;
                rx_bytes += length as u64;
                meta.number = rx_frames;
                burst.push_in_place(unparsed.start + start, length, meta);
                total
            }
            Piece::Other { total } => total,
            Piece::Part { needed, what } => break Pause::Part { needed, what },
            Piece::Damaged(damage) => break Pause::Damaged(damage),
        };
        unparsed.start += total;
    };
    (stats.rx_frames, stats.rx_bytes) = (rx_frames, rx_bytes);
    pause
}

fn unreadable(name: &str, offset: u64, source: io::Error) -> PortError {
    PortError::Io { name: name.to_string(), offset, source }
}
