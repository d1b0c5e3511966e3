//! Who may have us do the expensive part of a handshake. Rates are kept for each source, so one that floods asks only
//! itself for cookies; one for all together covers sources that are forged, and never refuses who shows a cookie.
//! Memory is bounded: sources that there is no room to remember have to show cookies.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use crate::limits::{SECOND, SOURCE_RATE, SOURCES, UNPROVEN_RATE};

/// What happens to a handshake message with a right mac1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is worked on.
    Accept,
    /// Its source has to show a cookie first.
    AskCookie,
    /// Its source has shown one, and sends too fast.
    Refuse,
}

/// The rate of something, by the time at which it would be used up to the last (GCRA, ITU-T I.371): one word.
#[derive(Clone, Copy, Debug, Default)]
struct Rate(u64);

impl Rate {
    fn take(&mut self, (rate, burst): (u64, u64), now: u64) -> bool {
        let interval = SECOND / rate;
        if self.0 > now.saturating_add((burst - 1) * interval) {
            return false;
        }
        self.0 = self.0.max(now).saturating_add(interval);
        true
    }

    /// Whether it is as if nothing had been taken.
    fn is_idle(self, now: u64) -> bool {
        self.0 <= now
    }
}

/// A source: an IPv4 address, or an IPv6 network of 64 bits, as its holder has all of its addresses; and whether it
/// has shown that it receives there.
type Source = (IpAddr, bool);

fn source(from: SocketAddr, proven: bool) -> Source {
    let address = match from.ip().to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !0 << 64).into()),
        v4 => v4,
    };
    (address, proven)
}

/// Rates of all sources.
pub(crate) struct Sources {
    rates: HashMap<Source, Rate>,
    unproven: Rate,
    swept: u64,
    most: usize,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self::of(SOURCES)
    }

    fn of(most: usize) -> Self {
        Self { rates: HashMap::new(), unproven: Rate::default(), swept: 0, most }
    }

    /// Decides about a message; `proven` is whether it shows a cookie.
    pub(crate) fn admit(&mut self, from: SocketAddr, proven: bool, now: u64) -> Admission {
        let of_source = self.rate(source(from, proven), now);
        let may = of_source.is_some_and(|rate| rate.take(SOURCE_RATE, now));
        match (proven, may) {
            (true, true) => Admission::Accept,
            (true, false) => Admission::Refuse,
            (false, true) if self.unproven.take(UNPROVEN_RATE, now) => Admission::Accept,
            (false, _) => Admission::AskCookie,
        }
    }

    /// The rate of a source, if there is room for it.
    fn rate(&mut self, source: Source, now: u64) -> Option<&mut Rate> {
        if self.rates.len() >= self.most && !self.rates.contains_key(&source) {
            self.sweep(now);
            if self.rates.len() >= self.most {
                return None;
            }
        }
        Some(self.rates.entry(source).or_default())
    }

    /// Forgets sources that are idle, once a second at most: it looks at all of them.
    fn sweep(&mut self, now: u64) {
        if now.saturating_sub(self.swept) >= SECOND || self.swept == 0 {
            self.rates.retain(|_, rate| !rate.is_idle(now));
            self.swept = now.max(1);
        }
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
            accepted += u32::from(sources.admit(address(1, 1), false, now) == Admission::Accept);
            if step % 10_000 == 9_999 {
                assert_eq!(sources.admit(address(2, 1), false, now), Admission::Accept);
            }
        }
        assert!((20..=25).contains(&accepted), "{accepted} in a second");
    }

    #[test]
    fn forged_sources_ask_for_cookies_and_who_shows_one_is_served() {
        let mut sources = Sources::new();
        let unproven = |source| address(source, 1);
        let accepted = (0..3_000)
            .filter(|s| sources.admit(unproven(*s), false, SECOND) == Admission::Accept)
            .count();
        assert_eq!(accepted as u64, UNPROVEN_RATE.1);
        assert_eq!(sources.admit(unproven(9_000), false, SECOND), Admission::AskCookie);
        assert_eq!(sources.admit(unproven(9_000), true, SECOND), Admission::Accept);
    }

    #[test]
    fn memory_is_bounded_and_a_second_makes_room() {
        let mut sources = Sources::of(16);
        for source in 0..1_000 {
            sources.admit(address(source, 1), true, SECOND);
        }
        assert_eq!(sources.rates.len(), 16);
        assert_eq!(sources.admit(address(5_000, 1), true, SECOND), Admission::Refuse);
        assert_eq!(sources.admit(address(5_000, 1), true, 3 * SECOND), Admission::Accept);
        assert_eq!(sources.rates.len(), 1);
    }

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_source() {
        let from = |text: &str| source(text.parse().unwrap(), false);
        assert_eq!(from("[2001:db8::1]:1"), from("[2001:db8::ffff:2]:9"));
        assert_ne!(from("[2001:db8::1]:1"), from("[2001:db8:0:1::1]:1"));
        assert_eq!(from("[::ffff:192.0.2.1]:1"), from("192.0.2.1:1"));
    }
}
