//! [`Mark`]: the mark that rules and routes set on a packet (`skb->mark`), as far as it is known.
//!
//! Contract: [`Mark::join`] keeps what is known whichever of two marks a packet has.

/// The packet mark, bit by bit known or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The bits; unknown ones are 0.
    pub value: u32,
    /// Which bits are unknown.
    pub unknown: u32,
}

impl Mark {
    /// Whether `(mark & mask) == value`; `None` if that depends on an unknown bit.
    #[must_use]
    pub fn matches(self, value: u32, mask: u32) -> Option<bool> {
        let known = mask & !self.unknown;
        if (self.value ^ value) & known != 0 || value & !mask != 0 {
            return Some(false);
        }
        (known == mask).then_some(true)
    }

    /// A mark that is this or `other`.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let unknown = self.unknown | other.unknown | (self.value ^ other.value);
        Self { value: self.value & !unknown, unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_compared_on_its_known_bits_only() {
        let mark = Mark { value: 0x10, unknown: 0x0f };
        assert_eq!(mark.matches(0x10, 0xf0), Some(true));
        assert_eq!(mark.matches(0x20, 0xf0), Some(false));
        assert_eq!(mark.matches(0x11, 0xff), None);
        assert_eq!(mark.matches(0x21, 0xff), Some(false));
        assert_eq!(mark.matches(0x11, 0x10), Some(false), "value has bits outside the mask");
    }

    #[test]
    fn joining_forgets_the_bits_that_differ() {
        let joined = Mark { value: 0b1100, unknown: 0 }.join(Mark { value: 0b1010, unknown: 1 });
        assert_eq!(joined, Mark { value: 0b1000, unknown: 0b0111 });
    }
}
