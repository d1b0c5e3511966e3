//! [`CaptureWriter`]: a port that writes what it transmits to a capture.
//!
//! Contract: pcapng, so that times keep their nanoseconds and frames their direction. One interface for each link type,
//! described when its first frame comes. Frames are written as they are: superframes whole, checksums unfinished.
//! Nothing is complete before [`Port::flush`] or [`CaptureWriter::finish`]; after an error the file is of no use. It
//! never receives.

use std::io::{self, Write};

use super::{Interface, MAX_CAPTURED, NgWriter};
use crate::burst::Burst;
use crate::frame::Frame;
use crate::link::LinkType;
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;

/// Writes a capture.
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    name: String,
    /// What all interfaces are called.
    interface: Option<String>,
    out: NgWriter<W>,
    /// Link types of the interfaces described so far.
    link_types: Vec<LinkType>,
    stats: Stats,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes to `out`, called `name` in messages; readers see `interface` as the name of where frames were.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(name: &str, interface: Option<&str>, out: W) -> Result<Self, PortError> {
        let out = NgWriter::new(out).map_err(|source| failure(name, 0, source))?;
        Ok(Self {
            name: name.into(),
            interface: interface.map(str::to_owned),
            out,
            link_types: Vec::new(),
            stats: Stats::default(),
        })
    }

    /// Writes what is buffered and returns what was written to.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn finish(self) -> Result<W, PortError> {
        let Self { name, out, stats, .. } = self;
        out.finish().map_err(|source| failure(&name, stats.tx_bytes, source))
    }

    /// Writes a frame, or counts why not.
    fn write(&mut self, frame: Frame<'_>) -> io::Result<()> {
        if u16::try_from(frame.meta.link_type.0).is_err() {
            self.stats.tx_refused += 1;
            return Ok(());
        }
        if frame.bytes.len() > MAX_CAPTURED {
            self.stats.tx_too_long += 1;
            return Ok(());
        }
        let interface = self.interface_of(frame.meta.link_type)?;
        self.out.write(interface, frame, None)?;
        self.stats.tx_frames += 1;
        self.stats.tx_bytes += frame.bytes.len() as u64;
        Ok(())
    }

    /// The interface of a link type, described if it is the first of its kind.
    fn interface_of(&mut self, link_type: LinkType) -> io::Result<u32> {
        if let Some(at) = self.link_types.iter().position(|known| *known == link_type) {
            return Ok(at as u32);
        }
        self.link_types.push(link_type);
        let name = self.interface.clone();
        self.out.add_interface(&Interface { name, link_type, ..Interface::default() })
    }
}

impl<W: Write> Port for CaptureWriter<W> {
    /// Nothing, ever.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        Ok(0)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let mut taken = 0;
        let written = burst.iter().try_for_each(|frame| {
            self.write(frame)?;
            taken += 1;
            Ok(())
        });
        drop(burst.drain(taken));
        written.map(|()| taken).map_err(|source| failure(&self.name, self.stats.tx_bytes, source))
    }

    fn flush(&mut self) -> Result<(), PortError> {
        let flushed = self.out.flush();
        flushed.map_err(|source| failure(&self.name, self.stats.tx_bytes, source))
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Never
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

fn failure(name: &str, offset: u64, source: io::Error) -> PortError {
    PortError::Io { name: name.into(), offset, source }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::frame::{Direction, FrameMeta};
    use crate::pcap_file::CaptureReader;
    use crate::pool::Pool;
    use crate::timestamp::Timestamp;

    fn meta(link_type: LinkType, nanos: i64, direction: Direction) -> FrameMeta {
        let timestamp = Some(Timestamp::from_nanos(nanos));
        FrameMeta { link_type, timestamp, direction, wire_length: 9, ..FrameMeta::default() }
    }

    /// With memory and without, of two link types.
    #[test]
    fn what_is_transmitted_is_read_back() {
        let pool = Pool::new(1, 8, 0);
        let mut frame = pool.take().unwrap();
        assert!(frame.extend(b"moved"));
        frame.meta = meta(LinkType::RAW, 3, Direction::Inbound);
        let mut burst = Burst::new();
        burst.push(b"first", meta(LinkType::ETHERNET, 1, Direction::Outbound));
        burst.push_frame(frame);
        burst.push(b"", meta(LinkType::ETHERNET, 2, Direction::Unknown));
        burst.push(b"raw", meta(LinkType::RAW, 4, Direction::Unknown));
        burst.push(b"none", meta(LinkType(1 << 16), 2, Direction::Unknown));
        let mut port = CaptureWriter::new("made", Some("right"), Vec::new()).unwrap();
        assert_eq!((port.tx_burst(&mut burst).unwrap(), burst.len()), (5, 0));
        assert_eq!(pool.free(), 1);
        let Stats { tx_frames, tx_bytes, tx_refused, .. } = port.stats();
        assert_eq!((tx_frames, tx_bytes, tx_refused), (4, 13, 1));
        assert_eq!(port.rx_burst(&mut burst).unwrap(), 0);

        let file = Cursor::new(port.finish().unwrap());
        let mut reader = CaptureReader::new("made", file).unwrap();
        assert_eq!(reader.rx_burst(&mut burst).unwrap(), 4);
        let read = burst.iter().map(|frame| (frame.bytes, FrameMeta { number: 0, ..*frame.meta }));
        let expected = [
            (&b"first"[..], meta(LinkType::ETHERNET, 1, Direction::Outbound)),
            (b"moved", FrameMeta { interface: 1, ..meta(LinkType::RAW, 3, Direction::Inbound) }),
            (b"", meta(LinkType::ETHERNET, 2, Direction::Unknown)),
            (b"raw", FrameMeta { interface: 1, ..meta(LinkType::RAW, 4, Direction::Unknown) }),
        ];
        assert!(read.eq(expected), "{burst:?}");
        let names = reader.interfaces().iter().map(|interface| interface.name.as_deref());
        assert!(names.eq([Some("right"); 2]));
    }

    #[test]
    fn a_full_disk_is_an_error_with_the_file_s_name() {
        let mut room = [0; 100];
        let mut port = CaptureWriter::new("disk", None, &mut room[..]).unwrap();
        let mut burst = Burst::new();
        burst.push(&[0; 100_000], FrameMeta::default());
        let error = port.tx_burst(&mut burst).unwrap_err();
        assert!(error.to_string().starts_with("disk: "), "{error}");
        assert_eq!((burst.len(), port.stats().tx_frames), (1, 0));
    }

    /// What was taken and is still in a buffer is not lost without a word.
    #[test]
    fn a_disk_that_is_full_at_the_end_is_an_error_too() {
        let mut room = [0; 100];
        let mut port = CaptureWriter::new("disk", None, &mut room[..]).unwrap();
        let mut burst = Burst::new();
        burst.push(&[0; 100], FrameMeta::default());
        assert_eq!(port.tx_burst(&mut burst).unwrap(), 1);
        let error = port.flush().unwrap_err();
        assert!(error.to_string().starts_with("disk: byte 100: "), "{error}");
    }
}
