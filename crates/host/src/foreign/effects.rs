//! [`Effects`]: what a chain may do to a packet.

/// What a chain may do to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Effects(u8);

impl Effects {
    /// End it, or take it elsewhere.
    pub const DROPS: Self = Self(1);
    /// Set its mark, or that of its connection.
    pub const MARKS: Self = Self(2);
    /// Rewrite TCP options.
    pub const OPTIONS: Self = Self(4);
    /// Translate its source.
    pub const SOURCE: Self = Self(8);
    /// Translate its destination.
    pub const DESTINATION: Self = Self(16);
    /// Anything that a later rule could see.
    pub const ALL: Self = Self(1 | 32);
    /// Nothing to a packet, but have the kernel track connections.
    pub const TRACKS: Self = Self(64);

    /// Nothing at all to a packet.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 & !Self::TRACKS.0 == 0
    }

    /// Whether all of these are among them.
    #[inline]
    #[must_use]
    pub fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// These, too.
    pub fn add(&mut self, others: Self) {
        self.0 |= others.0;
    }
}
