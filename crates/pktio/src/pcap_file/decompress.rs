//! The bytes of a capture file after decompression.
//!
//! Contract: gzip (of several members) and zstd (of several frames) are known by their magic numbers,
//! anything else is passed on as it is, straight into the caller's buffer. Memory is that of one
//! decompressor: 32 KiB of window for gzip, at most 128 MiB for zstd (a frame that asks for more is
//! refused).
//!
//! Source: RFC 1952, RFC 8878.

use std::io::{self, BufReader, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

/// Bytes looked at to tell a compressed file.
const MAGIC_LENGTH: usize = 4;
const COMPRESSED_CHUNK: usize = 64 * 1024;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: u32 = 0xfd2f_b528;
/// The upper 28 bits of a skippable frame's magic; parallel compressors begin with one.
const ZSTD_SKIPPABLE: u32 = 0x0184_d2a5;

/// Why no more bytes come.
#[derive(Debug)]
pub(super) enum Stop {
    /// The system failed to read.
    System(io::Error),
    /// The compressed stream named ends in the middle.
    Cut(&'static str),
    /// The compressed stream named is damaged.
    Corrupt(&'static str, String),
}

/// A file as it is stored: counts what was read and can be looked at before.
struct Stored {
    reader: Box<dyn Read + Send>,
    /// The beginning, read ahead.
    head: [u8; MAGIC_LENGTH],
    head_length: usize,
    head_taken: usize,
    bytes_read: u64,
    failed: bool,
}

impl Stored {
    fn new(reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let head = [0; MAGIC_LENGTH];
        let mut stored =
            Self { reader, head, head_length: 0, head_taken: 0, bytes_read: 0, failed: false };
        while stored.head_length < MAGIC_LENGTH {
            match stored.reader.read(&mut stored.head[stored.head_length..]) {
                Ok(0) => break,
                Ok(length) => stored.head_length += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(stored)
    }

    fn head(&self) -> &[u8] {
        &self.head[..self.head_length]
    }
}

impl Read for Stored {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ahead = &self.head[self.head_taken..self.head_length];
        let length = if ahead.is_empty() {
            let read = self.reader.read(into);
            self.failed = read.is_err();
            read?
        } else {
            let length = ahead.len().min(into.len());
            into[..length].copy_from_slice(&ahead[..length]);
            self.head_taken += length;
            length
        };
        self.bytes_read += length as u64;
        Ok(length)
    }
}

enum Stream {
    Plain(Stored),
    Gzip(Box<MultiGzDecoder<BufReader<Stored>>>),
    Zstd(zstd::Decoder<'static, BufReader<Stored>>),
}

/// A capture file, decompressed as it is read.
pub(super) struct Decompressed {
    stream: Stream,
}

impl Decompressed {
    /// Looks at the beginning of `reader` to tell how it is compressed.
    pub(super) fn new(reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let stored = Stored::new(reader)?;
        let zstd_magic = stored.head().first_chunk().map(|magic| u32::from_le_bytes(*magic));
        let stream = if stored.head().starts_with(&GZIP_MAGIC) {
            let buffered = BufReader::with_capacity(COMPRESSED_CHUNK, stored);
            Stream::Gzip(Box::new(MultiGzDecoder::new(buffered)))
        } else if zstd_magic
            .is_some_and(|magic| magic == ZSTD_MAGIC || magic >> 4 == ZSTD_SKIPPABLE)
        {
            let buffered = BufReader::with_capacity(COMPRESSED_CHUNK, stored);
            Stream::Zstd(zstd::Decoder::with_buffer(buffered)?)
        } else {
            Stream::Plain(stored)
        };
        Ok(Self { stream })
    }

    /// Bytes read so far of the file as it is stored.
    pub(super) fn bytes_read(&self) -> u64 {
        self.stored().bytes_read
    }

    fn stored(&self) -> &Stored {
        match &self.stream {
            Stream::Plain(stored) => stored,
            Stream::Gzip(decoder) => decoder.get_ref().get_ref(),
            Stream::Zstd(decoder) => decoder.get_ref().get_ref(),
        }
    }

    /// Reads some bytes; 0 at the end of the file.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, Stop> {
        loop {
            let (read, method) = match &mut self.stream {
                Stream::Plain(stored) => (stored.read(into), None),
                Stream::Gzip(decoder) => (decoder.read(into), Some("gzip")),
                Stream::Zstd(decoder) => (decoder.read(into), Some("zstd")),
            };
            match (read, method) {
                (Ok(length), _) => return Ok(length),
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                (Err(error), Some(method)) if !self.stored().failed => {
                    return Err(compression_fault(method, &error));
                }
                (Err(error), _) => return Err(Stop::System(error)),
            }
        }
    }
}

/// Bytes of a file, decompressed where they are compressed as a capture may be.
///
/// # Errors
/// The file cannot be read. Reading fails where the compressed stream is cut off or damaged.
pub fn decompressed(reader: impl Read + Send + 'static) -> io::Result<impl Read> {
    Decompressed::new(Box::new(reader)).map(Plain)
}

/// A file that reports faults as read errors.
struct Plain(Decompressed);

impl Read for Plain {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(self.0.read(into)?)
    }
}

impl From<Stop> for io::Error {
    fn from(stop: Stop) -> Self {
        let damage = |what: String| Self::new(ErrorKind::InvalidData, what);
        match stop {
            Stop::System(error) => error,
            Stop::Cut(what) => damage(format!("expected more of {what}, found its end")),
            Stop::Corrupt(method, what) => {
                damage(format!("expected more of the {method} stream, found damage: {what}"))
            }
        }
    }
}

fn compression_fault(method: &'static str, error: &io::Error) -> Stop {
    match error.kind() {
        ErrorKind::UnexpectedEof if method == "gzip" => Stop::Cut("the gzip stream"),
        ErrorKind::UnexpectedEof => Stop::Cut("the zstd stream"),
        _ => Stop::Corrupt(method, error.to_string()),
    }
}
