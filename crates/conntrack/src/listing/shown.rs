//! What a line of a listing says, for who writes it in another form than the line.

use super::{Listed, State};
use crate::flow::Counters;
use crate::key::{Direction, Tuple};

impl Listed {
    /// Its tuple in a direction, in its zone.
    #[must_use]
    pub fn tuple(&self, direction: Direction) -> &Tuple {
        match direction {
            Direction::Original => &self.original,
            Direction::Reply => &self.reply,
        }
    }

    /// What it counted in a direction; `None` if the listing does not say.
    #[must_use]
    pub fn counters(&self, direction: Direction) -> Option<Counters> {
        let [original, reply] = self.kept.as_ref()?.counters;
        Some(if direction == Direction::Original { original } else { reply })
    }

    /// Seconds that it has left.
    #[must_use]
    pub fn seconds_left(&self) -> u64 {
        self.left
    }

    /// The name of its protocol's state, of protocols that have any.
    #[must_use]
    pub fn state(&self) -> Option<String> {
        match self.state {
            State::Plain => None,
            State::Tcp(state) => Some(state.to_string()),
            State::Sctp(state) => Some(state.name().to_owned()),
        }
    }

    /// Whether packets of both directions were seen.
    #[must_use]
    pub fn is_replied(&self) -> bool {
        self.replied
    }

    /// Whether it is not the first to go where room is made.
    #[must_use]
    pub fn is_assured(&self) -> bool {
        self.assured
    }

    /// Its mark.
    #[must_use]
    pub fn mark(&self) -> u32 {
        self.mark
    }
}
