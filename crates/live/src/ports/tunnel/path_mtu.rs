//! [`PathMtu`]: how long a packet may be on the way to a peer, found by probes of our own, as ICMP does not always arrive
//! (RFC 8899, datagram packetization layer path MTU discovery).
//!
//! The configured length is taken to fit until probes of that length fail while the peer is heard; then [`BASE`] is,
//! and the longest that fits is searched for between the two. The search is repeated after [`AGAIN`]. A path may become
//! narrower without a message: while long packets are sent, the used length is probed every [`CONFIRM`], and if that
//! fails, searched for (RFC 8899, section 4.3).
//!
//! Contract: nothing else decides how long a path is, since anybody may write ICMP errors that the kernel believes.
//! Pure; time is passed in as nanoseconds, lengths are of inner packets.

use tunnel::limits::SECOND;

/// A probe that is not answered for this long is lost.
const PATIENCE: u64 = SECOND;
/// A length does not fit if this number of probes in a row are lost.
const TRIES: u32 = 3;
/// The length that fits anywhere where IPv6 is carried (1,280 bytes outside, 80 of them ours), and is not probed for.
const BASE: u16 = 1_200;
/// The search ends where both bounds are this close.
const STEP: u16 = 8;
/// When a path is searched again: RFC 8899, section 5.1.1 (`PMTU_RAISE_TIMER`).
const AGAIN: u64 = 600 * SECOND;
/// How long the used length is taken to fit while it is used: section 5.1.1 (`CONFIRMATION_TIMER`). A connection that
/// stalls goes on after this and [`TRIES`] seconds.
const CONFIRM: u64 = 5 * SECOND;

/// The state of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathMtu {
    /// The configured length.
    most: u16,
    usable: u16,
    search: Search,
    /// When the configured length is tried again.
    again: u64,
    /// Whether packets longer than [`BASE`] were sent since the used length was probed.
    is_used: bool,
    number: u32,
}

#[derive(Debug, Clone, Copy)]
enum Search {
    /// The used length was found to fit at that time.
    Rests { since: u64 },
    /// A probe of `len` bytes was sent at that time, the `tries`th.
    Probes { len: u16, tries: u32, sent: u64, fits: u16, too_long: u16 },
}

impl PathMtu {
    /// The state of a path that nothing is known of.
    pub(super) fn new(most: u16) -> Self {
        let search = Search::Rests { since: 0 };
        Self { most, usable: most, search, again: 0, is_used: false, number: 0 }
    }

    /// Bytes of the longest packet that may be sent.
    pub(super) fn usable(&self) -> u16 {
        self.usable
    }

    /// Notes that a packet of `len` bytes is sent.
    pub(super) fn sends(&mut self, len: usize) {
        self.is_used |= len > usize::from(BASE);
    }

    /// The probe to send now, if one is due: its number and its length. `is_heard` says whether the peer answers at all.
    pub(super) fn due(&mut self, now: u64, is_heard: bool) -> Option<(u32, u16)> {
        if !is_heard {
            return None;
        }
        let (len, tries, fits, too_long) = match self.search {
            Search::Rests { since } => {
                let len = self.looked_for(since, now)?;
                (len, 1, BASE.min(len), len.saturating_add(1))
            }
            Search::Probes { sent, .. } if now < sent + PATIENCE => return None,
            Search::Probes { len, tries, fits, too_long, .. } if tries < TRIES => {
                (len, tries + 1, fits, too_long)
            }
            Search::Probes { len, fits, .. } => {
                self.usable = self.usable.min(fits);
                return self.narrow(fits, len, now);
            }
        };
        self.search = Search::Probes { len, tries, sent: now, fits, too_long };
        self.number = self.number.wrapping_add(1);
        Some((self.number, len))
    }

    /// The length to probe if a rest that began at `since` ends now.
    fn looked_for(&mut self, since: u64, now: u64) -> Option<u16> {
        if now >= self.again {
            self.again = now + AGAIN;
            return Some(self.most);
        }
        let is_due = self.is_used && self.usable > BASE && now >= since + CONFIRM;
        self.is_used &= !is_due;
        is_due.then_some(self.usable)
    }

    /// Notes that a probe of this number arrived.
    pub(super) fn answered(&mut self, number: u32, now: u64) {
        let Search::Probes { len, too_long, .. } = self.search else { return };
        if number == self.number {
            self.usable = self.usable.max(len).min(self.most);
            self.close(len, too_long, now);
        }
    }

    /// Goes on between what fits and what does not: rests, or makes the next probe due.
    fn close(&mut self, fits: u16, too_long: u16, now: u64) {
        self.search = match middle(fits, too_long) {
            None => Search::Rests { since: now },
            // Its wait counts as over: it is due at once.
            Some(len) => {
                Search::Probes { len, tries: 0, sent: now.saturating_sub(PATIENCE), fits, too_long }
            }
        };
    }

    fn narrow(&mut self, fits: u16, too_long: u16, now: u64) -> Option<(u32, u16)> {
        self.close(fits, too_long, now);
        self.due(now, true)
    }
}

/// The length to try next.
fn middle(fits: u16, too_long: u16) -> Option<u16> {
    let between = too_long.saturating_sub(fits);
    (between > STEP).then(|| fits + between / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Makes a path find what fits, each probe answered at once or never; returns the number of probes.
    fn settle(path: &mut PathMtu, fits: u16, now: &mut u64) -> usize {
        let mut probes = 0;
        for _ in 0..1_000 {
            match path.due(*now, true) {
                Some((number, len)) => {
                    probes += 1;
                    if len <= fits {
                        path.answered(number, *now);
                    }
                }
                None if matches!(path.search, Search::Rests { .. }) => return probes,
                None => *now += SECOND / 10,
            }
        }
        panic!("it does not come to an end");
    }

    proptest! {
        #[test]
        fn what_fits_is_found(most in 1_300..9_000_u16, fits in 1_200..9_100_u16, again in 1_200..9_100_u16) {
            let (mut path, mut now) = (PathMtu::new(most), 5 * SECOND);
            for fits in [fits, again] {
                let probes = settle(&mut path, fits, &mut now);
                let right = fits.min(most);
                prop_assert!(path.usable() <= right && right - path.usable() <= STEP, "{} of {}", path.usable(), right);
                prop_assert!(probes <= 3 * 13, "{} probes", probes);
                now += AGAIN;
            }
        }
    }

    #[test]
    fn a_path_that_takes_everything_is_asked_once_and_a_silent_peer_is_not() {
        let (mut path, mut now) = (PathMtu::new(1_420), 0);
        assert_eq!(path.due(now, false), None);
        assert_eq!(settle(&mut path, 1_420, &mut now), 1);
        assert_eq!(path.due(now + AGAIN - 1, true), None);
        assert_eq!(path.due(now + AGAIN, true), Some((2, 1_420)));
    }

    #[test]
    fn what_is_used_is_asked_for_again_and_nothing_else() {
        let (mut path, mut now) = (PathMtu::new(1_420), 0);
        settle(&mut path, 1_420, &mut now);
        path.sends(BASE.into());
        assert_eq!(path.due(now + AGAIN - 1, true), None, "short packets go anywhere");
        for round in 1..4 {
            path.sends(1_420);
            assert_eq!(path.due(now + CONFIRM - 1, true), None);
            now += CONFIRM;
            assert_eq!(path.due(now, true), Some((round + 1, 1_420)));
            path.answered(round + 1, now);
            assert_eq!(path.due(now + CONFIRM, true), None, "nothing was sent since");
        }
        // The configured length is tried when it would be without a search.
        assert_eq!(path.due(AGAIN, true), Some((5, 1_420)));
    }

    #[test]
    fn a_path_that_becomes_narrow_is_searched_and_one_that_widens_is_found_in_time() {
        let (mut path, mut now) = (PathMtu::new(1_420), 0);
        settle(&mut path, 1_420, &mut now);
        path.sends(1_420);
        now += CONFIRM;
        let began = now;
        settle(&mut path, 1_280, &mut now);
        assert!((1_272..=1_280).contains(&path.usable()), "{}", path.usable());
        assert!(now - began < 20 * SECOND, "{} s", (now - began) / SECOND);
        now = AGAIN;
        settle(&mut path, 1_420, &mut now);
        assert_eq!(path.usable(), 1_420);
    }

    #[test]
    fn an_answer_to_another_probe_says_nothing() {
        let mut path = PathMtu::new(1_420);
        let (number, _) = path.due(0, true).expect("due");
        path.answered(number + 1, 0);
        assert!(matches!(path.search, Search::Probes { tries: 1, .. }));
    }
}
