//! [`Frames`]: a burst on its way through a lane.

use pktio::Burst;

use crate::forward::reorder::Batch;

/// Frames that were received together.
#[derive(Debug)]
pub(super) struct Frames {
    /// The frames as they came; after evaluation, the frames that leave.
    pub(super) burst: Burst,
    /// What leaves, where made frames are among it.
    pub(super) out: Burst,
    /// Replies, which leave through the port of arrival.
    pub(super) back: Burst,
    /// Whether no rule saw the frames.
    pub(super) is_unevaluated: bool,
    /// Whether the frames are still in their envelopes, and not counted one by one.
    pub(super) is_closed: bool,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            burst: Burst::new(),
            out: Burst::with_capacity(0),
            back: Burst::with_capacity(0),
            is_unevaluated: false,
            is_closed: false,
        }
    }
}

impl Batch for Frames {
    fn clear(&mut self) {
        self.burst.clear();
        self.out.clear();
        self.back.clear();
        self.is_unevaluated = false;
        self.is_closed = false;
    }
}

impl Frames {
    /// The number of frames.
    pub(super) fn len(&self) -> usize {
        self.burst.len() + self.out.len() + self.back.len()
    }

    /// The frames that leave through the other port.
    pub(super) fn leaving(&mut self) -> &mut Burst {
        if self.out.is_empty() { &mut self.burst } else { &mut self.out }
    }
}
