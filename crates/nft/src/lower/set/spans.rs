//! [`Spans`]: intervals of one number, by bisection.

use super::Span;

/// Intervals that do not meet, in order, each with the element that it belongs to.
#[derive(Debug)]
pub(super) struct Spans(Box<[(Span, u32)]>);

impl Spans {
    /// Sorts intervals. Where two meet, the first keeps what both have.
    pub(super) fn new(mut spans: Vec<(Span, u32)>) -> Self {
        spans.sort_unstable();
        let mut apart: Vec<(Span, u32)> = Vec::with_capacity(spans.len());
        for (mut span, element) in spans {
            if let Some((before, _)) = apart.last()
                && span.low <= before.high
            {
                if span.high <= before.high {
                    continue;
                }
                span.low = before.high + 1;
            }
            apart.push((span, element));
        }
        Self(apart.into())
    }

    /// The element whose interval holds a number.
    pub(super) fn find(&self, number: u128) -> Option<u32> {
        let after = self.0.partition_point(|(span, _)| span.low <= number);
        let (span, element) = self.0.get(after.checked_sub(1)?)?;
        span.holds(number).then_some(*element)
    }
}
