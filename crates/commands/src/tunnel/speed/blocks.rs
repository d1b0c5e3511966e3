//! Blocks over a connection for some time, and how fast they come: the same at either end, either way.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::BLOCK;

/// What came, after the first fifth of the time, in which a connection finds out how fast it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) bytes: u64,
    pub(super) nanos: u64,
}

impl Rate {
    /// Mbit/s.
    pub(super) fn mbit_s(self) -> f64 {
        if self.nanos == 0 { 0.0 } else { self.bytes as f64 * 8e3 / self.nanos as f64 }
    }

    pub(super) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[8..].copy_from_slice(&self.nanos.to_be_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_be_bytes(bytes);
        Self { bytes: (number >> 64) as u64, nanos: number as u64 }
    }
}

/// Sends blocks for this time, and their end.
pub(super) fn send(to: &mut impl Write, time: Duration) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    block[0] = 1;
    let start = Instant::now();
    while start.elapsed() < time {
        to.write_all(&block)?;
    }
    to.write_all(&[0])
}

/// Takes blocks that are sent for this time, to their end, which has to arrive before `until`.
pub(super) fn receive(from: &mut impl Read, time: Duration, until: Instant) -> io::Result<Rate> {
    let mut buffer = vec![0; BLOCK];
    let (mut start, mut rate, mut left) = (None, Rate::default(), 0);
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now = Instant::now();
        if now >= until {
            return Err(ErrorKind::TimedOut.into());
        }
        let ends = ends(&buffer[..read], &mut left)?;
        let counted = *start.get_or_insert(now) + time / 5;
        if now > counted {
            rate.bytes += read as u64;
            rate.nanos = (now - counted).as_nanos() as u64;
        }
        if ends {
            return Ok(rate);
        }
    }
}

/// Whether the blocks end with these bytes, where `left` bytes of the last block are missing.
fn ends(bytes: &[u8], left: &mut usize) -> io::Result<bool> {
    let mut at = 0;
    while at < bytes.len() {
        if *left == 0 {
            match (bytes[at], bytes.len() - at) {
                (1, _) => *left = BLOCK,
                (0, 1) => return Ok(true),
                _ => return Err(ErrorKind::InvalidData.into()),
            }
        }
        let taken = (*left).min(bytes.len() - at);
        (at, *left) = (at + taken, *left - taken);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives bytes out in pieces of a length.
    struct Pieces<'b>(&'b [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let (piece, rest) = self.0.split_at(self.1.min(self.0.len()).min(buffer.len()));
            buffer[..piece.len()].copy_from_slice(piece);
            self.0 = rest;
            Ok(piece.len())
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn blocks_are_taken_to_their_end_however_they_are_cut() {
        let mut sent = Vec::new();
        send(&mut sent, Duration::from_micros(50)).unwrap();
        assert_eq!(sent.len() % BLOCK, 1);
        for piece in [1, 7, 4_096, BLOCK - 1, BLOCK, 3 * BLOCK] {
            let rate = receive(&mut Pieces(&sent, piece), Duration::ZERO, soon()).unwrap();
            // What came with the first bytes is not counted: they begin the time.
            let first = piece.min(sent.len()).min(BLOCK) as u64;
            assert!(rate.bytes <= sent.len() as u64 - first && rate.mbit_s() >= 0.0);
            assert!(sent.len() as u64 == 1 || piece > 1 || rate.bytes > BLOCK as u64 / 2);
        }
        let cut = receive(&mut Pieces(&sent[..sent.len() - 1], 9), Duration::ZERO, soon());
        assert_eq!(cut.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_are_no_blocks_is_refused_and_what_lasts_too_long_too() {
        for bytes in [&[2_u8][..], &[0, 0], &[255; 9]] {
            let wrong = receive(&mut Pieces(bytes, 9), Duration::ZERO, soon()).unwrap_err();
            assert_eq!(wrong.kind(), ErrorKind::InvalidData);
        }
        let late = receive(&mut Pieces(&[1; 9], 1), Duration::ZERO, Instant::now()).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_rate_is_written_and_read() {
        let rate = Rate { bytes: 1_250_000, nanos: 10_000_000 };
        assert_eq!(Rate::from_bytes(rate.to_bytes()), rate);
        assert_eq!((rate.mbit_s(), Rate::default().mbit_s()), (1_000.0, 0.0));
    }
}
