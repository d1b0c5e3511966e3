//! [`Ports`]: a set of devices by their numbers, in one word; [`Bridged`]: what the ports of a bridge showed.

/// What the ports of a bridge showed of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bridged {
    /// The port that it came in by; 0 is not known, or it came in by no bridge.
    pub port: u32,
    /// Ports by which it was seen leaving; else the one at which its destination was heard.
    pub ports: Ports,
    /// By how many more the bridge may have passed it on, which nothing shows: a copy may have been dropped, or
    /// frames that left were not recorded. Of what is passed on at all, one copy more than these is sure.
    pub more: u8,
    /// The bridge passed it on between its ports, and did not give it to the host.
    pub is_passed_on: bool,
}

/// A set of devices. Those that are numbered beyond 64 are counted, and not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ports {
    /// Bit n: the device of number n + 1.
    named: u64,
    others: u8,
}

impl Ports {
    /// The greatest number of a device that is told apart from others.
    const NAMED: u32 = u64::BITS;

    /// Adds a device.
    pub fn add(&mut self, device: u32) {
        match device.checked_sub(1).filter(|bit| *bit < Self::NAMED) {
            Some(bit) => self.named |= 1 << bit,
            None => self.others = self.others.saturating_add(1),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.named.count_ones() as usize + usize::from(self.others)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Each of them; 0 is one that is not known.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        let named = (0..Self::NAMED).filter(move |bit| self.named >> bit & 1 == 1);
        named.map(|bit| bit + 1).chain((0..self.others).map(|_| 0))
    }
}
