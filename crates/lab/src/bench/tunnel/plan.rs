//! [`Plan`]: what is measured, with what, and for how long.

use std::path::PathBuf;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One pair of hosts.
    Pair,
    /// The study's test: a responder, and up to ten initiators.
    Star,
    /// How long traffic is away when an end moves or restarts.
    Back,
    /// Hostile datagrams beside a session.
    Hostile,
    /// One end in memory, by one worker and by more.
    Workers,
}

impl Part {
    /// All of them, with the names that the command line has.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Pair, "pair"),
        (Self::Star, "star"),
        (Self::Back, "back"),
        (Self::Hostile, "hostile"),
        (Self::Workers, "workers"),
    ];
}

/// What to measure, and with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program that is measured; without it, everything else is.
    pub tamis: Option<PathBuf>,
    /// Whether to measure peers.
    pub peers: bool,
    /// Where peers are that are not on `PATH`, by name.
    pub programs: Vec<(String, PathBuf)>,
    /// One round, and short.
    pub quick: bool,
    /// One part of it.
    pub only: Option<Part>,
    /// Workers of each of our ends, in turn; none for as many as there are by default.
    pub workers: Vec<usize>,
    /// Rounds; 0 for as many as there are by default.
    pub rounds: usize,
    /// How many initiators there are, in turn; none for as many as there are by default.
    pub initiators: Vec<u8>,
    /// Whether to measure both forms of the study's packet handling.
    pub forms: bool,
    /// The responder is as in the study: behind a link of 1 Gbit/s, with 1 GiB of memory.
    pub as_study: bool,
}

impl Plan {
    pub(super) fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    pub(super) fn rounds(&self) -> usize {
        match (self.rounds, self.quick) {
            (0, true) => 1,
            (0, false) => 7,
            (rounds, _) => rounds,
        }
    }

    /// Seconds of a transfer by TCP.
    pub(super) fn tcp(&self) -> f64 {
        if self.quick { 1.0 } else { 3.0 }
    }

    /// Seconds of a transfer by UDP.
    pub(super) fn udp(&self) -> f64 {
        if self.quick { 1.0 } else { 2.0 }
    }

    /// Seconds of all initiators' transfers.
    pub(super) fn star(&self) -> f64 {
        if self.quick { 2.0 } else { 5.0 }
    }

    pub(super) fn initiators(&self) -> &[u8] {
        match (&*self.initiators, self.quick) {
            ([], true) => &[1, 10],
            ([], false) => &[1, 4, 7, 10],
            (given, _) => given,
        }
    }
}
