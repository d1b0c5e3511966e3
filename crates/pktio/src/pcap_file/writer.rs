//! Writing capture files: classic pcap and pcapng.
//!
//! Contract: streaming and buffered; nothing is complete before `finish`. Files are little endian whatever
//! the host. Times that a format cannot hold become the nearest that it can; a frame without a time is
//! written with the epoch.
//!
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

use std::io::{self, BufWriter, ErrorKind, IntoInnerError, Write};

use super::{Interface, MAX_CAPTURED, classic, ng};
use crate::frame::{Direction, Frame};
use crate::link::LinkType;
use crate::timestamp::NANOS_PER_SECOND;
use crate::timestamp::Timestamp;

/// The snapshot length in file headers: libpcap's own maximum.
const SNAPLEN: u32 = 262_144;

/// Unit of the times in a classic file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Understood by every reader.
    Micros,
    /// Understood by libpcap since 1.5.
    Nanos,
}

/// Writes classic pcap: one link type, no interface, no direction, no comments.
#[derive(Debug)]
pub struct ClassicWriter<W: Write> {
    out: BufWriter<W>,
    precision: Precision,
}

impl<W: Write> ClassicWriter<W> {
    /// Writes the file header.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W, link_type: LinkType, precision: Precision) -> io::Result<Self> {
        let mut out = BufWriter::new(out);
        let magic = match precision {
            Precision::Micros => classic::MAGIC_MICROS,
            Precision::Nanos => classic::MAGIC_NANOS,
        };
        out.write_all(&magic.to_le_bytes())?;
        out.write_all(&2_u16.to_le_bytes())?;
        out.write_all(&4_u16.to_le_bytes())?;
        out.write_all(&[0; 8])?;
        out.write_all(&SNAPLEN.to_le_bytes())?;
        out.write_all(&link_type.0.to_le_bytes())?;
        Ok(Self { out, precision })
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// When the file cannot be written, or the frame is longer than [`MAX_CAPTURED`].
    pub fn write(&mut self, frame: Frame<'_>) -> io::Result<()> {
        let captured = captured_length(frame.bytes)?;
        let nanos = frame.meta.timestamp.unwrap_or_default().as_nanos();
        let nanos = nanos.clamp(0, i64::from(u32::MAX) * NANOS_PER_SECOND);
        let (seconds, nanos) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
        let fraction = match self.precision {
            Precision::Micros => nanos / 1000,
            Precision::Nanos => nanos,
        };
        for field in [seconds as u32, fraction as u32, captured, frame.meta.wire_length] {
            self.out.write_all(&field.to_le_bytes())?;
        }
        self.out.write_all(frame.bytes)
    }

    /// Writes what is buffered and returns what was written to.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(IntoInnerError::into_error)
    }
}

/// Writes pcapng: one section, several interfaces, times in nanoseconds, directions and comments.
#[derive(Debug)]
pub struct NgWriter<W: Write> {
    out: BufWriter<W>,
    interfaces: u32,
    /// The block being put together; kept to allocate once.
    body: Vec<u8>,
}

impl<W: Write> NgWriter<W> {
    /// Writes the section header.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self { out: BufWriter::new(out), interfaces: 0, body: Vec::new() };
        writer.put_u32(ng::BYTE_ORDER_MAGIC);
        writer.put_u16(1);
        writer.put_u16(0);
        // The section's length is not known.
        writer.body.extend_from_slice(&u64::MAX.to_le_bytes());
        writer.write_block(ng::SECTION_HEADER)?;
        Ok(writer)
    }

    /// Goes on with a file that another writer finished after describing `interfaces` interfaces: `out`
    /// appends to it, and nothing is written yet.
    pub fn resume(out: W, interfaces: u32) -> Self {
        Self { out: BufWriter::new(out), interfaces, body: Vec::new() }
    }

    /// Describes an interface and returns its number, counting from 0.
    ///
    /// # Errors
    /// When the file cannot be written, or the link type does not fit pcapng's 16 bits.
    pub fn add_interface(&mut self, interface: &Interface) -> io::Result<u32> {
        let link_type = u16::try_from(interface.link_type.0)
            .map_err(|_| invalid("pcapng has 16 bits for a link type"))?;
        self.put_u16(link_type);
        self.put_u16(0);
        self.put_u32(interface.snaplen);
        if let Some(name) = &interface.name {
            self.put_option(ng::IF_NAME, cut(name, ng::MAX_NAME).as_bytes());
        }
        self.put_option(ng::IF_TSRESOL, &[9]);
        self.put_option(ng::OPTION_END, &[]);
        self.write_block(ng::INTERFACE_DESCRIPTION)?;
        let number = self.interfaces;
        self.interfaces += 1;
        Ok(number)
    }

    /// Appends a frame of `interface` with an optional comment, which is cut at 65,535 bytes. The frame's
    /// own interface and link type are not looked at.
    ///
    /// # Errors
    /// When the file cannot be written, `interface` was not added, or the frame is longer than
    /// [`MAX_CAPTURED`].
    pub fn write(
        &mut self,
        interface: u32,
        frame: Frame<'_>,
        comment: Option<&str>,
    ) -> io::Result<()> {
        if interface >= self.interfaces {
            return Err(invalid("this interface was not added"));
        }
        let captured = captured_length(frame.bytes)?;
        let nanos = frame.meta.timestamp.map_or(0, Timestamp::as_nanos).max(0).cast_unsigned();
        self.put_u32(interface);
        self.put_u32((nanos >> 32) as u32);
        self.put_u32(nanos as u32);
        self.put_u32(captured);
        self.put_u32(frame.meta.wire_length);
        self.put_padded(frame.bytes);
        self.put_packet_options(frame.meta.direction, comment);
        self.write_block(ng::ENHANCED_PACKET)
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes what is buffered and returns what was written to.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(IntoInnerError::into_error)
    }

    fn put_packet_options(&mut self, direction: Direction, comment: Option<&str>) {
        let flags: u32 = match direction {
            Direction::Unknown => 0,
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        if let Some(comment) = comment {
            self.put_option(ng::COMMENT, cut(comment, u16::MAX.into()).as_bytes());
        }
        if flags != 0 {
            self.put_option(ng::PACKET_FLAGS, &flags.to_le_bytes());
        }
        if flags != 0 || comment.is_some() {
            self.put_option(ng::OPTION_END, &[]);
        }
    }

    fn put_u16(&mut self, field: u16) {
        self.body.extend_from_slice(&field.to_le_bytes());
    }

    fn put_u32(&mut self, field: u32) {
        self.body.extend_from_slice(&field.to_le_bytes());
    }

    fn put_padded(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// `value` has at most 65,535 bytes.
    fn put_option(&mut self, code: u16, value: &[u8]) {
        self.put_u16(code);
        self.put_u16(value.len() as u16);
        self.put_padded(value);
    }

    /// Writes the body put together so far as a block, and begins the next.
    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (ng::BLOCK_HEADER + self.body.len() + ng::BLOCK_TRAILER) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.body.clear();
        Ok(())
    }
}

fn captured_length(bytes: &[u8]) -> io::Result<u32> {
    if bytes.len() > MAX_CAPTURED {
        return Err(invalid("frame longer than any reader accepts"));
    }
    Ok(bytes.len() as u32)
}

/// The longest beginning of `text` within `limit` bytes.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}
