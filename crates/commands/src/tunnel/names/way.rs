//! [`Way`]: whether a node speaks to its servers by UDP or by TCP: UDP goes first, and is tried again now and then.
//!
//! Contract: no sockets and no clock. A silent directory does not mean that UDP is blocked: where there is no connection by TCP
//! either, both are tried in turn.

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// Time without an answer by UDP after which TCP is tried, where there never was one.
const FIRST: u64 = 5 * SECOND;
/// Where there was one; as long TCP may take to connect.
const SILENCE: u64 = 15 * SECOND;
/// Time without an answer by a connection that is there.
const DEAF: u64 = 30 * SECOND;
/// Time between two trials of UDP: first, and at most.
const PAUSE: u64 = 60 * SECOND;
/// See [`PAUSE`].
const LONG_PAUSE: u64 = 600 * SECOND;
/// How long a trial takes, and when an answer may be one of before it.
const TRIAL: u64 = 3 * SECOND;
/// See [`TRIAL`].
const LATE: u64 = SECOND / 2;

/// By which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Udp,
    Tcp,
    /// By TCP, while the servers are tried by UDP.
    Trying,
}

/// What is to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Servers and peers are reached by TCP from now on, or by UDP.
    All {
        /// By TCP.
        is_tcp: bool,
    },
    /// Servers alone are.
    Servers {
        /// By TCP.
        is_tcp: bool,
    },
}

/// The way to the servers.
#[derive(Debug)]
pub(super) struct Way {
    is: Is,
    since: u64,
    heard: Option<u64>,
    pause: u64,
    /// There was a connection at the last turn.
    was_connected: bool,
}

impl Way {
    /// By UDP, from now on.
    pub(super) fn new(now: u64) -> Self {
        Self { is: Is::Udp, since: now, heard: None, pause: PAUSE, was_connected: false }
    }

    /// Whether peers are reached by TCP.
    pub(super) fn is_tcp(&self) -> bool {
        self.is != Is::Udp
    }

    /// The directory said something.
    pub(super) fn heard(&mut self, now: u64) {
        self.heard = Some(now);
    }

    /// What is to change now, where there is a connection to the directory or not.
    pub(super) fn turn(&mut self, now: u64, is_connected: bool) -> Option<Change> {
        let is_lost = std::mem::replace(&mut self.was_connected, is_connected) && !is_connected;
        if self.is == Is::Tcp && is_lost {
            // It carried what was heard before.
            self.since = now;
        }
        let heard = self.heard.filter(|heard| *heard > self.since);
        let silent = now.saturating_sub(heard.unwrap_or(self.since));
        match self.is {
            Is::Udp => {
                let patience = if self.heard.is_none() { FIRST } else { SILENCE };
                (silent >= patience).then(|| {
                    self.pause = PAUSE;
                    self.become_all(Is::Tcp, now)
                })
            }
            // The directory called, or nothing came of TCP either.
            Is::Tcp if !is_connected && (heard.is_some() || silent >= SILENCE) => {
                Some(self.become_all(Is::Udp, now))
            }
            Is::Tcp if is_connected && silent >= DEAF => Some(self.become_all(Is::Udp, now)),
            Is::Tcp if is_connected && now.saturating_sub(self.since) >= self.pause => {
                (self.is, self.since) = (Is::Trying, now);
                Some(Change::Servers { is_tcp: false })
            }
            Is::Trying if heard.is_some_and(|heard| heard >= self.since + LATE) => {
                Some(self.become_all(Is::Udp, now))
            }
            Is::Trying if now.saturating_sub(self.since) >= TRIAL => {
                self.pause = (2 * self.pause).min(LONG_PAUSE);
                (self.is, self.since) = (Is::Tcp, now);
                Some(Change::Servers { is_tcp: true })
            }
            Is::Tcp | Is::Trying => None,
        }
    }

    fn become_all(&mut self, is: Is, now: u64) -> Change {
        (self.is, self.since) = (is, now);
        Change::All { is_tcp: is == Is::Tcp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays seconds, in each of which the directory is heard or not; returns what changed, and when.
    fn play(
        way: &mut Way,
        seconds: std::ops::Range<u64>,
        hears: impl Fn(&Way) -> bool,
    ) -> Vec<(u64, Change)> {
        let mut changes = Vec::new();
        for second in seconds {
            let is_connected = way.is == Is::Tcp || way.is == Is::Trying;
            let change = way.turn(second * SECOND, is_connected);
            changes.extend(change.map(|change| (second, change)));
            if hears(way) {
                way.heard(second * SECOND + LATE + 1);
            }
        }
        changes
    }

    #[test]
    fn udp_that_answers_stays() {
        let mut way = Way::new(0);
        assert_eq!(play(&mut way, 0..3_600, |_| true), []);
        // A directory that is silent for a while, as when it begins again.
        assert_eq!(play(&mut way, 3_600..3_610, |_| false), []);
    }

    #[test]
    fn where_udp_is_blocked_tcp_is_used_and_udp_tried_now_and_then() {
        let mut way = Way::new(0);
        let changes = play(&mut way, 0..400, |way| way.is == Is::Tcp);
        let (by_tcp, by_udp) =
            (Change::Servers { is_tcp: true }, Change::Servers { is_tcp: false });
        let expected = [
            (5, Change::All { is_tcp: true }),
            (65, by_udp),
            (68, by_tcp),
            (188, by_udp),
            (191, by_tcp),
        ];
        assert_eq!(changes, expected);
        // Then it answers again.
        let changes = play(&mut way, 400..600, |_| true);
        assert_eq!(changes, [(431, by_udp), (432, Change::All { is_tcp: false })]);
    }

    #[test]
    fn where_neither_answers_both_are_tried_in_turn() {
        let mut way = Way::new(0);
        let mut changes = Vec::new();
        for second in 0..60 {
            changes.extend(way.turn(second * SECOND, false).map(|_| second));
        }
        assert_eq!(changes, [5, 20, 25, 40, 45]);
        // A directory that calls while there is no connection is heard by UDP.
        way.heard(61 * SECOND);
        assert_eq!(way.turn(61 * SECOND, false), Some(Change::All { is_tcp: false }));
        assert!(!way.is_tcp());
    }

    #[test]
    fn a_connection_that_is_lost_is_waited_for() {
        let mut way = Way::new(0);
        assert!(way.turn(5 * SECOND, false).is_some());
        way.turn(6 * SECOND, true);
        way.heard(7 * SECOND);
        for second in 8..22 {
            assert_eq!(way.turn(second * SECOND, false), None, "{second}");
        }
        assert_eq!(way.turn(22 * SECOND, true), None);
        assert_eq!(way.turn(23 * SECOND, false), None);
        let change = way.turn(38 * SECOND, false);
        assert_eq!(change, Some(Change::All { is_tcp: false }), "it did not come back");
    }
}
