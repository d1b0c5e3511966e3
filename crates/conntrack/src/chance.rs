//! [`Chance`]: numbers drawn at random, where the packets are ours and not somebody's recording.
//!
//! The kernel draws from `get_random_u32`: ports, shares of packets. What it drew for a recorded packet is unknown, so
//! offline there is no [`Chance`], and what depends on it is unknown.
//!
//! Contract: private to a worker. Without the key nobody can tell the next number from those before: each is the keyed
//! hash (SipHash) of the number of draws so far.

use std::cell::Cell;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};

/// Where random numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Entropy {
    /// Nowhere: what the kernel drew is not known.
    #[default]
    Unknown,
    /// Numbers are drawn here, with a key from the operating system.
    System,
    /// Numbers are drawn here, the same each time: for tests.
    Seed(u64),
}

/// Numbers drawn at random.
#[derive(Debug)]
pub struct Chance {
    key: [u64; 2],
    drawn: Cell<u64>,
}

impl Entropy {
    /// A source of its own; `None` where nothing can be drawn.
    #[must_use]
    pub fn chance(self) -> Option<Chance> {
        let key = match self {
            Self::Unknown => return None,
            Self::System => [0, 1].map(|word| RandomState::new().hash_one(word)),
            Self::Seed(seed) => [seed, !seed],
        };
        Some(Chance { key, drawn: Cell::new(0) })
    }
}

impl Chance {
    /// A number of 64 bits, all equally likely.
    #[must_use]
    pub fn draw(&self) -> u64 {
        let drawn = self.drawn.get();
        self.drawn.set(drawn.wrapping_add(1));
        let mut hasher = DefaultHasher::new();
        self.key.into_iter().chain([drawn]).for_each(|word| hasher.write_u64(word));
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn drawn(entropy: Entropy) -> Vec<u64> {
        let chance = entropy.chance().expect("something to draw from");
        (0..1000).map(|_| chance.draw()).collect()
    }

    #[test]
    fn a_seed_draws_the_same_and_the_system_never_does() {
        assert!(Entropy::Unknown.chance().is_none());
        assert_eq!(drawn(Entropy::Seed(7)), drawn(Entropy::Seed(7)));
        let all = [Entropy::Seed(7), Entropy::Seed(8), Entropy::System, Entropy::System];
        let different: HashSet<u64> = all.into_iter().flat_map(drawn).collect();
        assert_eq!(different.len(), 4000);
    }

    #[test]
    fn each_bit_is_set_about_every_other_time() {
        let drawn = drawn(Entropy::Seed(1));
        for bit in 0..64 {
            let set = drawn.iter().filter(|number| *number >> bit & 1 == 1).count();
            assert!((400..600).contains(&set), "bit {bit}: {set} of 1000");
        }
    }
}
