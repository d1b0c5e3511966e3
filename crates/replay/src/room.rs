//! [`Room`]: how much may still be written. A few kilobytes of a compressed capture can be a terabyte of packets, and every
//! one of them is a line of `--packets`.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

/// Bytes that all files of a replay may still take; no end of them by default.
#[derive(Debug, Clone, Default)]
pub struct Room(Option<Rc<Cell<u64>>>);

impl Room {
    /// Room for this number of bytes.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self(Some(Rc::new(Cell::new(bytes))))
    }

    /// A file that takes of this room.
    pub(crate) fn within<W>(&self, to: W) -> Within<W> {
        Within { to, room: self.clone() }
    }

    fn take(&self, bytes: usize) -> io::Result<()> {
        let Some(left) = &self.0 else { return Ok(()) };
        let rest = left.get().checked_sub(bytes as u64);
        left.set(rest.ok_or_else(|| io::Error::other("expected less to write (--max-output)"))?);
        Ok(())
    }
}

/// A file that takes of a room.
#[derive(Debug)]
pub(crate) struct Within<W> {
    to: W,
    room: Room,
}

impl<W: Write> Write for Within<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room.take(bytes.len())?;
        self.to.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_share_the_room() {
        let room = Room::of(5);
        let (mut a, mut b) = (room.within(Vec::new()), room.within(Vec::new()));
        a.write_all(b"abc").unwrap();
        b.write_all(b"de").unwrap();
        assert!(a.write_all(b"f").is_err());
        assert_eq!((&*a.to, &*b.to), (&b"abc"[..], &b"de"[..]));
        Room::default().within(io::sink()).write_all(&[0; 1 << 20]).unwrap();
    }
}
