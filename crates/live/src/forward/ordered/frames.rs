//! [`Frames`]: a burst on its way through a lane, or one owner's part of it.

use std::iter::Peekable;

use pktio::{Burst, Taken};

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
    fn is_empty(&self) -> bool {
        self.burst.is_empty()
    }

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

/// Puts frames that were shared out back in their order, by number, at the end of `to`.
pub(super) fn merge<'b>(parts: impl Iterator<Item = &'b mut Burst>, to: &mut Burst) {
    let mut parts: smallvec::SmallVec<[_; 8]> =
        parts.map(|burst| burst.drain(usize::MAX).peekable()).collect();
    while let Some(frame) = first(&mut parts) {
        to.append(frame);
    }
}

/// The frame with the lowest number; of frames made of one, the first.
fn first<'b>(parts: &mut [Peekable<impl Iterator<Item = Taken<'b>>>]) -> Option<Taken<'b>> {
    let numbers =
        parts.iter_mut().enumerate().filter_map(|(at, part)| Some((number(part.peek()?), at)));
    let (_, at) = numbers.min()?;
    parts[at].next()
}

fn number(frame: &Taken<'_>) -> u64 {
    match frame {
        Taken::Lent { meta, .. } => meta.number,
        Taken::Moved(frame) => frame.meta.number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pktio::FrameMeta;
    use proptest::prelude::*;

    fn burst(numbers: &[u64]) -> Burst {
        let mut burst = Burst::with_capacity(0);
        for number in numbers {
            burst.push(&number.to_be_bytes(), FrameMeta { number: *number, ..Default::default() });
        }
        burst
    }

    proptest! {
        /// Sorting gives the same result; frames that were made of one have its number, and stay together.
        #[test]
        fn parts_become_one_burst_again(mut parts in prop::collection::vec(
            prop::collection::vec(0..40_u64, 0..20), 1..5))
        {
            let count = parts.len() as u64;
            for (owner, part) in parts.iter_mut().enumerate() {
                part.iter_mut().for_each(|number| *number = *number * count + owner as u64);
                part.sort_unstable();
            }
            let mut bursts: Vec<Burst> = parts.iter().map(|part| burst(part)).collect();
            let mut all = burst(&[]);
            merge(bursts.iter_mut(), &mut all);
            let merged: Vec<u64> = all.iter().map(|frame| frame.meta.number).collect();
            let mut expected = parts.concat();
            expected.sort_unstable();
            prop_assert_eq!(merged, expected);
        }
    }
}
