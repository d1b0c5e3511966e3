//! Who may have us do the expensive part of a handshake.
//!
//! Contract: a sender that shows a cookie is served at its own rate, whatever senders without one do, and unless others that
//! have shown theirs fill all of its cells. Senders that have shown nothing share one rate; of that, sources that send
//! slowly come first, so a source that floods asks only itself for cookies. Nothing is remembered of anybody: rates are
//! kept in [`Sketch`]es of a fixed size, and that of senders with a cookie is touched by no others. A cookie is only asked
//! for where the shared rate is used up, so a few messages are met by silence.
//!
//! Source: G. Cormode and S. Muthukrishnan, "An improved data stream summary: the count-min sketch and its
//! applications", 2005, with conservative updates; WireGuard, section 5.3, for silence.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use crate::limits::{SECOND, SOURCE_RATE, UNPROVEN_RATE, UNPROVEN_RESERVE};

/// What happens to a handshake message with a right mac1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The message is processed.
    Accept,
    /// The source has to show a cookie first.
    AskCookie,
    /// The source has shown a cookie, and sends too fast.
    Refuse,
}

/// The rate of something, by the time at which it would be used up to the last (GCRA, ITU-T I.371): one word.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate(u64);

impl Rate {
    pub(crate) fn take(&mut self, (rate, burst): (u64, u64), now: u64) -> bool {
        let interval = SECOND / rate;
        if self.0 > now.saturating_add(burst.saturating_sub(1) * interval) {
            return false;
        }
        self.0 = self.0.max(now).saturating_add(interval);
        true
    }
}

/// Rows of a sketch, and cells of each: the bits of a hash that choose one.
const ROWS: usize = 4;
const CELL_BITS: usize = 12;

/// Rates of any number of sources, in cells that they share: a source has one in each row, and the least used of them
/// speaks for it. So it is refused sooner than it would be alone only if others fill all of its cells, and which those
/// are nobody knows.
struct Sketch {
    cells: Box<[u64]>,
    key: RandomState,
}

impl Sketch {
    fn new() -> Self {
        Self { cells: vec![0; ROWS << CELL_BITS].into(), key: RandomState::new() }
    }

    /// Whether one more of a source is within the rate of each; only then it is counted.
    fn take(&mut self, source: IpAddr, now: u64) -> bool {
        let hash = self.key.hash_one(source);
        let cell = |row: usize| {
            let bits = hash >> (row * CELL_BITS);
            (row << CELL_BITS) + (bits as usize & ((1 << CELL_BITS) - 1))
        };
        let places: [usize; ROWS] = std::array::from_fn(cell);
        let mut rate = Rate(places.iter().map(|at| self.cells[*at]).min().unwrap_or_default());
        let taken = rate.take(SOURCE_RATE, now);
        if taken {
            places.iter().for_each(|at| self.cells[*at] = self.cells[*at].max(rate.0));
        }
        taken
    }
}

/// A source: an IPv4 address, or an IPv6 network of 64 bits, as its holder has all of its addresses.
fn source(from: SocketAddr) -> IpAddr {
    match from.ip().to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !0 << 64).into()),
        v4 => v4,
    }
}

/// Rates of all sources.
pub(crate) struct Sources {
    proven: Sketch,
    unproven: Sketch,
    /// The rate of all sources that have shown nothing.
    shared: Rate,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self { proven: Sketch::new(), unproven: Sketch::new(), shared: Rate::default() }
    }

    /// Decides about a message; `proven` is whether it shows a cookie.
    pub(crate) fn admit(&mut self, from: SocketAddr, proven: bool, now: u64) -> Admission {
        let source = source(from);
        if proven {
            let may = self.proven.take(source, now);
            return if may { Admission::Accept } else { Admission::Refuse };
        }
        // A fast source leaves a reserve to slow ones.
        let kept = if self.unproven.take(source, now) { 0 } else { UNPROVEN_RESERVE };
        let (rate, burst) = UNPROVEN_RATE;
        let may = self.shared.take((rate, burst - kept), now);
        if may { Admission::Accept } else { Admission::AskCookie }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u32, port: u16) -> SocketAddr {
        (std::net::Ipv4Addr::from_bits(0x0a00_0000 + last), port).into()
    }

    #[test]
    fn a_burst_then_a_rate_as_the_kernels_selftest() {
        let mut sources = Sources::new();
        let start = 1_000 * SECOND;
        for _ in 0..SOURCE_RATE.1 {
            assert_eq!(sources.admit(address(1, 1), true, start), Admission::Accept);
        }
        assert_eq!(sources.admit(address(1, 9), true, start), Admission::Refuse);
        let next = start + SECOND / SOURCE_RATE.0;
        assert_eq!(sources.admit(address(1, 1), true, next), Admission::Accept);
        assert_eq!(sources.admit(address(1, 1), true, next), Admission::Refuse);
        assert_eq!(sources.admit(address(2, 1), true, next), Admission::Accept);
    }

    /// Finding: a global limiter let one flooder put everyone in cookie mode.
    #[test]
    fn who_floods_asks_nobody_else_for_cookies() {
        let mut sources = Sources::new();
        let mut accepted = 0;
        for step in 0..100_000 {
            let now = SECOND + step * 10_000;
            accepted += u64::from(sources.admit(address(1, 1), false, now) == Admission::Accept);
            if step % 5_000 == 4_999 {
                assert_eq!(sources.admit(address(2, 1), false, now), Admission::Accept);
            }
        }
        let most = UNPROVEN_RATE.0 + UNPROVEN_RATE.1;
        assert!(accepted <= most, "{accepted} in a second");
    }

    /// Finding: hosts could be found by their keys, as a few messages brought a cookie.
    #[test]
    fn who_sends_a_few_messages_at_once_hears_nothing() {
        let mut sources = Sources::new();
        for _ in 0..UNPROVEN_RATE.1 - UNPROVEN_RESERVE {
            assert_eq!(sources.admit(address(1, 1), false, SECOND), Admission::Accept);
        }
        assert_eq!(sources.admit(address(1, 1), false, SECOND), Admission::AskCookie);
        assert_eq!(sources.admit(address(2, 1), false, SECOND), Admission::Accept);
    }

    /// Finding: sources that had shown nothing took the room of sources that had shown a cookie.
    #[test]
    fn who_shows_a_cookie_is_never_refused_for_what_others_send() {
        let mut sources = Sources::new();
        // 90,000 a second for ten seconds, from a million sources; 100 peers, each at its own rate.
        let mut accepted = 0;
        for step in 0..900_000_u32 {
            let now = SECOND + u64::from(step) * 11_111;
            let forged = address(step.wrapping_mul(2_654_435_761) % 1_000_000, 1);
            accepted += u64::from(sources.admit(forged, false, now) == Admission::Accept);
            if step % 90 == 0 {
                let peer = address(0x0100_0000 + step / 90 % 100, 1);
                assert_eq!(sources.admit(peer, true, now), Admission::Accept, "{step}");
            }
        }
        assert!(accepted <= 10 * UNPROVEN_RATE.0 + UNPROVEN_RATE.1, "{accepted} of strangers");
    }

    /// So many at once that each place of strangers is at its limit.
    #[test]
    fn places_of_strangers_are_none_of_those_who_show_cookies() {
        let mut sources = Sources::new();
        for stranger in 0..400_000 {
            sources.admit(address(stranger, 1), false, SECOND);
        }
        for peer in 0..100 {
            let peer = address(0x0100_0000 + peer, 1);
            assert_eq!(sources.admit(peer, true, SECOND), Admission::Accept);
        }
    }

    #[test]
    fn a_thousand_that_show_cookies_and_flood_refuse_nobody_else() {
        let mut sources = Sources::new();
        for round in 0..3 * SOURCE_RATE.1 {
            for flooder in 0..1_000 {
                let expected = round < SOURCE_RATE.1;
                let may = sources.admit(address(flooder, 1), true, SECOND) == Admission::Accept;
                // Which cells they share is drawn again each time.
                assert!(expected || !may, "{flooder} for the {round}th time");
            }
        }
        let refused = (0..1_000)
            .filter(|peer| {
                sources.admit(address(5_000 + peer, 1), true, SECOND) == Admission::Refuse
            })
            .count();
        assert!(refused < 20, "{refused} of 1,000");
    }

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_source() {
        let from = |text: &str| source(text.parse().unwrap());
        assert_eq!(from("[2001:db8::1]:1"), from("[2001:db8::ffff:2]:9"));
        assert_ne!(from("[2001:db8::1]:1"), from("[2001:db8:0:1::1]:1"));
        assert_eq!(from("[::ffff:192.0.2.1]:1"), from("192.0.2.1:1"));
    }
}
