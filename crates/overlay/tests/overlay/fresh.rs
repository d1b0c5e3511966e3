//! What a fresh port would gain after what came too early: nothing where both routers take it for their own, and the time until
//! they have forgotten it where one does. So nodes have none, and the one with such a router sends first.

use std::net::SocketAddr;

use overlay::limits::SECOND;

use crate::router::{Kind, Router};

/// Where the directory is.
const DIRECTORY: ([u8; 4], u16) = ([203, 0, 113, 1], 51_900);

struct Side {
    router: Router,
    inside: SocketAddr,
    outside: SocketAddr,
}

impl Side {
    fn new(kind: Kind, number: u8) -> Self {
        let router = Router::new(kind, [198, 51, 100, number].into());
        let mut side = Self { router, inside: DIRECTORY.into(), outside: DIRECTORY.into() };
        side.opens(number, 51_900, 0);
        side
    }

    /// The node sends from this port from now on, which the directory sees.
    fn opens(&mut self, number: u8, port: u16, now: u64) {
        self.inside = ([10, number, 0, 2], port).into();
        self.outside = self.router.out(self.inside, DIRECTORY.into(), now);
    }
}

/// Both send for 1.5 s, the first one before the other one, and each datagram arrives before the next is sent; returns whether
/// they hear each other.
fn attempt([first, second]: [&mut Side; 2], now: u64) -> bool {
    let mut heard = [false; 2];
    for round in 0..15 {
        let now = now + round * SECOND / 10;
        let from = first.router.out(first.inside, second.outside, now);
        heard[1] |= second.router.inward(from, second.outside, now).is_some();
        let from = second.router.out(second.inside, first.outside, now);
        heard[0] |= first.router.inward(from, first.outside, now).is_some();
    }
    heard == [true; 2]
}

#[test]
fn two_routers_that_take_what_comes_too_early_are_passed_by_no_fresh_port() {
    for fresh in [[false, false], [true, false], [false, true], [true, true]] {
        let (mut one, mut other) = (Side::new(Kind::Open, 1), Side::new(Kind::Open, 2));
        for round in 1..6_u16 {
            let now = u64::from(round) * 3 * SECOND;
            for (side, number, is_fresh) in [(&mut one, 1, fresh[0]), (&mut other, 2, fresh[1])] {
                side.opens(number, 51_900 + if is_fresh { round } else { 0 }, now);
            }
            let both = if round % 2 == 0 { [&mut one, &mut other] } else { [&mut other, &mut one] };
            assert!(!attempt(both, now), "{fresh:?}, {round}");
        }
    }
}

#[test]
fn one_router_that_does_is_passed_by_order_and_a_fresh_port_saves_half_a_minute_after_the_wrong_one()
 {
    let sides = || (Side::new(Kind::Open, 1), Side::new(Kind::Plain, 2));
    let (mut open, mut plain) = sides();
    assert!(attempt([&mut open, &mut plain], SECOND));
    for (is_fresh, pause, passes) in [(false, 10, false), (true, 10, true), (false, 35, true)] {
        let (mut open, mut plain) = sides();
        assert!(!attempt([&mut plain, &mut open], SECOND));
        let now = (1 + pause) * SECOND;
        open.opens(1, if is_fresh { 51_901 } else { 51_900 }, now);
        plain.opens(2, 51_900, now);
        assert_eq!(attempt([&mut open, &mut plain], now), passes, "fresh: {is_fresh}, {pause} s");
    }
}
