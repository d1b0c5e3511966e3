//! [`Effects`]: what a chain, or a statement of nft, may do to a packet.

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

/// Returns the effects of setting a field of this name of `meta` or `ct`: not all, if packets only carry the field.
pub(super) fn of_meta(of: &str, key: &str) -> Effects {
    match (of, key) {
        ("meta", "nftrace" | "priority") => Effects::default(),
        ("meta" | "ct", "mark") => Effects::MARKS,
        _ => Effects::ALL,
    }
}

/// What a statement of this name does, whatever its arguments; `None` if nobody knows it.
pub(super) fn of_statement(name: &str) -> Option<Effects> {
    Some(match name {
        "match" | "counter" | "quota" | "limit" | "last" | "ct count" | "log" | "accept"
        | "continue" | "return" | "set" | "map" | "meter" | "comment" => Effects::default(),
        "drop" | "reject" | "fwd" | "synproxy" => Effects::DROPS,
        "snat" | "masquerade" => Effects(Effects::SOURCE.0 | Effects::TRACKS.0),
        "dnat" | "redirect" => Effects(Effects::DESTINATION.0 | Effects::TRACKS.0),
        "reset" => Effects::OPTIONS,
        "queue" | "dup" | "flow" | "notrack" | "tproxy" | "secmark" | "tunnel" | "xt" => {
            Effects::ALL
        }
        _ => return None,
    })
}
