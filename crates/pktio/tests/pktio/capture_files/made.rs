//! Capture files put together field by field, independently of the crate's writers, and a way to read
//! them whole.

use std::io::{Cursor, Read};

use pktio::{Burst, CaptureReader, EndOfFile, FrameMeta, Interface, Port, PortError};

/// Byte order of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Little,
    Big,
}

pub(crate) const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub(crate) fn u16(self, field: u16) -> Vec<u8> {
        match self {
            Order::Little => field.to_le_bytes().to_vec(),
            Order::Big => field.to_be_bytes().to_vec(),
        }
    }

    pub(crate) fn u32(self, field: u32) -> Vec<u8> {
        match self {
            Order::Little => field.to_le_bytes().to_vec(),
            Order::Big => field.to_be_bytes().to_vec(),
        }
    }

    pub(crate) fn u64(self, field: u64) -> Vec<u8> {
        match self {
            Order::Little => field.to_le_bytes().to_vec(),
            Order::Big => field.to_be_bytes().to_vec(),
        }
    }

    pub(crate) fn pcap_header(self, magic: u32, version: (u16, u16), link_type: u32) -> Vec<u8> {
        [
            self.u32(magic),
            self.u16(version.0),
            self.u16(version.1),
            vec![0; 8],
            self.u32(65_535),
            self.u32(link_type),
        ]
        .concat()
    }

    /// A record whose third and fourth field are `lengths`.
    pub(crate) fn pcap_record(
        self,
        seconds: u32,
        ticks: u32,
        lengths: (u32, u32),
        bytes: &[u8],
    ) -> Vec<u8> {
        let fields = [seconds, ticks, lengths.0, lengths.1].map(|field| self.u32(field));
        [fields.concat(), bytes.to_vec()].concat()
    }

    pub(crate) fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = self.u32(12 + body.len() as u32);
        [self.u32(kind), length.clone(), body, length].concat()
    }

    pub(crate) fn section(self) -> Vec<u8> {
        let body = [self.u32(0x1a2b_3c4d), self.u16(1), self.u16(0), self.u64(u64::MAX)].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    pub(crate) fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.u16(code), self.u16(value.len() as u16), value.to_vec()].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    pub(crate) fn interface(self, link_type: u16, snaplen: u32, options: &[u8]) -> Vec<u8> {
        let body = [self.u16(link_type), self.u16(0), self.u32(snaplen), options.to_vec()].concat();
        self.block(1, &body)
    }

    /// An enhanced packet block; its wire length is ten more than the captured bytes.
    pub(crate) fn enhanced(self, id: u32, ticks: u64, bytes: &[u8], options: &[u8]) -> Vec<u8> {
        let body = [self.u32(id), self.packet_fields(ticks, bytes), options.to_vec()].concat();
        self.block(6, &body)
    }

    pub(crate) fn obsolete(self, id: u16, ticks: u64, bytes: &[u8], options: &[u8]) -> Vec<u8> {
        let ids = [self.u16(id), self.u16(0xffff)].concat();
        self.block(2, &[ids, self.packet_fields(ticks, bytes), options.to_vec()].concat())
    }

    fn packet_fields(self, ticks: u64, bytes: &[u8]) -> Vec<u8> {
        let captured = bytes.len() as u32;
        let fields = [(ticks >> 32) as u32, ticks as u32, captured, captured + 10];
        let mut body = fields.map(|field| self.u32(field)).concat();
        body.extend_from_slice(bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        body
    }

    pub(crate) fn simple(self, wire_length: u32, bytes: &[u8]) -> Vec<u8> {
        self.block(3, &[self.u32(wire_length), bytes.to_vec()].concat())
    }
}

/// A file and the offsets at which its records begin, with that of its end.
pub(crate) struct Made {
    pub(crate) file: Vec<u8>,
    pub(crate) starts: Vec<usize>,
}

impl Made {
    /// Puts `pieces` one after the other.
    pub(crate) fn new(pieces: &[Vec<u8>]) -> Self {
        let ends = pieces.iter().scan(0, |end, piece| {
            *end += piece.len();
            Some(*end)
        });
        Self { file: pieces.concat(), starts: std::iter::once(0).chain(ends).collect() }
    }
}

/// Three packets of 10, 0 and 33 bytes.
pub(crate) fn small_pcap() -> Made {
    let order = Order::Little;
    let record = |second, length: u32| {
        order.pcap_record(second, 0, (length, length), &vec![second as u8; length as usize])
    };
    Made::new(&[
        order.pcap_header(0xa1b2_c3d4, (2, 4), 1),
        record(1, 10),
        record(2, 0),
        record(3, 33),
    ])
}

/// Three packets among other blocks.
pub(crate) fn small_ng() -> Made {
    let order = Order::Big;
    Made::new(&[
        order.section(),
        order.interface(1, 0, &order.option(2, b"eth0")),
        order.enhanced(0, 1_000_000, &[1; 10], &[]),
        order.block(4, b"name resolution"),
        order.enhanced(0, 2_000_000, &[], &order.option(2, &order.u32(1))),
        order.simple(33, &[3; 33]),
    ])
}

/// Everything a file yields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) frames: Vec<(FrameMeta, Vec<u8>)>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) end: EndOfFile,
}

impl Reading {
    pub(crate) fn nanos(&self) -> Vec<i64> {
        self.frames.iter().map(|(meta, _)| meta.timestamp.unwrap_or_default().as_nanos()).collect()
    }

    pub(crate) fn bytes(&self) -> Vec<&[u8]> {
        self.frames.iter().map(|(_, bytes)| &bytes[..]).collect()
    }
}

pub(crate) fn read(file: &[u8]) -> Result<Reading, PortError> {
    read_in_pieces(file, Burst::DEFAULT_BYTES, usize::MAX)
}

/// Reads `file` with bursts of `capacity` bytes from a source that yields at most `step` bytes at once.
pub(crate) fn read_in_pieces(
    file: &[u8],
    capacity: usize,
    step: usize,
) -> Result<Reading, PortError> {
    let source = Steps { source: Cursor::new(file.to_vec()), step };
    let mut reader = CaptureReader::new("made", source)?;
    let mut burst = Burst::with_capacity(capacity);
    let mut frames = Vec::new();
    while reader.rx_burst(&mut burst)? > 0 {
        frames.extend(burst.iter().map(|frame| (*frame.meta, frame.bytes.to_vec())));
        assert!(burst.capacity() <= capacity.max(17 * 1024 * 1024), "unbounded memory");
    }
    assert_eq!(reader.rx_burst(&mut burst)?, 0, "the end stays the end");
    assert_eq!(reader.stats().rx_frames, frames.len() as u64);
    assert!(frames.iter().zip(1..).all(|((meta, _), number)| meta.number == number));
    let interfaces = reader.interfaces().to_vec();
    let end = reader.end().cloned().expect("a file read to its end has one");
    Ok(Reading { frames, interfaces, end })
}

struct Steps {
    source: Cursor<Vec<u8>>,
    step: usize,
}

impl Read for Steps {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(self.step);
        self.source.read(&mut into[..length])
    }
}
