//! [`Framed`]: the tunnel's datagrams in a TCP connection, where UDP is blocked: each after its length and the server's port that it is
//! for or from.
//!
//! | bytes | |
//! |---|---|
//! | 0–1 | bytes that follow, from 3 to 9,218 |
//! | 2–3 | the server's UDP port |
//! | 4– | the datagram |
//!
//! Contract: no sockets and no clock. A length is not believed: what is kept is what has come, of one frame at most. What is to be sent
//! is bounded, too; with more a datagram is lost, as it is by UDP.

/// Bytes of the longest datagram.
const LONGEST: usize = 9_216;
/// Bytes that wait to be sent, at most.
const WAITING: usize = 256 << 10;

/// The error for bytes that are no frames: the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFrame;

/// One side of a connection.
#[derive(Debug, Default)]
pub struct Framed {
    /// The beginning of a frame whose end has not come.
    begun: Vec<u8>,
    waiting: Vec<u8>,
    /// Bytes of `waiting` that are sent.
    sent: usize,
}

impl Framed {
    /// Takes bytes that came; `each` gets the port and the datagram of each frame that is whole.
    ///
    /// # Errors
    /// [`NoFrame`].
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(u16, &mut [u8]),
    ) -> Result<(), NoFrame> {
        while !bytes.is_empty() {
            let missing = match self.begun.first_chunk::<2>() {
                None => 2 - self.begun.len(),
                Some(length) => {
                    let length = usize::from(u16::from_le_bytes(*length));
                    if !(3..=2 + LONGEST).contains(&length) {
                        return Err(NoFrame);
                    }
                    2 + length - self.begun.len()
                }
            };
            let (taken, rest) = bytes.split_at(missing.min(bytes.len()));
            self.begun.extend_from_slice(taken);
            bytes = rest;
            let is_whole = taken.len() == missing && self.begun.len() > 2;
            if let [_, _, first, second, datagram @ ..] = &mut *self.begun
                && is_whole
            {
                each(u16::from_le_bytes([*first, *second]), datagram);
                self.begun.clear();
            }
        }
        // A length that no frame has is found out before anything else comes.
        match self.begun.first_chunk::<2>().map(|it| usize::from(u16::from_le_bytes(*it))) {
            Some(length) if !(3..=2 + LONGEST).contains(&length) => Err(NoFrame),
            _ => Ok(()),
        }
    }

    /// Has a datagram wait to be sent; whether there was room for it.
    pub fn send(&mut self, port: u16, datagram: &[u8]) -> bool {
        let is_fit = (1..=LONGEST).contains(&datagram.len());
        if !is_fit || self.pending().len() + datagram.len() > WAITING {
            return false;
        }
        if self.sent > 0 {
            self.waiting.drain(..self.sent);
            self.sent = 0;
        }
        self.waiting.extend_from_slice(&(2 + datagram.len() as u16).to_le_bytes());
        self.waiting.extend_from_slice(&port.to_le_bytes());
        self.waiting.extend_from_slice(datagram);
        true
    }

    /// What is to be sent.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        self.waiting.get(self.sent..).unwrap_or_default()
    }

    /// So many bytes of it are sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = self.waiting.len().min(self.sent + bytes);
        if self.sent == self.waiting.len() {
            self.waiting.clear();
            self.sent = 0;
            self.waiting.shrink_to(LONGEST);
        }
    }
}
