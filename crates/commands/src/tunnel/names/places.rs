//! [`Places`]: at which of its places a node speaks to its directory: at the next one once it does not answer.
//!
//! Contract: no sockets and no clock. Of the directories of a network one serves, so who does not answer is left for the next one, and
//! where none answers all are tried in turn.

use std::net::SocketAddr;

use overlay::limits::SECOND;
use overlay::{Body, Message};

/// Time without an answer to a question or a registration after which the next place is tried.
const PATIENCE: u64 = 3 * SECOND;

/// The places of a directory.
#[derive(Debug)]
pub(super) struct Places {
    /// Where it is spoken to first.
    all: Vec<SocketAddr>,
    /// When it was asked first of what it has not answered.
    asked: Option<u64>,
    /// It was said that it does not answer.
    pub(super) is_said: bool,
}

impl Places {
    /// A directory that is at the first of these places, or else at one of the others.
    pub(super) fn new(all: Vec<SocketAddr>) -> Self {
        Self { all, asked: None, is_said: false }
    }

    /// A message goes to the directory.
    pub(super) fn said(&mut self, message: &[u8], now: u64) {
        let body = Message::parse(message).map(|message| message.body);
        if matches!(body, Ok(Body::Register { .. } | Body::Direct { .. })) {
            self.asked.get_or_insert(now);
        }
    }

    /// The directory said something.
    pub(super) fn heard(&mut self) {
        (self.asked, self.is_said) = (None, false);
    }

    /// The next place, if it is time for that.
    pub(super) fn turn(&mut self, now: u64) -> Option<SocketAddr> {
        let is_silent = self.asked.is_some_and(|asked| now >= asked.saturating_add(PATIENCE));
        if !is_silent || self.all.len() < 2 {
            return None;
        }
        self.all.rotate_left(1);
        self.asked = Some(now);
        self.all.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: Body) -> Vec<u8> {
        Message { transaction: 1, body }.to_bytes()
    }

    #[test]
    fn a_directory_that_does_not_answer_is_looked_for_at_its_next_place() {
        let [one, two]: [SocketAddr; 2] =
            ["192.0.2.1:9", "192.0.2.2:9"].map(|at| at.parse().unwrap());
        let direct = message(Body::Direct { name: "nas".parse().unwrap() });
        let mut places = Places::new(vec![one, two]);
        // What nothing answers says nothing.
        places.said(&message(Body::Reaches { peers: Vec::new() }), 0);
        assert_eq!(places.turn(100 * SECOND), None);
        places.said(&direct, 100 * SECOND);
        places.said(&direct, 102 * SECOND);
        assert_eq!(places.turn(102 * SECOND), None);
        assert_eq!(places.turn(103 * SECOND), Some(two));
        assert_eq!((places.turn(105 * SECOND), places.turn(106 * SECOND)), (None, Some(one)));
        places.heard();
        assert_eq!(places.turn(200 * SECOND), None);
        let mut alone = Places::new(vec![one]);
        alone.said(&direct, 0);
        assert_eq!(alone.turn(100 * SECOND), None);
    }
}
