//! [`Shifts`]: how far the TCP numbers of a connection moved because its payload was rewritten to another length.
//!
//! A packet's sequence number moves by what was inserted before it, its acknowledgement number, and what it
//! acknowledges selectively, back by what was inserted the other way. One place is remembered for each direction:
//! what lies up to it moved by `before`, the rest by `after`.
//!
//! Contract: numbers and distances modulo 2^32.
//!
//! Source: Linux 6.18 `nf_conntrack_seqadj.c`.

use crate::key::Direction;
use crate::tcp::{after, before};

/// How far the numbers of one direction moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shift {
    /// Sequence number, as it was sent, of the last segment that was rewritten.
    position: u32,
    before: u32,
    after: u32,
}

impl Shift {
    /// What a sequence number moves by.
    #[must_use]
    pub fn of(&self, sequence: u32) -> u32 {
        if after(sequence, self.position) { self.after } else { self.before }
    }

    /// What a number moved by that acknowledges.
    #[must_use]
    pub fn of_acknowledged(&self, number: u32) -> u32 {
        self.of(number.wrapping_sub(self.before))
    }

    /// Position, and what lies up to it and after it moved by.
    pub(crate) fn numbers(&self) -> [u32; 3] {
        [self.position, self.before, self.after]
    }

    /// A segment grew by this. One that was rewritten before, or lies before that, changes nothing.
    fn grow(&mut self, sequence: u32, by: u32) {
        if self.before == self.after || before(self.position, sequence) {
            *self =
                Self { position: sequence, before: self.after, after: self.after.wrapping_add(by) };
        }
    }
}

/// The shifts of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shifts([Shift; 2]);

impl Shifts {
    /// Returns the shift of packets in this direction.
    pub(crate) fn of(&self, direction: Direction) -> Shift {
        let [original, reply] = self.0;
        if direction == Direction::Original { original } else { reply }
    }

    /// Restores both directions from what [`Shift::numbers`] returned for each.
    pub(crate) fn from_numbers(numbers: [[u32; 3]; 2]) -> Self {
        Self(numbers.map(|[position, before, after]| Shift { position, before, after }))
    }

    /// A segment that goes this way, sent with this sequence number, grew by this.
    pub(crate) fn grow(&mut self, direction: Direction, sequence: u32, by: u32) {
        let [original, reply] = &mut self.0;
        let shift = if direction == Direction::Original { original } else { reply };
        shift.grow(sequence, by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_after_the_segment_moves() {
        let mut shift = Shift::default();
        shift.grow(100, 3);
        assert_eq!([99, 100, 101].map(|sequence| shift.of(sequence)), [0, 0, 3]);
        shift.grow(130, 5);
        assert_eq!([100, 130, 131].map(|sequence| shift.of(sequence)), [3, 3, 8]);
    }

    #[test]
    fn one_sent_again_moves_nothing_again() {
        let mut shift = Shift::default();
        shift.grow(100, 3);
        shift.grow(100, 3);
        shift.grow(90, 3);
        assert_eq!(shift.of(200), 3);
    }

    #[test]
    fn a_segment_may_shrink_and_numbers_wrap() {
        let mut shift = Shift::default();
        shift.grow(u32::MAX, 2u32.wrapping_neg());
        assert_eq!([u32::MAX, 5].map(|sequence| shift.of(sequence)), [0, u32::MAX - 1]);
    }

    /// Behind growth by 3 at 100, byte 101 arrives as 104: its acknowledgement moves back by 3.
    #[test]
    fn what_is_acknowledged_moves_back() {
        let mut shift = Shift::default();
        shift.grow(100, 3);
        assert_eq!([100, 101, 104].map(|number| shift.of_acknowledged(number)), [0, 3, 3]);
        shift.grow(130, 5);
        assert_eq!([133, 134].map(|number| shift.of_acknowledged(number)), [3, 8]);
    }

    #[test]
    fn directions_are_apart() {
        let mut shifts = Shifts::default();
        shifts.grow(Direction::Reply, 1, 7);
        assert_eq!(shifts.of(Direction::Original), Shift::default());
        assert_eq!(shifts.of(Direction::Reply).of(2), 7);
    }
}
