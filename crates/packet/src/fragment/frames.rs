//! How a packet is cut ([`Cut`]), and the frames that it becomes ([`Frames`]).

/// How a packet is cut.
#[derive(Debug, Clone, Copy)]
pub struct Cut<'a> {
    /// Bytes that a fragment holds at most, from its network header on.
    pub most: usize,
    /// Bytes of payload of the fragments that it was put together of, from the first to the last; none if it was not.
    pub pieces: &'a [u32],
    /// The fragments of IPv4 say that they must not be fragmented, unless they are the pieces that there were.
    pub dont_fragment: bool,
    /// Identification for IPv6 fragments; IPv4 fragments keep the packet's.
    pub id: u32,
}

/// Frames, one after the other in one buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Frames {
    /// Forgets the frames and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frames, from the first to the last.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }

    /// Appends a frame made of these parts, and lends it.
    pub fn push(&mut self, parts: &[&[u8]]) -> &mut [u8] {
        let start = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.ends.push(self.bytes.len());
        self.bytes.get_mut(start..).unwrap_or_default()
    }
}
